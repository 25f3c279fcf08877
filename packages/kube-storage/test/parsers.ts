/** The storage layer's parsers of texts from outside, for the table of test/linear. */
import { BODY_BYTES, type Listed, latin1, listed, utf8 } from "../../../test/linear/listed.ts";

export const LISTED: readonly Listed[] = [
  listed(
    "kube-storage/src/codec/json-parser",
    "body as JSON",
    ({ JsonParser }) =>
      (text) => {
        const parser = new JsonParser(utf8(text));
        while (!parser.step(10_000));
        return parser.value;
      },
    BODY_BYTES,
  ),
  listed(
    "kube-storage/src/codec/yaml",
    "object as YAML",
    ({ writeYaml }) =>
      (text) =>
        writeYaml({ a: utf8(text), [utf8(text)]: 1 }),
    BODY_BYTES,
  ),
  listed(
    "kube-storage/src/codec/stored-value",
    "stored value",
    ({ storedValueText }) =>
      async (text) => {
        const object = JSON.stringify({ apiVersion: "v1", kind: text, metadata: { name: text } });
        for (const value of [text, `k8s:enc:${text}`, `k8s\0${text}`, object])
          await storedValueText(latin1(value), 0);
      },
    BODY_BYTES,
  ),
  ...["a: ", "- ", "a: {", "a: '", 'a: "', "a: |\n "].map((start) =>
    listed(
      "kube-storage/src/codec/yaml",
      `YAML ${JSON.stringify(start)}`,
      ({ parseYaml }) =>
        (text) =>
          parseYaml(start + utf8(text)),
      BODY_BYTES,
    ),
  ),
  listed("kube-storage/src/codec/go-time", "times", ({ parseTime, canonicalTime }) => (text) => [
    parseTime(text, "seconds"),
    parseTime(text, "micros"),
    canonicalTime(text, "seconds"),
  ]),
  listed(
    "kube-storage/src/meta/names",
    "prefix of names",
    ({ isDns1123Subdomain }) =>
      (text) =>
        isDns1123Subdomain(text, "bytes"),
    BODY_BYTES,
  ),
  listed(
    "kube-storage/src/meta/object-meta-validation",
    "labels, finalizers and owners",
    (module) => (text) => {
      const value = utf8(text);
      module.validateLabels({ [value]: value }, "a");
      module.validateAnnotations({ [value]: value }, "a");
      module.validateFinalizers([value], "a");
      return module.validateOwnerReferences(
        [{ apiVersion: value, kind: value, name: value, uid: value }],
        "a",
      );
    },
    BODY_BYTES,
  ),
  listed(
    "kube-storage/src/meta/label-requirement",
    "requirement",
    ({ checkRequirement }) =>
      (text) =>
        checkRequirement({ key: utf8(text), operator: "in", values: [utf8(text)] }),
    BODY_BYTES,
  ),
];

/** Files that work on texts and need no entry. A name that ends with "/" stands for a folder. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  "packages/kube-storage/src/schema/": "tables in the source, read once",
  "packages/kube-storage/src/registry/":
    "paths and names of tables in the source; what is in objects goes through codec/ and meta/",
  "packages/kube-storage/src/cacher/": "keys and numbers of the store",
  "packages/kube-storage/src/codec/json-decode.ts":
    "values that JSON.parse has made; the types of attack:linear's objects reach each",
  "packages/kube-storage/src/schema/maps.ts": "the order of names",
  "packages/kube-storage/src/codec/wire.ts":
    "built-in kinds over protobuf; attack:linear sends them",
  "packages/kube-storage/src/storage/etcd-values.ts": "what the store holds, by JSON.parse",
};

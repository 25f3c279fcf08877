/** Values of Kubernetes' storage as text: what each form says, and that no bytes break it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeededRandom } from "@quorate/host";
import { fromLatin1, fromUtf8 } from "@quorate/proto";
import { kindSource, metaProtobuf } from "../../src/codec/builtin-kind.ts";
import { jsonCodec } from "../../src/codec/json-codec.ts";
import { storedValueText } from "../../src/codec/stored-value.ts";
import { parseYaml } from "../../src/codec/yaml.ts";
import type { KubeObject } from "../../src/meta/object.ts";

const managedFields = [{ manager: "m", operation: "Update", apiVersion: "v1" }];
const configMap = {
  kind: "ConfigMap",
  apiVersion: "v1",
  metadata: {
    name: "c",
    namespace: "default",
    uid: "u",
    creationTimestamp: "2026-01-01T00:00:00Z",
    labels: { b: "1", a: "2" },
    managedFields,
  },
  data: { text: "one\ntwo\n", number: "1", empty: "" },
} as unknown as KubeObject;
const binary = kindSource("", "v1", "ConfigMap").codec.encode(configMap);

test("an object is shown as kubectl shows it", async () => {
  assert.equal(
    await storedValueText(binary, 7),
    `apiVersion: v1
data:
  empty: ""
  number: "1"
  text: |
    one
    two
kind: ConfigMap
metadata:
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels:
    a: "2"
    b: "1"
  name: c
  namespace: default
  resourceVersion: "7"
  uid: u
`,
  );
});

test("a custom resource is JSON", async () => {
  const widget = {
    apiVersion: "example.org/v1",
    kind: "Widget",
    metadata: { name: "w", managedFields },
    spec: { list: [{ b: 1, a: "yes" }] },
  } as unknown as KubeObject;
  assert.equal(
    await storedValueText(jsonCodec.encode(widget), 0),
    `apiVersion: example.org/v1
kind: Widget
metadata:
  name: w
spec:
  list:
  - a: "yes"
    b: 1
`,
  );
});

test("of a kind that is not known the metadata is shown, and said so", async () => {
  const { message } = metaProtobuf.unwrap(binary);
  const value = metaProtobuf.wrap("example.org/v9", "Strange", message);
  const text = await storedValueText(value, 0);
  assert.match(text, /^apiVersion: example.org\/v9\nkind: Strange\nmetadata:\n[^#]* name: c\n/);
  assert.match(text, /\n# the other fields of this kind are not known here, \d+ bytes in all\n$/);
});

test("an encrypted value says by what; other values say that they are none", async () => {
  for (const [value, says] of [
    ["k8s:enc:aescbc:v1:key1:\0\xff", 'encrypted by aescbc with the key "key1", 25 bytes'],
    ["k8s:enc:secretbox:v1:k:x", 'encrypted by secretbox with the key "k", 24 bytes'],
    ["k8s:enc:kms:v2:vault:\xff", 'encrypted by the KMS plugin "vault" (v2), 22 bytes'],
    ["k8s:enc:kms:v1:old:\xff", 'encrypted by the KMS plugin "old" (v1), 20 bytes'],
    ["k8s:enc:\n\x1b[2J", "encrypted in a form that is not known here, 13 bytes"],
    ["k8s:enc:aesgcm:v1:\x1b\n\xff:", 'encrypted by aesgcm with the key "\\u001b\\n?", 22 bytes'],
    ["", "no object of Kubernetes, 0 bytes: it is neither protobuf nor JSON"],
    ["bar", "no object of Kubernetes, 3 bytes: it is neither protobuf nor JSON"],
    ["{}", "no object of Kubernetes, 2 bytes: the stored object has no apiVersion or kind"],
    ['{"kind":\n', "no object of Kubernetes, 9 bytes: the stored value is no JSON"],
    ["k8s\0\xff\xff", "no object of Kubernetes, 6 bytes: the value is no protobuf message"],
  ] as const) {
    const text = await storedValueText(fromLatin1(value), 3);
    assert.ok(text.startsWith(`# ${says}`), text);
    assert.match(text, /^[ -~]*\n$/);
  }
});

test("deep JSON is refused", async () => {
  const deep = `{"apiVersion":"a/v1","kind":"A","metadata":{},"x":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
  assert.match(await storedValueText(fromUtf8(deep), 0), /^# no object .* nested too deep\n$/);
  const most = `{"apiVersion":"a/v1","kind":"A","metadata":{},"x":${"[".repeat(998)}${"]".repeat(998)}}`;
  assert.match(await storedValueText(fromUtf8(most), 0), /^apiVersion: a\/v1\n/);
});

test("any bytes give text that is YAML", async () => {
  const random = new SeededRandom(31n);
  const pod = kindSource("", "v1", "Pod").codec.encode({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", creationTimestamp: "2026-01-01T00:00:00Z" },
    spec: {
      containers: [{ name: "c", image: "i", resources: { limits: { cpu: "1", memory: "1Gi" } } }],
    },
  } as unknown as KubeObject);
  let [decoded, refused] = [0, 0];
  for (let i = 0; i < 2000; i++) {
    const value = [binary, pod][i % 2].slice(0, i % 5 === 0 ? random.below(300) : undefined);
    for (let n = random.below(4); n >= 0; n--)
      if (value.length > 4) value[4 + random.below(value.length - 4)] = random.below(256);
    const text = await storedValueText(value, 0);
    if (text.startsWith("#")) refused++;
    else decoded++;
    await parseYaml(text);
  }
  assert.ok(decoded > 200 && refused > 200, `${decoded} decoded, ${refused} refused`);
});

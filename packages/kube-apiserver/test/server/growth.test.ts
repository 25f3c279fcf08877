/**
 * Texts of clients cost what their length costs: the processor time of a request with four times
 * the text is compared with that of the shorter one. Work that grows with the square of the text
 * would take 16 times as long.
 * @slow
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  canonicalQuantity,
  isConfigMapKey,
  isDns1035Label,
  isDns1123Label,
  isDns1123Subdomain,
  isLabelValue,
  isQualifiedName,
  parseFieldSelector,
  parseLabelSelector,
  parseYaml,
  writeYaml,
} from "@quorate/kube-storage";
import { webhookConfigurationErrors } from "../../src/admission/webhook-validation.ts";
import { conversionErrors } from "../../src/crd/definition/conversion-rules.ts";
import { listErrors, mapKeyErrors } from "../../src/crd/definition/list-rules.ts";
import { storedVersionErrors } from "../../src/crd/definition/validate.ts";
import { JsonPath } from "../../src/crd/serving/json-path.ts";
import { formatCheck } from "../../src/crd/validation/formats.ts";
import { ApiWorld, CONFIG_MAPS, type Sent } from "../support/api-world.ts";

const TIMES = 4;
/** Between what is linear, 4, and what is quadratic, 16; collections of garbage are in it. */
const MAX_FACTOR = 10;
/** What takes less is not compared: the clock and the collector decide it. */
const FLOOR_MS = 60;
const RUNS = 3;
const ATTEMPTS = 4;

/** Processor time of this process, of the best of some runs. */
async function costMs(run: () => unknown): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < RUNS; i++) {
    const before = process.cpuUsage();
    await run();
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / 1000);
    if (best < FLOOR_MS) break;
  }
  return best;
}

/** @param run with a text, or so many parts, of about a length */
async function isLinear(name: string, size: number, run: (size: number) => () => unknown) {
  let long = Number.POSITIVE_INFINITY;
  let short = long;
  // A busy machine and the collector only add time, so the least of some attempts counts.
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    long = Math.min(long, await costMs(run(size)));
    if (long < FLOOR_MS) return;
    short = Math.min(short, await costMs(run(size / TIMES)));
    if (long / Math.max(short, FLOOR_MS / MAX_FACTOR) < MAX_FACTOR) return;
  }
  assert.fail(`${name}: ${short} ms became ${long} ms`);
}

/** Repeated, they are what backtracking goes through. */
const UNITS = [
  "a",
  "1",
  "_",
  "-",
  ".",
  " ",
  "\t",
  ":",
  ",",
  "=",
  "/",
  "*",
  "%",
  "\\",
  "'",
  '"',
  "[",
  "(",
  "1.",
  "a.",
  "1h",
  "1 ",
  "_1",
  "a@",
  "a ",
  "..",
  "0",
  "+",
  "e1",
  "é",
  "\n",
  "{",
  "~1",
  "<",
];
/** What the whole text must end with, so that it fits almost. */
const ENDS = ["", "x", "!", "\n"];
const quietly = (run: () => unknown) => (): void => {
  try {
    run();
  } catch {
    // A refusal is an answer too.
  }
};

const PARSERS: Readonly<Record<string, (text: string) => unknown>> = {
  "a DNS label": isDns1123Label,
  "a DNS label of 1035": isDns1035Label,
  "a DNS subdomain": (text) => isDns1123Subdomain(text),
  "a qualified name": isQualifiedName,
  "a label's value": isLabelValue,
  "a key of data": isConfigMapKey,
  "a quantity": canonicalQuantity,
  "a label selector": parseLabelSelector,
  "an integer in a label selector": (text) => parseLabelSelector(`a>${text}`),
  "a list in a label selector": (text) => parseLabelSelector(`a in (${text})`),
  "a field selector": parseFieldSelector,
  "a value in a field selector": (text) => parseFieldSelector(`a=${text}`),
  "a JSONPath": (text) => new JsonPath(text),
  "an index in a JSONPath": (text) => new JsonPath(`.a[${text}]`),
  "a filter in a JSONPath": (text) => new JsonPath(`.a[?(@.b==${text})]`),
};
const FORMATS = [
  "bsonobjectid",
  "uri",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "cidr",
  "mac",
  "uuid",
  "uuid3",
  "uuid4",
  "uuid5",
  "isbn",
  "isbn10",
  "isbn13",
  "creditcard",
  "ssn",
  "hexcolor",
  "rgbcolor",
  "byte",
  "date",
  "duration",
  "datetime",
  "k8sshortname",
  "k8slongname",
];

describe("texts", () => {
  const parsers = Object.entries(PARSERS);
  for (const format of FORMATS) parsers.push([`the format ${format}`, formatCheck(format)!]);
  for (const [name, parse] of parsers)
    test(`${name} is read in time in proportion to its length`, async () => {
      for (const unit of UNITS)
        for (const end of ENDS)
          await isLinear(`${name} of ${JSON.stringify(unit)}`, 64_000, (size) =>
            quietly(() => parse(unit.repeat(size / unit.length) + end)),
          );
    });

  test("YAML is read and written in time in proportion to its length", async () => {
    for (const unit of UNITS)
      for (const end of ENDS) {
        const of = (size: number): string => unit.repeat(size / unit.length) + end;
        const name = `YAML of ${JSON.stringify(unit)}`;
        await isLinear(name, 64_000, (size) => () => writeYaml({ a: of(size), [of(size)]: 1 }));
        for (const before of ["", "a: ", "- ", "'", '"', "? ", "a: |\n "])
          await isLinear(
            name,
            64_000,
            (size) => () => parseYaml(before + of(size)).catch(() => {}),
          );
        const twice = (size: number): string => `${of(size)}: 1\n${of(size)}: 1\n`;
        await isLinear(name, 64_000, (size) => () => parseYaml(twice(size)).catch(() => {}));
      }
  });
});

describe("lists that must not repeat", () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `v${i}`);
  test("versions of a webhook", () =>
    isLinear("versions", 16_000, (size) => {
      const webhooks = [{ name: "a.b.c", admissionReviewVersions: names(size) }];
      return () => webhookConfigurationErrors({ webhooks } as never, {} as never);
    }));
  test("versions of a conversion", () =>
    isLinear("versions", 16_000, (size) => {
      const conversion = { strategy: "Webhook", conversionReviewVersions: names(size) };
      const options = { knownVersion: true, anyCaBundle: true };
      return () => conversionErrors(conversion as never, "a", options as never);
    }));
  test("keys of a list of the map type", () => {
    let reads = 0;
    const counted = (list: string[]): string[] =>
      new Proxy(list, {
        get(target, name) {
          reads++;
          return Reflect.get(target, name);
        },
      });
    const keys = names(1000);
    const schema = {
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": counted(keys),
      items: {
        type: "object",
        properties: Object.fromEntries(keys.map((key) => [key, { type: "string" }])),
        required: counted(keys),
      },
    };
    listErrors(schema as never, "a", true);
    mapKeyErrors(schema as never, "a");
    assert.ok(reads > 2000 && reads < 20_000, `${reads} looks at a list of 1,000`);
  });
  test("stored versions of a definition", () =>
    isLinear("stored versions", 16_000, (size) => {
      const versions = names(size).map((name) => ({ name, storage: true }));
      const crd = { status: { storedVersions: names(size) } };
      return () => storedVersionErrors(crd as never, { versions } as never);
    }));
});

type Body = (count: number) => unknown;
const list = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));
const named = (count: number, make: (i: number) => unknown) =>
  Object.fromEntries(list(count, (i) => [`k${i}`, make(i)]));
const configMap = (metadata: object, more: object = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", ...metadata },
  ...more,
});
const entry = (i: number, operation: string, fields: object = { [`f:a${i}`]: {} }) => ({
  manager: `m${i}`,
  operation,
  apiVersion: "v1",
  fieldsType: "FieldsV1",
  fieldsV1: fields,
  time: "2026-01-01T00:00:00Z",
});
const owner = (i: number, more: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  name: `p${i}`,
  uid: `u${i}`,
  ...more,
});
const array = { op: "add", path: "/x" };

/** Bodies of many parts: created, or a patch of the type. */
const BODIES: Readonly<Record<string, readonly [size: number, body: Body, patch?: string]>> = {
  "managers of updates": [
    8000,
    (n) => configMap({ managedFields: list(n, (i) => entry(i, "Update")) }),
  ],
  "managers of applies": [
    8000,
    (n) =>
      configMap({ managedFields: list(n, (i) => entry(i, "Apply")) }, { data: named(n, () => "") }),
  ],
  "managers with the same fields": [
    4000,
    (n) =>
      configMap({ managedFields: list(n, (i) => entry(i, "Update", { "f:a": { "f:b": {} } })) }),
  ],
  "fields of one manager": [
    30_000,
    (n) =>
      configMap({
        managedFields: [
          entry(
            0,
            "Update",
            named(n, () => ({})),
          ),
        ],
      }),
  ],
  owners: [8000, (n) => configMap({ ownerReferences: list(n, owner) })],
  "controlling owners": [
    4000,
    (n) => configMap({ ownerReferences: list(n, (i) => owner(i, { controller: true })) }),
  ],
  "wrong finalizers": [40_000, (n) => configMap({ finalizers: list(n, (i) => `A B${i}`) })],
  "wrong labels": [20_000, (n) => configMap({ labels: named(n, () => "a b") })],
  "wrong keys of data": [
    20_000,
    (n) => configMap({}, { data: { ...named(n, () => ""), "a b": "" } }),
  ],
  "unknown fields": [
    40_000,
    (n) =>
      configMap(
        {},
        named(n, () => 1),
      ),
  ],
  "a long name": [1_000_000, (n) => configMap({ name: "A".repeat(n) })],
  "operations of a JSON patch": [
    10_000,
    (n) => list(n, (i) => ({ op: "add", path: `/data/x${i}`, value: "" })),
    "json-patch",
  ],
  "insertions of a JSON patch": [
    9000,
    (n) => [
      { ...array, value: list(n * 50, () => 1) },
      ...list(n, () => ({ op: "add", path: "/x/1", value: 1 })),
    ],
    "json-patch",
  ],
  "removals of a JSON patch": [
    9000,
    (n) => [
      { ...array, value: list(n * 50, () => 1) },
      ...list(n, () => ({ op: "remove", path: "/x/1" })),
    ],
    "json-patch",
  ],
  "copies of a JSON patch": [
    9000,
    (n) => [
      { ...array, value: list(n, () => 1) },
      ...list(n, () => ({ op: "copy", from: "/x", path: "/y" })),
    ],
    "json-patch",
  ],
  "an ordered list of a strategic merge patch": [
    8000,
    (n) => ({
      metadata: {
        "$setElementOrder/ownerReferences": list(n, (i) => ({ uid: `u${i}` })),
        ownerReferences: list(n, owner),
      },
    }),
    "strategic-merge-patch",
  ],
  conflicts: [
    8000,
    (n) => ({ ...configMap({ name: "large" }), data: named(n, () => "w") }),
    "apply-patch",
  ],
};

describe("bodies", () => {
  let world: ApiWorld;
  const ends: (() => Promise<void>)[] = [];
  const headers = { "content-type": "application/json" };
  before(async () => {
    world = await ApiWorld.open({ after: (end) => void ends.push(end) });
    await world.configMap("base", { a: "b" });
    await world.configMap("large", named(8000, () => "v") as Record<string, string>);
  });
  after(async () => {
    for (const end of ends) await end();
  });

  for (const [name, [size, body, patch]] of Object.entries(BODIES))
    test(`${name} cost in proportion to their number`, async () => {
      await isLinear(name, size, (count) => {
        const sent: Sent = { method: "POST", headers, body: JSON.stringify(body(count)) };
        if (patch === undefined)
          return async () => {
            const { status, json } = await world.request(`${CONFIG_MAPS}?dryRun=All`, sent);
            assert.ok(status < 500, json?.message);
          };
        const isApply = patch === "apply-patch";
        const type = `application/${patch}+${isApply ? "yaml" : "json"}`;
        const target = `${CONFIG_MAPS}/${isApply ? "large" : "base"}?dryRun=All&fieldManager=m`;
        const patched = { ...sent, method: "PATCH", headers: { "content-type": type } };
        return async () => {
          const { status, json } = await world.request(target, patched);
          assert.ok(status < 500, json?.message);
        };
      });
    });

  test("an answer about thousands of faults is bounded", async () => {
    const body = configMap({ finalizers: list(20_000, (i) => `A B${i}`) });
    const sent = { method: "POST", headers, body };
    const { status, json, text } = await world.request(CONFIG_MAPS, sent);
    assert.deepEqual([status, json.details.causes.length], [422, 100]);
    assert.match(json.message, /, and \d+ more\]$/);
    const owners = configMap({
      ownerReferences: list(2000, (i) => owner(i, { controller: true })),
    });
    const other = await world.request(CONFIG_MAPS, { ...sent, body: owners });
    assert.equal(other.json.details.causes.length, 10);
    assert.match(other.json.message, /\.\.\. \(the value is longer\): Only one reference/);
    assert.ok(text.length < 2_000_000 && other.text.length < 500_000);
    const long = await world.request(CONFIG_MAPS, {
      ...sent,
      body: configMap({ name: "A".repeat(1e6) }),
    });
    assert.ok(long.text.length < 100_000);
  });

  test("what a role's rules multiply to is bounded", async () => {
    const rbac = "/apis/rbac.authorization.k8s.io/v1";
    const group = "rbac.authorization.k8s.io";
    const role = (name: string, rules: object[]) => ({
      apiVersion: `${group}/v1`,
      kind: "ClusterRole",
      metadata: { name },
      rules,
    });
    const create = { apiGroups: [group], resources: ["*"], verbs: ["create"] };
    await world.ok(`${rbac}/clusterroles`, {
      method: "POST",
      headers,
      body: role("own", [create]),
    });
    const roleRef = { apiGroup: group, kind: "ClusterRole", name: "own" };
    const body = {
      apiVersion: `${group}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: "own" },
      roleRef,
      subjects: [{ kind: "User", name: "bob", apiGroup: group }],
    };
    await world.ok(`${rbac}/clusterrolebindings`, { method: "POST", headers, body });
    const texts = list(60, (i) => `t${i}`);
    const wide = role("wide", [{ apiGroups: texts, resources: texts, verbs: texts }]);
    const target = `${rbac}/clusterroles?dryRun=All`;
    const sent = { method: "POST", headers, body: wide, user: "bob", groups: ["g"] };
    for (let i = 0; i < 1000; i++) {
      const { status, text } = await world.request(target, sent);
      assert.equal(status, 403);
      // The binding counts once the informer has it.
      if (!text.includes("is attempting to grant")) continue;
      assert.ok(text.length < 500_000);
      return;
    }
    assert.fail("the binding does not count");
  });
});

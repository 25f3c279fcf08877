/** Rules of the built-in kinds, with their real tables and encoding. Texts are kube-apiserver's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@quorate/kube-storage";
import { kindSource, parseFieldSelector } from "@quorate/kube-storage";
import { configMaps } from "../../src/builtin/configmaps.ts";
import { leases } from "../../src/builtin/leases.ts";
import { withGeneratedSelector } from "../../src/builtin/rules/jobs.ts";
import { secrets } from "../../src/builtin/secrets.ts";
import { serviceAccounts } from "../../src/builtin/serviceaccounts.ts";
import { failure, RegistryWorld, START_MS } from "../support/registry-world.ts";

const core = (kind: string) => kindSource("", "v1", kind);
const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** The object as a client's request would arrive. */
function sent(w: RegistryWorld, metadata: object, fields: object = {}): KubeObject {
  const { group, version, kind } = w.spec.kind;
  return kindSource(group, version, kind).decode(w.object(metadata, fields)).object;
}

async function refusal(w: RegistryWorld, name: string, fields: object): Promise<string> {
  const { message } = await failure(w.create(sent(w, { name }, fields)));
  return message.replace(/^[^:]* is invalid: /, "");
}

const KEY_TEXT =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name'," +
  "  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

test("configmaps: keys, size, immutable", async () => {
  const w = new RegistryWorld(configMaps(core("ConfigMap")));
  const data = { "a/b": "c", "..": "d", "..x": "e", dup: "a" };
  assert.equal(
    await refusal(w, "bad", { data, binaryData: { dup: "YQ==" } }),
    `[data[..]: Invalid value: "..": must not be '..', data[..x]: Invalid value: "..x": must ` +
      `not start with '..', data[a/b]: Invalid value: "a/b": ${KEY_TEXT}, data[dup]: Invalid ` +
      'value: "dup": duplicate of key present in binaryData]',
  );
  const half = "x".repeat(512 * 1024);
  const binaryData = { b: base64(`${half}x`) };
  assert.equal(
    await refusal(w, "big", { data: { a: half }, binaryData }),
    "[]: Too long: may not be more than 1048576 bytes",
  );
  await w.create(sent(w, { name: "fits" }, { data: { a: half, b: half } }));
  await w.create(sent(w, { name: "a" }, { data: { x: "1" }, immutable: true }));
  const changed = await failure(w.put(sent(w, { name: "a" }, { data: { x: "2" } })));
  assert.equal(
    changed.message,
    'ConfigMap "a" is invalid: [immutable: Forbidden: field is immutable when `immutable` is ' +
      "set, data: Forbidden: field is immutable when `immutable` is set]",
  );
  await w.put(sent(w, { name: "a", labels: { l: "v" } }, { data: { x: "1" }, immutable: true }));
});

test("core kinds want a domain in finalizers", async () => {
  const w = new RegistryWorld(configMaps(core("ConfigMap")));
  const text = "name is neither a standard finalizer name nor is it fully qualified";
  const refused = await failure(w.create(sent(w, { name: "a", finalizers: ["orphan", "foo"] })));
  assert.equal(
    refused.message,
    `ConfigMap "a" is invalid: metadata.finalizers[1]: Invalid value: "foo": ${text}`,
  );
});

test("secrets: stringData, default type, keys of each type", async () => {
  const w = new RegistryWorld(secrets(core("Secret")));
  const stringData = { a: "b" };
  const made = await w.create(
    sent(w, { name: "s1" }, { stringData, data: { a: "eA==", c: "eQ==" } }),
  );
  assert.deepEqual(made["data"], { a: "Yg==", c: "eQ==" });
  assert.deepEqual([made["type"], made["stringData"]], ["Opaque", undefined]);
  const type = (name: string, data: Record<string, string> = {}) => {
    const encoded = Object.entries(data).map(([key, text]) => [key, base64(text)]);
    return refusal(w, "s", { type: `kubernetes.io/${name}`, data: Object.fromEntries(encoded) });
  };
  const account = "metadata.annotations[kubernetes.io/service-account.name]: Required value";
  assert.equal(await type("service-account-token"), account);
  assert.equal(await type("dockercfg"), "data[.dockercfg]: Required value");
  const json = (problem: string): string =>
    `data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": ${problem}`;
  for (const [text, problem] of [
    ["x{", "invalid character 'x' looking for beginning of value"],
    ["", "unexpected end of JSON input"],
    ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
    ["[1]", "json: cannot unmarshal array into Go value of type map[string]interface {}"],
    ["7", "json: cannot unmarshal number into Go value of type map[string]interface {}"],
  ]) {
    assert.equal(await type("dockerconfigjson", { ".dockerconfigjson": text }), json(problem));
  }
  assert.equal(
    await type("basic-auth"),
    "[data[username]: Required value, data[password]: Required value]",
  );
  assert.equal(await type("ssh-auth"), "data[ssh-privatekey]: Required value");
  assert.equal(await type("tls"), "[data[tls.crt]: Required value, data[tls.key]: Required value]");
  assert.equal(
    await refusal(w, "s7", { data: { "a b": "eA==" } }),
    `data[a b]: Invalid value: "a b": ${KEY_TEXT}`,
  );
  const big = base64("x".repeat(1024 * 1024 + 1));
  const tooLong = "data: Too long: may not be more than 1048576 bytes";
  assert.equal(await refusal(w, "big", { data: { big } }), tooLong);
});

test("secrets: what an update may change, warnings, selection by type", async () => {
  const check = (certificate: string) => (certificate === "" ? undefined : "tls: no match");
  const w = new RegistryWorld(secrets(core("Secret"), check));
  await w.create(sent(w, { name: "s1" }, { data: { c: "eQ==" } }));
  const other = await failure(w.put(sent(w, { name: "s1" }, { type: "kubernetes.io/tls" })));
  assert.equal(
    other.message,
    'Secret "s1" is invalid: [type: Invalid value: "kubernetes.io/tls": field is immutable, ' +
      "data[tls.crt]: Required value, data[tls.key]: Required value]",
  );
  await w.put(sent(w, { name: "s1" }, { immutable: true }));
  const frozen = await failure(w.put(sent(w, { name: "s1" }, { stringData: { n: "b" } })));
  assert.equal(
    frozen.message,
    'Secret "s1" is invalid: [immutable: Forbidden: field is immutable when `immutable` is set, ' +
      "data: Forbidden: field is immutable when `immutable` is set]",
  );
  const data = { "tls.crt": "eA==", "tls.key": "eQ==" };
  await w.create(sent(w, { name: "t" }, { type: "kubernetes.io/tls", data }));
  assert.deepEqual(w.warnings, ["tls: no match"]);
  const opaque = await w.list({ field: parseFieldSelector("type=Opaque") });
  assert.deepEqual(
    opaque.items.map((item) => item.object().metadata.name),
    ["s1"],
  );
});

test("service accounts: secrets hold names only, an old annotation warns once", async () => {
  const w = new RegistryWorld(serviceAccounts(core("ServiceAccount")));
  const annotations = { "kubernetes.io/enforce-mountable-secrets": "true" };
  const made = await w.create(
    sent(w, { name: "sa", annotations }, { secrets: [{ name: "x", namespace: "y", kind: "z" }] }),
  );
  assert.deepEqual(made["secrets"], [{ name: "x" }]);
  const warning =
    "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; " +
    "prefer separate namespaces to isolate access to mounted secrets";
  assert.deepEqual(w.warnings, [warning]);
  await w.put(sent(w, { name: "sa", annotations }));
  assert.equal(w.warnings.length, 1);
  assert.equal(((await w.delete("sa")).result as KubeObject).kind, "ServiceAccount");
});

test("leases: bounds, creation by PUT, a revision is needed", async () => {
  const w = new RegistryWorld(leases(kindSource("coordination.k8s.io", "v1", "Lease")));
  assert.equal(
    await refusal(w, "l", { spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } }),
    "[spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0, " +
      "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0]",
  );
  const spec = { holderIdentity: "me", renewTime: "2026-01-02T03:04:05.123456Z", strategy: "x" };
  const made = await w.put(sent(w, { name: "l" }, { spec }));
  assert.deepEqual(made["spec"], {
    holderIdentity: "me",
    renewTime: "2026-01-02T03:04:05.123456Z",
  });
  const refused = await failure(w.put(sent(w, { name: "l" }, { spec })));
  assert.equal(
    refused.message,
    'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: ' +
      "must be specified for an update",
  );
});

test("tables have kubectl's columns and cells", async () => {
  const rows = async (w: RegistryWorld, fields: object): Promise<string> => {
    const made = await w.create(sent(w, { name: "x" }, fields));
    const { columns, cells } = w.spec.table;
    const shown = cells(made, START_MS + 125_000);
    return columns.map(({ name }, index) => `${name}=${shown[index]}`).join(" ");
  };
  assert.equal(
    await rows(new RegistryWorld(configMaps(core("ConfigMap"))), {
      data: { a: "b" },
      binaryData: { c: "eA==" },
    }),
    "Name=x Data=2 Age=2m5s",
  );
  assert.equal(
    await rows(new RegistryWorld(secrets(core("Secret"))), { data: { c: "eA==" } }),
    "Name=x Type=Opaque Data=1 Age=2m5s",
  );
  assert.equal(
    await rows(new RegistryWorld(serviceAccounts(core("ServiceAccount"))), {}),
    "Name=x Age=2m5s",
  );
  assert.equal(
    await rows(new RegistryWorld(leases(kindSource("coordination.k8s.io", "v1", "Lease"))), {
      spec: { holderIdentity: "me" },
    }),
    "Name=x Holder=me Age=2m5s",
  );
});

test("a job without a name has labels that can be stored until it is refused for that", () => {
  const { spec } = withGeneratedSelector({
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { uid: "u" },
    spec: {},
  });
  const { template } = spec as { template: { metadata: { labels: object } } };
  assert.deepEqual(template.metadata.labels, {
    "batch.kubernetes.io/controller-uid": "u",
    "batch.kubernetes.io/job-name": "",
    "controller-uid": "u",
    "job-name": "",
  });
});

/** KMS plugins from the file of --encryption-provider-config, over real sockets. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { fromUtf8, toUtf8 } from "@quorate/proto";
import { openEncryption } from "../../node/encryption/encryption.ts";
import { PluginClient } from "../../node/encryption/kms-plugin-client.ts";
import { startApiServer } from "../../node/start.ts";
import { parseEncryptionConfig } from "../../src/encryption/encryption-config.ts";
import { FakePlugin } from "./fake-plugin.ts";

const SECRETS = { group: "", resource: "secrets" };
const KEY = "/registry/secrets/ns/name";

interface Kms {
  readonly apiVersion?: unknown;
  readonly name?: unknown;
  readonly endpoint?: unknown;
  readonly timeout?: unknown;
  readonly cachesize?: unknown;
}

function configWith(...all: readonly Kms[]) {
  const providers = [...all.map((kms) => ({ kms })), { identity: {} }];
  const apiVersion = "apiserver.config.k8s.io/v1";
  return {
    apiVersion,
    kind: "EncryptionConfiguration",
    resources: [{ resources: ["secrets"], providers }],
  };
}

function directory(t: { after(task: () => void): void }) {
  const dir = mkdtempSync(join(tmpdir(), "kms-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return { dir, socket: join(dir, "kms.sock"), file: join(dir, "encryption.json") };
}

test("Secrets are encrypted by a KMS plugin, and the health checks know whether it is well", async (t) => {
  const { socket, file } = directory(t);
  const plugin = new FakePlugin();
  const server = await plugin.serve(socket);
  t.after(() => server.close(0));
  const kms = { apiVersion: "v2", name: "vault", endpoint: `unix://${socket}`, timeout: "1s" };
  writeFileSync(file, JSON.stringify(configWith(kms)));
  await using api = await startApiServer({ encryptionConfigFile: file });
  const path = "/api/v1/namespaces/default/secrets";
  const body = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "s" },
    stringData: { a: "hush" },
  };
  const made = await api.request(path, { method: "POST", body });
  assert.equal(made.status, 201);
  const read = await api.request(`${path}/s`);
  assert.equal((read.body as { data: { a: string } }).data.a, "aHVzaA==");
  assert.equal((await api.request("/livez/kms-providers")).status, 200);
  assert.equal(plugin.calls.Encrypt, 1);
});

test("A call of a plugin that is not there, fails, or does not respond, has an error", async (t) => {
  const { socket } = directory(t);
  const options = { endpoint: `unix://${socket}`, timeoutMs: 100 };
  const lonely = new PluginClient(options, nodeClock);
  await assert.rejects(lonely.status(), /dial unix .*kms\.sock/);
  lonely.close();
  const plugin = new FakePlugin();
  const server = await plugin.serve(socket);
  t.after(() => server.close(0));
  const client = new PluginClient({ ...options, timeoutMs: 5000 }, nodeClock);
  assert.deepEqual(await client.status(), { version: "v2", healthz: "ok", keyId: "key-1" });
  const key = await client.encrypt(fromUtf8("seed"));
  assert.equal(toUtf8(await client.decrypt(key)), "seed");
  plugin.failure = "sealed";
  await assert.rejects(client.status(), /code = 13 desc = sealed/);
  plugin.failure = undefined;
  const gate = Promise.withResolvers<void>();
  plugin.gate = gate.promise;
  const hasty = new PluginClient(options, nodeClock);
  await assert.rejects(hasty.status(), /within 100 ms|code = 4/);
  gate.resolve();
  client.close();
  hasty.close();
});

test("A changed file takes effect when its plugins are well", async (t) => {
  const { socket, file } = directory(t);
  const plugin = new FakePlugin();
  const newKms = () => ({
    status: async () => {
      if (plugin.failure !== undefined) throw new Error(plugin.failure);
      return plugin;
    },
    encrypt: async (plaintext: Uint8Array) => plugin.encrypt(plaintext),
    decrypt: async () => new Uint8Array(32),
    close: () => {},
  });
  const { ManualClock } = await import("@quorate/host/testing");
  const clock = new ManualClock();
  writeFileSync(file, JSON.stringify(configWith()));
  const encryption = await openEncryption(file, true, { clock, logger: silentLogger, newKms });
  const stored = async () =>
    toUtf8(await encryption.transformerFor(SECRETS).toStorage(KEY, fromUtf8("x")));
  assert.equal(await stored(), "x");
  plugin.failure = "not there yet";
  const kms = { apiVersion: "v2", name: "vault", endpoint: `unix://${socket}` };
  writeFileSync(file, JSON.stringify(configWith(kms)));
  const { until } = await import("../../../../test/support/until.ts");
  for (let i = 0; i < 3; i++) await clock.advanceAsync(5000);
  assert.equal(await stored(), "x");
  plugin.failure = undefined;
  await until("the file is in force", async () => {
    await clock.advanceAsync(5000);
    return (await stored()).startsWith("k8s:enc:kms:v2:vault:");
  });
  assert.equal(encryption.problem(), undefined);
  plugin.failure = "sealed";
  await until("the plugin is known to be ill", async () => {
    await clock.advanceAsync(5000);
    return encryption.problem() === "KMS provider vault: sealed";
  });
  await encryption.close();
});

test("What is wrong with a KMS provider is refused with Kubernetes' texts", () => {
  const good = { apiVersion: "v2", name: "a", endpoint: "unix:///a" };
  const cases: readonly [readonly Kms[], RegExp][] = [
    [[{ ...good, apiVersion: "v1" }], /kms.apiVersion: Invalid value: "v1": KMSv1 is deprecated/],
    [[{ ...good, apiVersion: undefined }], /KMSv1 is deprecated/],
    [[{ ...good, apiVersion: "v3" }], /only v1 and v2 are supported/],
    [[{ ...good, name: "" }], /kms.name: Required value: name is a mandatory field for a provider/],
    [[{ ...good, name: "a:b" }], /must not contain ':'/],
    [[good, good], /duplicate KMS provider name a, names must be unique/],
    [[{ ...good, endpoint: "" }], /endpoint is a mandatory field for a kms/],
    [[{ ...good, endpoint: "tcp://a" }], /unsupported scheme "tcp" for KMS provider/],
    [[{ ...good, timeout: "0s" }], /timeout should be a positive value/],
    [[{ ...good, timeout: 5 }], /expected a duration/],
    [[{ ...good, cachesize: 1 }], /cachesize is not supported in v2/],
    [[{ ...good, extra: 1 } as Kms], /unknown field/],
  ];
  for (const [all, expected] of cases)
    assert.throws(() => parseEncryptionConfig(configWith(...all)), expected);
});

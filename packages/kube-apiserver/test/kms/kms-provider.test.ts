import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { concat, fromUtf8, toUtf8 } from "@quorate/proto";
import {
  type EncryptedKey,
  encodeEncryptedObject,
  MAX_ANNOTATIONS,
} from "../../node/encryption/kms-messages.ts";
import {
  KmsProvider,
  MAX_ANNOTATION_BYTES,
  MAX_ENCRYPTED_KEY_BYTES,
  MAX_KEY_ID_BYTES,
  MAX_KEYS,
  RETRY_PERIOD_MS,
  SEED_LIFE_MS,
  STATUS_PERIOD_MS,
  seedCipher,
} from "../../node/encryption/kms-provider.ts";
import { FakePlugin } from "./fake-plugin.ts";

const KEY = "/registry/secrets/ns/name";
const VALUE = fromUtf8("hush");

/** A provider over a plugin in memory. */
async function opened(plugin = new FakePlugin()) {
  const clock = new ManualClock();
  const fails = async <T>(name: keyof FakePlugin["calls"], body: () => T): Promise<T> => {
    plugin.calls[name]++;
    await plugin.gate;
    if (plugin.failure !== undefined) throw new Error(plugin.failure);
    return body();
  };
  const service = {
    status: () => fails("Status", () => plugin),
    encrypt: (plaintext: Uint8Array) => fails("Encrypt", () => plugin.encrypt(plaintext)),
    decrypt: (key: EncryptedKey) => fails("Decrypt", () => plugin.decrypt(key)),
    close: () => {},
  };
  const provider = new KmsProvider("vault", service, { clock, logger: silentLogger });
  await provider.start();
  const pass = async (ms: number): Promise<void> => {
    await clock.advanceAsync(ms);
    await provider.check();
  };
  return { plugin, clock, provider, service, pass };
}

test("Values are encrypted with a seed that the plugin encrypts; reads call it once for a seed", async () => {
  const { plugin, provider, service, clock } = await opened();
  const stored = await Promise.all([1, 2, 3].map(() => provider.toStorage(KEY, VALUE)));
  assert.ok(stored.every((bytes) => !Buffer.from(bytes).includes("hush")));
  assert.equal(new Set(stored.map((bytes) => Buffer.from(bytes).toString("hex"))).size, 3);
  assert.deepEqual(plugin.calls, { Status: 1, Encrypt: 1, Decrypt: 0 });
  const other = new KmsProvider("vault", service, { clock, logger: silentLogger });
  await other.start();
  const read = await Promise.all(stored.map((bytes) => other.fromStorage(KEY, bytes)));
  assert.ok(read.every(({ value, stale }) => toUtf8(value) === "hush" && !stale));
  assert.equal(plugin.calls.Decrypt, 1);
  await assert.rejects(
    other.fromStorage("/registry/secrets/ns/other", stored[0]),
    /authentication/,
  );
});

test("A new key id makes a new seed; older values are read, and are stale", async () => {
  const { plugin, provider, pass } = await opened();
  const old = await provider.toStorage(KEY, VALUE);
  plugin.keyId = "key-2";
  await pass(STATUS_PERIOD_MS);
  const next = await provider.toStorage(KEY, VALUE);
  assert.ok(Buffer.from(next).includes("key-2"));
  assert.equal((await provider.fromStorage(KEY, old)).stale, true);
  assert.equal((await provider.fromStorage(KEY, next)).stale, false);
});

test("While the plugin fails, values are written for three minutes and read for longer", async () => {
  const { plugin, provider, pass } = await opened();
  const stored = await provider.toStorage(KEY, VALUE);
  plugin.failure = "the vault is sealed";
  await pass(STATUS_PERIOD_MS);
  assert.match(provider.problem!, /the vault is sealed/);
  await provider.toStorage(KEY, VALUE);
  await pass(SEED_LIFE_MS);
  await assert.rejects(provider.toStorage(KEY, VALUE), /keyID hash "sha256:\w+" expired: .*sealed/);
  assert.equal(toUtf8((await provider.fromStorage(KEY, stored)).value), "hush");
  plugin.failure = undefined;
  const { Status } = plugin.calls;
  await pass(RETRY_PERIOD_MS);
  assert.ok(plugin.calls.Status > Status);
  assert.equal(provider.problem, undefined);
  await provider.toStorage(KEY, VALUE);
  assert.equal(plugin.calls.Encrypt, 1);
});

test("A plugin that is not there at the start is waited for", async () => {
  const plugin = new FakePlugin();
  plugin.failure = "connection refused";
  const { provider, pass } = await opened(plugin);
  await assert.rejects(provider.toStorage(KEY, VALUE), /KMS provider vault: connection refused/);
  plugin.failure = undefined;
  await pass(RETRY_PERIOD_MS);
  await provider.firstHealthy;
  await provider.toStorage(KEY, VALUE);
});

test("A plugin that breaks the protocol is not well, and the seed before stays", async () => {
  const { plugin, provider, pass } = await opened();
  const big = new Uint8Array(MAX_ANNOTATION_BYTES);
  const cases: readonly [() => void, RegExp][] = [
    [() => (plugin.healthz = "no"), /got unexpected healthz status: no/],
    [() => (plugin.version = "v1"), /expected KMSv2 API version v2, got v1/],
    [() => (plugin.version = "v2beta1"), /should not change after the initial status/],
    [() => (plugin.keyId = ""), /keyID is empty/],
    [() => (plugin.keyId = "x".repeat(MAX_KEY_ID_BYTES + 1)), /exceeds the max size of 1024/],
    [change((key) => ({ ...key, keyId: "other" })), /failed to rotate DEK/],
    [change((key) => ({ ...key, ciphertext: new Uint8Array(0) })), /DEK source is empty/],
    [
      change((key) => ({ ...key, ciphertext: new Uint8Array(MAX_ENCRYPTED_KEY_BYTES + 1) })),
      /is 1025 bytes, which exceeds the max size/,
    ],
    [change((key) => ({ ...key, annotations: new Map([["nodots", big]]) })), /no fully qualified/],
    [change((key) => ({ ...key, annotations: new Map([["a.b", big]]) })), /annotations is 32771/],
  ];
  function change(by: FakePlugin["change"]): () => void {
    return () => {
      plugin.keyId = "key-new";
      plugin.change = by;
    };
  }
  for (const [breakIt, expected] of cases) {
    breakIt();
    await pass(RETRY_PERIOD_MS);
    assert.match(provider.problem ?? "", expected);
    Object.assign(plugin, { healthz: "ok", version: "v2", keyId: "key-1" });
    plugin.change = (key) => key;
    await pass(RETRY_PERIOD_MS);
    assert.equal(provider.problem, undefined);
    assert.ok(Buffer.from(await provider.toStorage(KEY, VALUE)).includes("key-1"));
  }
});

test("Values that are no encrypted objects are refused; AES-GCM keys of older servers are read", async () => {
  const { plugin, provider } = await opened();
  const secret = Buffer.alloc(32, 7);
  const { ciphers } = await import("../../node/encryption/ciphers.ts");
  const data = await ciphers.aesgcm(secret).toStorage(KEY, VALUE);
  const object = { ...plugin.encrypt(secret), data, source: 0 };
  const { value, stale } = await provider.fromStorage(KEY, encodeEncryptedObject(object));
  assert.deepEqual([toUtf8(value), stale], ["hush", true]);
  for (const [bytes, expected] of [
    [new Uint8Array(0), /encrypted data is empty/],
    [Uint8Array.of(0xff, 0xff), /./],
    [encodeEncryptedObject({ ...object, source: 2 }), /unknown encryptedDEKSourceType: 2/],
    [encodeEncryptedObject({ ...object, keyId: "" }), /keyID is empty/],
    [encodeEncryptedObject({ ...object, source: 1 }), /shorter than the required size/],
  ] as const)
    await assert.rejects(provider.fromStorage(KEY, bytes), expected);
  const entry = Uint8Array.of(0x22, 5, 0x0a, 3, 0x61, 0x2e, 0x62);
  const many = concat([encodeEncryptedObject(object), ...Array(MAX_ANNOTATIONS + 1).fill(entry)]);
  await assert.rejects(provider.fromStorage(KEY, many), /more than 1000 annotations/);
});

test("Decrypted keys are bounded; a failed decryption is tried again", async () => {
  const { plugin, provider } = await opened();
  const objects: Uint8Array[] = [];
  for (let i = 0; i <= MAX_KEYS; i++) {
    const seed = Buffer.alloc(32, i);
    seed.writeUInt32BE(i);
    const data = await seedCipher(seed).toStorage(KEY, VALUE);
    objects.push(encodeEncryptedObject({ ...plugin.encrypt(seed), data, source: 1 }));
  }
  plugin.failure = "busy";
  await assert.rejects(provider.fromStorage(KEY, objects[0]), /failed to decrypt DEK, error: busy/);
  plugin.failure = undefined;
  for (const object of objects) await provider.fromStorage(KEY, object);
  const { Decrypt } = plugin.calls;
  await provider.fromStorage(KEY, objects.at(-1)!);
  assert.equal(plugin.calls.Decrypt, Decrypt);
  await provider.fromStorage(KEY, objects[0]);
  assert.equal(plugin.calls.Decrypt, Decrypt + 1);
});

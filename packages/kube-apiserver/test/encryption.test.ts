/** Encryption at rest: the file, its errors, the choice of keys, bytes that Kubernetes wrote. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { fromUtf8, toUtf8 } from "@quorate/proto";
import { type Encryption, openEncryption } from "../node/encryption/encryption.ts";
import { parseEncryptionConfig } from "../src/encryption/encryption-config.ts";

const SECRETS = { group: "", resource: "secrets" };
const KEY = "/registry/secrets/ns/name";

/** A key of 32 equal bytes in base64. */
function secret(byte: number, length = 32): string {
  return Buffer.alloc(length, byte).toString("base64");
}

function configWith(providers: readonly unknown[], resources: readonly string[] = ["secrets"]) {
  return {
    apiVersion: "apiserver.config.k8s.io/v1",
    kind: "EncryptionConfiguration",
    resources: [{ resources, providers }],
  };
}

const keys = (name: string, byte: number, length = 32) => ({
  keys: [{ name, secret: secret(byte, length) }],
});

/** Opens a file with this value and runs `body`; the file can be written again. */
async function withFile(
  value: unknown,
  body: (it: {
    readonly encryption: Encryption;
    readonly clock: ManualClock;
    rewrite(value: unknown): Promise<void>;
  }) => Promise<void>,
  reloads = false,
): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "quorate-encryption-"));
  const path = join(dir, "config.yaml");
  // JSON is YAML.
  const write = (content: unknown): void =>
    writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  const clock = new ManualClock();
  try {
    write(value);
    const encryption = await openEncryption(path, reloads, { clock, logger: silentLogger });
    const rewrite = async (content: unknown): Promise<void> => {
      write(content);
      clock.advance(5000);
    };
    await body({ encryption, clock, rewrite });
    await encryption.close();
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const text = async (encryption: Encryption, bytes: Uint8Array, key = KEY): Promise<string> =>
  toUtf8((await encryption.transformerFor(SECRETS).fromStorage(key, bytes)).value);

for (const cipher of ["aesgcm", "aescbc", "secretbox"])
  for (const size of cipher === "secretbox" ? [32] : [16, 24, 32])
    test(`${cipher} with a key of ${size} bytes hides a value and returns it`, async () => {
      await withFile(configWith([{ [cipher]: keys("k1", 7, size) }]), async ({ encryption }) => {
        const transformer = encryption.transformerFor(SECRETS);
        for (const clear of ["", "x", "a secret of sixteen", "s".repeat(5000)]) {
          const stored = await transformer.toStorage(KEY, fromUtf8(clear));
          const prefix = `k8s:enc:${cipher}:v1:k1:`;
          assert.equal(toUtf8(stored.subarray(0, prefix.length)), prefix);
          if (clear.length > 1) assert.ok(!Buffer.from(stored).includes(clear));
          const again = await transformer.toStorage(KEY, fromUtf8(clear));
          assert.notDeepEqual(again, stored);
          const { value, stale } = await transformer.fromStorage(KEY, stored);
          assert.deepEqual([toUtf8(value), stale], [clear, false]);
        }
      });
    });

test("values that Kubernetes 1.36 encrypted are read", async () => {
  // Written by k8s.io/apiserver/pkg/storage/value/encrypt with a key of 32 bytes of 7.
  const path = join(import.meta.dirname, "fixtures/encrypted-by-kubernetes.json");
  const values = JSON.parse(readFileSync(path, "utf8")) as Record<string, Record<string, string>>;
  for (const [cipher, byClear] of Object.entries(values))
    await withFile(configWith([{ [cipher]: keys("k1", 7) }]), async ({ encryption }) => {
      for (const [clear, stored] of Object.entries(byClear))
        assert.equal(await text(encryption, Buffer.from(stored, "base64")), clear);
    });
});

test("a changed value, or one at another key, is refused", async () => {
  for (const cipher of ["aesgcm", "secretbox"])
    await withFile(configWith([{ [cipher]: keys("k1", 7) }]), async ({ encryption }) => {
      const transformer = encryption.transformerFor(SECRETS);
      const stored = (await transformer.toStorage(KEY, fromUtf8("hello"))).slice();
      if (cipher === "aesgcm")
        await assert.rejects(text(encryption, stored, `${KEY}2`), /message authentication failed/);
      stored[stored.length - 1] ^= 1;
      await assert.rejects(text(encryption, stored), /message authentication failed/);
      await assert.rejects(text(encryption, stored.subarray(0, 30)), /shorter than the required/);
    });
  await withFile(configWith([{ aescbc: keys("k1", 7) }]), async ({ encryption }) => {
    const stored = await encryption.transformerFor(SECRETS).toStorage(KEY, fromUtf8("hello"));
    await assert.rejects(text(encryption, stored.subarray(0, -1)), /not a multiple of the block/);
    await assert.rejects(text(encryption, stored.subarray(0, 25)), /shorter than the required/);
  });
});

test("the first key writes, all read, and values of others are stale", async () => {
  const [one, two] = [{ aesgcm: keys("k1", 1) }, { secretbox: keys("k2", 2) }];
  let old: Uint8Array = new Uint8Array(0);
  const clear = fromUtf8('{"clear":true}');
  await withFile(configWith([one, { identity: {} }]), async ({ encryption }) => {
    const transformer = encryption.transformerFor(SECRETS);
    old = await transformer.toStorage(KEY, fromUtf8("old"));
    assert.equal((await transformer.fromStorage(KEY, clear)).stale, true);
  });
  await withFile(configWith([two, one]), async ({ encryption }) => {
    const transformer = encryption.transformerFor(SECRETS);
    const { value, stale } = await transformer.fromStorage(KEY, old);
    assert.deepEqual([toUtf8(value), stale], ["old", true]);
    const fresh = await transformer.toStorage(KEY, value);
    assert.equal((await transformer.fromStorage(KEY, fresh)).stale, false);
    await assert.rejects(
      async () => transformer.fromStorage(KEY, clear),
      /^Error: no matching prefix found$/,
    );
  });
  await withFile(configWith([{ identity: {} }, one]), async ({ encryption }) => {
    const transformer = encryption.transformerFor(SECRETS);
    assert.deepEqual(await transformer.toStorage(KEY, clear), clear);
    assert.equal((await transformer.fromStorage(KEY, clear)).stale, false);
    assert.equal((await transformer.fromStorage(KEY, old)).stale, true);
  });
  const rotated = { aesgcm: { keys: [...keys("k3", 3).keys, ...keys("k1", 1).keys] } };
  await withFile(configWith([rotated]), async ({ encryption }) => {
    const { value, stale } = await encryption.transformerFor(SECRETS).fromStorage(KEY, old);
    assert.deepEqual([toUtf8(value), stale], ["old", true]);
  });
  await withFile(configWith([{ aesgcm: keys("k9", 1) }]), async ({ encryption }) => {
    await assert.rejects(text(encryption, old), /no matching key was found for the provided AES/);
  });
});

test("resources choose their rule: their own, their group's, that for all, none", async () => {
  const rule = (resources: string[], name: string) => ({
    resources,
    providers: [{ aescbc: keys(name, 1) }],
  });
  const config = {
    ...configWith([]),
    resources: [
      rule(["secrets", "widgets.example.org"], "own"),
      rule(["*.example.org"], "group"),
      rule(["*."], "core"),
    ],
  };
  const chosen = async (encryption: Encryption, resource: string, group: string) => {
    const stored = await encryption
      .transformerFor({ group, resource })
      .toStorage(KEY, fromUtf8("x"));
    return /v1:(\w+):/.exec(toUtf8(stored))?.[1];
  };
  await withFile(config, async ({ encryption }) => {
    assert.equal(await chosen(encryption, "secrets", ""), "own");
    assert.equal(await chosen(encryption, "widgets", "example.org"), "own");
    assert.equal(await chosen(encryption, "gadgets", "example.org"), "group");
    assert.equal(await chosen(encryption, "configmaps", ""), "core");
    assert.equal(await chosen(encryption, "deployments", "apps"), undefined);
    await assert.rejects(
      async () =>
        encryption
          .transformerFor({ group: "apps", resource: "deployments" })
          .fromStorage(KEY, fromUtf8("k8s:enc:aescbc:v1:own:zzz")),
      /identity transformer tried to read encrypted data/,
    );
  });
  await withFile(configWith([{ aescbc: keys("all", 1) }], ["*.*"]), async ({ encryption }) => {
    assert.equal(await chosen(encryption, "deployments", "apps"), "all");
  });
  const masked = { ...config, resources: [rule(["*.*"], "a"), rule(["secrets"], "b")] };
  await assert.rejects(
    withFile(masked, async () => {}),
    /resource "secrets" is masked by earlier rule "\*\.\*"/,
  );
});

test("a changed file takes effect, and a wrong one does not", async () => {
  const first = configWith([{ aesgcm: keys("k1", 1) }]);
  const second = configWith([{ aesgcm: keys("k2", 2) }, { aesgcm: keys("k1", 1) }]);
  await withFile(
    first,
    async ({ encryption, rewrite }) => {
      const transformer = encryption.transformerFor(SECRETS);
      const old = await transformer.toStorage(KEY, fromUtf8("old"));
      await rewrite(second);
      while (!(await transformer.fromStorage(KEY, old)).stale)
        await new Promise((resolve) => setImmediate(resolve));
      assert.match(toUtf8(await transformer.toStorage(KEY, old)), /^k8s:enc:aesgcm:v1:k2:/);
      await rewrite("resources: [");
      assert.equal((await transformer.fromStorage(KEY, old)).stale, true);
    },
    true,
  );
});

const errors: readonly (readonly [string, unknown, RegExp])[] = [
  [
    "no rules",
    { ...configWith([]), resources: [] },
    /^resources: Required value: at least one resources is required$/,
  ],
  [
    "no resources",
    configWith([{ identity: {} }], []),
    /^resources\[0\]\.resources: Required value: at least one resources\[0\]\.resources is required$/,
  ],
  ["no providers", configWith([]), /^resources\[0\]\.providers: Required value: at least one/],
  [
    "an empty provider",
    configWith([{}]),
    /provider does not contain any of the expected providers/,
  ],
  [
    "two in one",
    configWith([{ identity: {}, aescbc: keys("a", 1) }]),
    /more than one provider specified in a single element/,
  ],
  ["KMS v1", configWith([{ kms: { name: "x", endpoint: "unix:///x" } }]), /KMSv1 is deprecated/],
  [
    "no keys",
    configWith([{ aesgcm: {} }]),
    /providers\[0\]\.aesgcm\.keys: Required value: at least one keys is required/,
  ],
  [
    "no name",
    configWith([{ aesgcm: keys("", 1) }]),
    /keys\[0\]\.name: Required value: name is a mandatory field for a key/,
  ],
  [
    "no secret",
    configWith([{ aesgcm: { keys: [{ name: "a" }] } }]),
    /keys\[0\]\.secret: Required value: secret is a mandatory field for a key/,
  ],
  [
    "no base64",
    configWith([{ aesgcm: { keys: [{ name: "a", secret: "hush!" }] } }]),
    /^resources\[0\]\.providers\[0\]\.aesgcm\.keys\[0\]\.secret: Invalid value: "REDACTED": secrets must be base64 encoded$/,
  ],
  [
    "a short key",
    configWith([{ secretbox: keys("a", 1, 16) }]),
    /"REDACTED": secret is not of the expected length, got 16, expected one of \[32\]/,
  ],
  [
    "too many rules",
    { ...configWith([]), resources: Array.from({ length: 1001 }, () => ({})) },
    /^resources: more than 1000 elements$/,
  ],
  [
    "capitals",
    configWith([{ identity: {} }], ["Secrets"]),
    /resources\[0\]\.resources\[0\]: Invalid value: "Secrets": resource name should not contain capital letters/,
  ],
  [
    "a star",
    configWith([{ identity: {} }], ["*"]),
    /use '\*\.' to encrypt all the resources from core API group/,
  ],
  [
    "a resource of all groups",
    configWith([{ identity: {} }], ["secrets.*"]),
    /encrypting the same resource across groups is not supported/,
  ],
  [
    "twice",
    configWith([{ identity: {} }], ["secrets", "secrets"]),
    /Invalid value: \["secrets","secrets"\]: the same resource cannot be specified multiple times/,
  ],
  [
    "overlap",
    configWith([{ identity: {} }], ["secrets", "*."]),
    /using overlapping resources such as 'secrets' and '\*\.'/,
  ],
  [
    "events",
    configWith([{ identity: {} }], ["events.events.k8s.io"]),
    /Use 'events' instead in the config file/,
  ],
  ["another kind", { ...configWith([]), kind: "Pod" }, /no kind "Pod" is registered/],
  [
    "an unknown field",
    { ...configWith([]), more: 1 },
    /strict decoding error: unknown field "more"/,
  ],
  ["no object", [], /the file: expected an object/],
];

for (const [name, value, message] of errors)
  test(`a file with ${name} is refused`, () => {
    assert.throws(
      () => parseEncryptionConfig(value),
      (error: Error) => {
        assert.match(error.message, message);
        assert.ok(!error.message.includes(secret(1)), "shows a secret");
        return true;
      },
    );
  });

test("a file that is no YAML is refused without showing it", async () => {
  await assert.rejects(
    withFile(`a: [${secret(1)}`, async () => {}),
    (error: Error) => {
      assert.match(error.message, /error while parsing file .*is no YAML at line \d/);
      assert.ok(!error.message.includes(secret(1)));
      return true;
    },
  );
  await assert.rejects(
    withFile("", async () => {}),
    /encryption provider configuration file is empty/,
  );
});

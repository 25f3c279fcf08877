/**
 * Encryption at rest, end to end: keys are rotated over a running member, old and new values are
 * read, and nothing of them is in clear text in LevelDB's files, the log, the member's snapshots or
 * one taken by a client. An object that is not encrypted shows that the search finds clear text.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import type { Client } from "@quorate/client";
import { connect } from "@quorate/client/node";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { EtcdStore, jsonCodec, LeaseManager } from "@quorate/kube-storage";
import { listOptions, POD, pod, podAttributes, testClock } from "@quorate/kube-storage/testing";
import { concat } from "@quorate/proto";
import { withCluster } from "../../../test/support/cluster.ts";
import { LibraryCluster } from "../node/cluster.ts";
import { openEncryption } from "../node/encryption/encryption.ts";

const SECRET = "hushed-marker-5b1f9a";
const OPEN = "public-marker-c07e42";
const OBJECTS = 20;

const keyOf = (name: string, byte: number) => ({
  keys: [{ name, secret: Buffer.alloc(32, byte).toString("base64") }],
});

/** The storage of one resource with the transformers of a configuration. */
async function storageWith(
  client: Client,
  resource: string,
  providers: readonly unknown[],
  dir: string,
): Promise<EtcdStore> {
  const path = join(dir, "encryption.yaml");
  const rule = { resources: ["secrets"], providers };
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: "apiserver.config.k8s.io/v1",
      kind: "EncryptionConfiguration",
      resources: [rule],
    }),
  );
  const clock = new ManualClock();
  const encryption = await openEncryption(path, false, { clock, logger: silentLogger });
  const cluster = new LibraryCluster(client);
  return new EtcdStore(
    { kind: POD, root: "/registry", resourcePrefix: `/${resource}` },
    {
      client: cluster,
      codec: jsonCodec,
      transformer: encryption.transformerFor({ group: "", resource }),
      attributesOf: podAttributes,
      leases: new LeaseManager(
        (ttl) => cluster.grantLease(ttl),
        () => testClock.monotonicMs(),
      ),
      clock: testClock,
    },
  );
}

const object = (at: number, marker: string) =>
  pod("ns", `object-${at}`, { annotations: { value: `${marker}-${at}` } });

/** Files below a directory that contain the text. */
function filesWith(dir: string, text: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(text));
}

async function snapshotOf(client: Client): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const { blob } of client.snapshot()) parts.push(blob);
  return Buffer.from(concat(parts));
}

/** Every value as the cluster has it. */
async function providersOf(client: Client): Promise<Set<string>> {
  const { kvs } = await client.get("/registry/secrets/", { prefix: true });
  return new Set(
    kvs.map(({ value }) => /^k8s:enc:(\w+:v1:\w+):/.exec(Buffer.from(value).toString())![1]),
  );
}

async function readAll(storage: EtcdStore): Promise<void> {
  const { items } = await storage.getList("/secrets/", listOptions());
  const values = items.map((item) => item.object().metadata.annotations!.value).sort();
  const expected = Array.from({ length: OBJECTS }, (_, at) => `${SECRET}-${at}`).sort();
  assert.deepEqual(values, expected);
}

test("rotated keys read old and new, and no file has clear text", async () => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-at-rest-"));
  const flags = ["--snapshot-count=10", "--snapshot-catchup-entries=5"];
  try {
    await withCluster({ size: 1, flags }, async (cluster) => {
      const client = connect({ endpoints: cluster.endpoints });
      const [one, two] = [{ aesgcm: keyOf("k1", 1) }, { secretbox: keyOf("k2", 2) }];
      const before = await storageWith(client, "secrets", [one], dir);
      for (let at = 0; at < OBJECTS / 2; at++)
        await before.create(`/secrets/ns/object-${at}`, object(at, SECRET), 0);
      const clear = await storageWith(client, "configmaps", [one], dir);
      for (let at = 0; at < OBJECTS; at++)
        await clear.create(`/configmaps/ns/object-${at}`, object(at, OPEN), 0);

      const during = await storageWith(client, "secrets", [two, one], dir);
      for (let at = OBJECTS / 2; at < OBJECTS; at++)
        await during.create(`/secrets/ns/object-${at}`, object(at, SECRET), 0);
      await readAll(during);
      assert.deepEqual(await providersOf(client), new Set(["aesgcm:v1:k1", "secretbox:v1:k2"]));
      // An update that changes nothing writes with the first key.
      for (let at = 0; at < OBJECTS; at++)
        await during.guaranteedUpdate(
          `/secrets/ns/object-${at}`,
          (present) => ({ object: present! }),
          { ignoreNotFound: false },
        );
      assert.deepEqual(await providersOf(client), new Set(["secretbox:v1:k2"]));
      const after = await storageWith(client, "secrets", [two], dir);
      await readAll(after);
      await assert.rejects(
        before.getList("/secrets/", listOptions()),
        /unable to transform key "\/registry\/secrets\/ns\/object-0": no matching prefix found/,
      );

      const snapshot = await snapshotOf(client);
      client.close();
      const [member] = cluster.members;
      await member.terminate();
      assert.ok(snapshot.includes(OPEN), "the search does not find clear text in the snapshot");
      assert.ok(!snapshot.includes(SECRET), "clear text in the snapshot");
      const open = filesWith(cluster.dir, OPEN);
      for (const place of ["member/wal", "member/store"])
        assert.ok(
          open.some((path) => path.includes(place)),
          `the search finds no clear text in ${place}, only in ${open.join(", ")}`,
        );
      assert.deepEqual(filesWith(cluster.dir, SECRET), []);
      for (const part of ["hushed", Buffer.from(SECRET).toString("base64")])
        assert.deepEqual(filesWith(cluster.dir, part), []);
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

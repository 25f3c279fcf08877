/**
 * A state in which authentication is enabled is refused where it comes in, unless that is
 * overridden; its records are kept.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type BoltRecord, boltOutput } from "@quorate/bolt";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { concat, fromUtf8, raftpb } from "@quorate/proto";
import {
  AuthEnabledError,
  importEtcdFile,
  type NewCluster,
  receiveSnapshot,
  Store,
} from "../index.ts";
import { member } from "./store-log.ts";

const FILE = "/etcd.db";
const cluster: NewCluster = {
  members: [{ ...member(7n), name: "seven" }],
  position: { index: 1, term: 1, confState: raftpb.ConfState.create({ voters: [7n] }) },
};

const auth = (value: readonly number[]): BoltRecord[] => [
  [fromUtf8("authEnabled"), new Uint8Array(value)],
  [fromUtf8("authRevision"), new Uint8Array([0, 0, 0, 0, 0, 0, 0, 3])],
];
const root: BoltRecord = [fromUtf8("root"), fromUtf8("\x0a\x04root\x12\x04hash\x1a\x04root")];

/** A machine with etcd's database file on it. */
async function machine(
  authRecords: readonly BoltRecord[],
): Promise<{ disk: MemoryDisk; keyspaces: MemoryKeyspaceOpener }> {
  const disk = new MemoryDisk();
  for (const dir of ["/store", "/other"]) disk.makeDir(dir);
  const buckets: Record<string, readonly BoltRecord[]> = {
    auth: authRecords,
    authUsers: [root],
    key: [],
    meta: [],
  };
  const scan = (records: readonly BoltRecord[]) =>
    async function* () {
      yield records;
    };
  const output = await boltOutput(
    Object.entries(buckets).map(([name, records]) => ({ name, scan: scan(records) })),
  );
  const chunks: Uint8Array[] = [];
  for await (const chunk of output.chunks()) chunks.push(chunk);
  const file = disk.open(FILE, "create");
  file.write([concat(chunks)], 0);
  file.close();
  return { disk, keyspaces: new MemoryKeyspaceOpener(disk) };
}

async function bytesOf(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

for (const value of [[1], [2], [0, 1]]) {
  test(`a file whose record says ${value} is refused, and nothing is left of the attempt`, async () => {
    const { disk, keyspaces } = await machine(auth(value));
    await assert.rejects(
      importEtcdFile({ disk, keyspaces }, FILE, "/store", cluster),
      (error: Error) => {
        assert.ok(error instanceof AuthEnabledError);
        assert.match(
          error.message,
          /^\/etcd\.db: authentication is enabled in it, .* --unsafe-serve-without-auth/,
        );
        return true;
      },
    );
    assert.deepEqual(disk.list("/store"), []);
  });
}

test("a file without authentication, or in which it was disabled, is taken", async () => {
  for (const records of [[], auth([0]), auth([])]) {
    const { disk, keyspaces } = await machine(records);
    await importEtcdFile({ disk, keyspaces }, FILE, "/store", cluster);
    const store = await Store.open(keyspaces, "/store");
    assert.equal(store.isAuthEnabled, false);
    await store.close({ flush: false });
  }
});

test("with the override the records are kept, through a snapshot to another member and one for etcd", async () => {
  const { disk, keyspaces } = await machine(auth([1]));
  await importEtcdFile({ disk, keyspaces }, FILE, "/store", cluster, { ignoreAuth: true });
  const store = await Store.open(keyspaces, "/store");
  assert.equal(store.isAuthEnabled, true);

  const snapshot = await store.snapshot();
  const sent = await bytesOf(snapshot.chunks);
  await snapshot.close();
  const { index } = snapshot.position;
  const stream = async function* () {
    yield* sent;
  };
  await assert.rejects(
    receiveSnapshot({ disk, keyspaces }, "/other", index, stream()),
    AuthEnabledError,
  );
  assert.deepEqual(
    disk.list("/other"),
    [],
    "a refused snapshot leaves nothing that a start could put in place",
  );
  await receiveSnapshot({ disk, keyspaces, ignoreAuth: true }, "/other", index, stream());
  assert.deepEqual(disk.list("/other"), [`db.${index}.recv`]);

  const exported = await store.etcdSnapshot("3.7.0");
  const file = Buffer.concat(await bytesOf(exported.chunks()));
  await exported.close();
  for (const text of ["authEnabled", "authRevision", "\x0a\x04root\x12\x04hash\x1a\x04root"])
    assert.ok(file.includes(text), text);
  await store.close({ flush: false });
});

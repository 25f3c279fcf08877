/** Deletions of many keys at once: what they take of the memory, and when it is released. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { fromLatin1, LeaseRevokeRequest } from "@quorate/proto";
import { runSteps } from "../src/backend/steps.ts";
import { KeyIndex, LATEST, NONE } from "../src/mvcc/key-index.ts";
import { revokeInSteps } from "../src/requests/lease.ts";
import { Store } from "../src/store.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;
const MIB = 2 ** 20;
const KEYS = 60_000;

function heapBytes(): number {
  for (let i = 0; i < 3; i++) collectGarbage();
  return process.memoryUsage().heapUsed;
}

const keyOf = (i: number): string => `k${String(i).padStart(6, "0")}`;

function put(store: Store, key: string, lease: bigint): void {
  const txn = store.mvcc.begin(store.lessor);
  txn.put(fromLatin1(key), key, new Uint8Array(1), lease);
  txn.commit();
}

/** A store with keys on one lease. */
async function filled(lease: bigint): Promise<Store> {
  const disk = new MemoryDisk();
  disk.makeDir("/store");
  const store = await Store.open(new MemoryKeyspaceOpener(disk), "/store");
  store.lessor.grant(lease, 60);
  for (let i = 0; i < KEYS; i++) put(store, keyOf(i), lease);
  await store.flush();
  return store;
}

const revoke = ({ mvcc, lessor }: Store, ID: bigint) =>
  runSteps(revokeInSteps(mvcc, lessor, LeaseRevokeRequest.create({ ID })));

test("a key that was put once and deleted has its put, at each revision and for compaction", () => {
  const make = () => {
    const index = KeyIndex.put(4, 3, true);
    index.sizeBytes = 70;
    index.delete(8, 1);
    index.sizeBytes = 30;
    return index;
  };
  const index = make();
  const found = [3, 4, 7, 8].map((at) => index.find(at));
  assert.deepEqual(found, [NONE, 0, 0, NONE]);
  assert.deepEqual([index.mainAt(0), index.subAt(0), index.sizeAt(0)], [4, 3, 70]);
  assert.deepEqual([index.main, index.sub, index.sizeAt(LATEST)], [8, 1, 30]);
  assert.ok(index.isValueAt(4, 3, 7) && !index.isValueAt(4, 3, 8));
  const compacted = (at: number, most = 9) => {
    const one = make();
    const dropped: (number | boolean)[][] = [];
    const isEmpty = one.compact(at, most, (...event) => dropped.push(event));
    return [dropped, isEmpty, one.find(4)];
  };
  assert.deepEqual(compacted(7), [[], false, 0]);
  assert.deepEqual(compacted(8), [[[4, 3, false, 70]], false, NONE]);
  const both = [
    [4, 3, false, 70],
    [8, 1, true, 30],
  ];
  assert.deepEqual(compacted(9), [both, true, NONE]);
  assert.deepEqual(compacted(9, 1), [both.slice(0, 1), false, NONE]);
  // Put again, it has three events.
  index.put(9, 0, false);
  index.sizeBytes = 50;
  assert.deepEqual([index.created, index.version, index.exists], [9, 1, true]);
  const events = [4, 8, 9].map((at) => index.find(at));
  assert.deepEqual(events, [0, NONE, LATEST]);
  assert.deepEqual([index.mainAt(0), index.subAt(0), index.sizeAt(0)], [4, 3, 70]);
  index.delete(10, 0);
  assert.equal(index.find(9) === NONE, false);
  assert.equal(index.find(10), NONE);
});

test("the deletion of keys that were put once makes no object for each", () => {
  const indexes = Array.from({ length: KEYS }, (_, i) => KeyIndex.put(2, i, false));
  const before = heapBytes();
  for (const [sub, index] of indexes.entries()) index.delete(3, sub);
  const grownBytes = heapBytes() - before;
  assert.ok(grownBytes < 0.5 * MIB, `${grownBytes} bytes for ${indexes.length} keys`);
});

test("keys of a lease that has ended are forgotten when their deletion is written", async () => {
  const store = await filled(7n);
  const { lessor } = store;
  revoke(store, 7n);
  assert.deepEqual([lessor.leaseOf(keyOf(0)), lessor.leaseOf(keyOf(KEYS - 1))], [0n, 0n]);
  assert.deepEqual([lessor.keysOf(7n), store.mvcc.keyCount], [[], 0]);
  assert.equal(lessor.knownKeys, KEYS);
  // Before that is written, a key is put again: on a lease of the same id, and without one.
  lessor.grant(7n, 60);
  put(store, keyOf(5), 7n);
  put(store, keyOf(6), 0n);
  await store.flush();
  const known = [5, 6, 7].map((i) => lessor.leaseOf(keyOf(i)));
  assert.deepEqual(known, [7n, 0n, 0n]);
  assert.equal(lessor.knownKeys, 1, "none of the ended lease");
  revoke(store, 7n);
  await store.flush();
  assert.deepEqual([store.mvcc.keyCount, lessor.count, lessor.knownKeys], [1, 0, 0]);
});

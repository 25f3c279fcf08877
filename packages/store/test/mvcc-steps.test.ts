/** How much a step of a read does, what is read from the disk, and what large changes touch. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { fromLatin1, KeyValue, toLatin1 } from "@quorate/proto";
import { Backend } from "../src/backend/backend.ts";
import { STORE_BOUNDS, type StoreBounds } from "../src/backend/bounds.ts";
import { LiveBytes } from "../src/backend/meta.ts";
import { runSteps, type Steps } from "../src/backend/steps.ts";
import { inRange, type KeyRange, Mvcc, noLeases, type ReadIo } from "../src/mvcc/index.ts";
import { KeyTree } from "../src/mvcc/key-tree.ts";

const ALL: KeyRange = { single: false, key: "", to: undefined };

async function open(bounds: Partial<StoreBounds> = {}, stepKeys?: number) {
  const keyspace = await new MemoryKeyspaceOpener(new MemoryDisk()).open("/store", {
    create: true,
  });
  const backend = new Backend(keyspace);
  const steps = { stepKeys, bounds: { ...STORE_BOUNDS, ...bounds } };
  const mvcc = await Mvcc.open(backend, "/store", undefined, noLeases, new LiveBytes(), steps);
  return { keyspace, backend, mvcc };
}

function put(mvcc: Mvcc, keys: readonly string[], value = ""): void {
  const txn = mvcc.begin();
  for (const key of keys) txn.put(fromLatin1(key), key, fromLatin1(value), 0n);
  txn.commit();
}

const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `k${i}`);

/** How many of something each step does. @param done how many there are so far */
function perStep(steps: Steps<unknown>, done: () => number): number[] {
  const counts: number[] = [];
  for (let before = 0, step = steps.next(); ; step = steps.next()) {
    counts.push(done() - before);
    before = done();
    if (step.done === true) return counts.filter((count) => count > 0);
  }
}

/** The records that each step of a read of all keys hands over. */
function recordsPerStep(mvcc: Mvcc): number[] {
  let visited = 0;
  const visit = (_key: string, _index: unknown, record: Uint8Array | undefined) => {
    assert.ok(record !== undefined);
    return ++visited > 0;
  };
  return perStep(
    mvcc.view.each(ALL, mvcc.currentRevision, visit, () => true),
    () => visited,
  );
}

test("a step takes so many records from memory, or so many bytes of them", async () => {
  const few = await open({ stepMemoryRecords: 3 });
  put(few.mvcc, names(7));
  assert.deepEqual(recordsPerStep(few.mvcc), [3, 3, 1]);
  const record = few.mvcc.recordAt("k0", few.mvcc.currentRevision)!;
  const short = await open({ stepBytes: 2 * record.length });
  put(short.mvcc, names(5));
  assert.deepEqual(recordsPerStep(short.mvcc), [2, 2, 1]);
});

test("a step reads so many records from the disk, or so many bytes of them", async () => {
  const few = await open({ stepRecords: 2 });
  put(few.mvcc, names(5));
  await few.backend.flush();
  assert.deepEqual(recordsPerStep(few.mvcc), [2, 2, 1]);
  const { length } = few.mvcc.recordAt("k0", few.mvcc.currentRevision)!;
  const short = await open({ stepBytes: 2 * length });
  put(short.mvcc, names(5));
  await short.backend.flush();
  assert.deepEqual(recordsPerStep(short.mvcc), [2, 2, 1]);
});

test("records are looked for together up to so many bytes", async () => {
  const sizes = await open();
  put(sizes.mvcc, names(1));
  const [index] = sizes.mvcc.view.few(ALL, sizes.mvcc.currentRevision, 1, 1e9)!;
  const { mvcc, backend } = await open({ batchBytes: 3 * index.sizeAt(-1) });
  put(mvcc, names(8));
  await backend.flush();
  let asked = 0;
  let visited = 0;
  const behind: number[] = [];
  const visit = () => {
    behind.push(asked - visited);
    return ++visited > 0;
  };
  runSteps(mvcc.view.each(ALL, mvcc.currentRevision, visit, () => ++asked > 0));
  assert.deepEqual(behind, [3, 2, 1, 3, 2, 1, 2, 1]);
});

test("a few keys are found where they are few and small, or only one", async () => {
  const { mvcc } = await open();
  put(mvcc, ["a"], "x".repeat(1000));
  put(mvcc, ["b", "c"]);
  const txn = mvcc.begin();
  txn.delete("c");
  txn.commit();
  const at = mvcc.currentRevision;
  const few = (most: number, mostBytes: number, from = "") =>
    mvcc.view
      .few({ single: false, key: from, to: undefined }, at, most, mostBytes)
      ?.map(({ main }) => main);
  assert.deepEqual(few(3, 5000), [2, 3]);
  assert.equal(few(2, 5000), undefined, "a deleted key counts");
  assert.equal(few(3, 1000), undefined);
  assert.deepEqual(few(3, 1000, "b"), [3]);
  assert.deepEqual(few(3, 1, "b"), [3], "one may be large");
  const first = mvcc.view.few({ single: false, key: "", to: "b" }, at, 1, 1);
  assert.deepEqual(first?.length, 1);
  const one = (key: string) => mvcc.view.few({ single: true, key }, at, 0, 0)?.length;
  assert.deepEqual([one("a"), one("c"), one("d")], [1, 0, 0]);
});

test("a limit ends the walk with its last record, and the rest are counted", async () => {
  const { mvcc, backend } = await open();
  put(mvcc, names(5));
  for (const _ of ["in memory", "on the disk"]) {
    const read = mvcc.view.records(ALL, mvcc.currentRevision, 2);
    const { records, total } = runSteps(read);
    const keys = records.map((record) => toLatin1(KeyValue.decode(record).key));
    assert.deepEqual(keys, ["k0", "k1"]);
    assert.equal(total, 5);
    await backend.flush();
  }
});

test("a record is read from the disk once", async (t: TestContext) => {
  const { mvcc, backend, keyspace } = await open();
  put(mvcc, ["a"]);
  assert.notEqual(mvcc.recordAt("a", 2), undefined);
  await backend.flush();
  const get = t.mock.method(keyspace, "get");
  const record = mvcc.recordAt("a", 2);
  // What waited for the disk may be part of something larger: it is not kept.
  assert.equal(get.mock.callCount(), 1);
  assert.equal(mvcc.recordAt("a", 2), record);
  assert.equal(get.mock.callCount(), 1);
});

test("of two reads at once the second takes what the first has fetched", async (t: TestContext) => {
  const { mvcc, backend, keyspace } = await open();
  put(mvcc, names(20));
  await backend.flush();
  const many = t.mock.method(keyspace, "getMany");
  let turn: Promise<unknown> = Promise.resolve();
  const reads = ["first", "second"].map(() => {
    const io: ReadIo = {
      waitsFor: undefined,
      fromDisk: (read) => {
        const mine = turn.then(read);
        turn = mine;
        return mine;
      },
    };
    const view = mvcc.pin({ io, charge: () => {} });
    return { io, view, steps: view.records(ALL, view.revision, 0) };
  });
  const found = await Promise.all(
    reads.map(async ({ io, view, steps }) => {
      for (;;) {
        const step = steps.next();
        if (step.done === true) {
          view.release();
          return step.value.records.map((record) => toLatin1(KeyValue.decode(record).key));
        }
        await io.waitsFor;
      }
    }),
  );
  assert.deepEqual(found, [names(20).sort(), names(20).sort()]);
  const fetched = many.mock.calls.reduce((sum, call) => sum + call.arguments[0].length, 0);
  assert.equal(fetched, 20);
});

test("a view that is released twice releases no other", async () => {
  const { mvcc } = await open();
  put(mvcc, ["a"]);
  put(mvcc, ["a"]);
  const io: ReadIo = { waitsFor: undefined, fromDisk: () => assert.fail("nothing is read") };
  const [first, other] = [1, 2].map(() => mvcc.pin({ io, charge: () => {} }));
  mvcc.compact(3);
  first.release();
  first.release();
  assert.equal(mvcc.compactStep(10), false);
  other.release();
  assert.equal(mvcc.compactStep(10), true);
});

test("history: a short one is one slice, and a long revision is cut", async () => {
  const { mvcc } = await open({ openChanges: 4, sliceBytes: 1 });
  const slices = async (first: number, last: number) => {
    const found: (readonly [changes: number, through: number])[] = [];
    for await (const { changes, through } of mvcc.history(first, last))
      found.push([changes.length, through]);
    return found;
  };
  put(mvcc, names(3));
  assert.deepEqual(await slices(2, 2), [[3, 2]]);
  put(mvcc, names(10));
  assert.deepEqual(await slices(3, 3), [
    [4, 2],
    [4, 2],
    [2, 3],
  ]);
});

test("of a long transaction with many changes, its ranges have every key that it touched", async () => {
  const { mvcc } = await open({}, 1);
  const reported: KeyRange[][] = [];
  mvcc.onChange = () => {};
  mvcc.onLargeChange = (_main, touched) => void reported.push([...touched]);
  put(mvcc, names(9));
  assert.deepEqual(reported, [], "a short one reports its changes, however many");
  const txn = mvcc.beginLong();
  for (const key of ["x", "y"]) txn.put(fromLatin1(key), key, new Uint8Array(0), 0n);
  for (const key of ["k0", "k1", "absent"]) txn.delete(key);
  runSteps(txn.deleteRange({ single: false, key: "k5", to: "k7" }));
  assert.equal(txn.changeCount, 6);
  txn.commit();
  assert.equal(reported.length, 1);
  const isTouched = (key: string) => reported.flat().some((range) => inRange(range, key));
  const keys = ["x", "y", "k0", "k1", "k2", "k5", "k6", "k7", "absent"];
  assert.deepEqual(keys.filter(isTouched), ["x", "y", "k0", "k1", "k5", "k6"]);
});

test("the keys of a lease that ends count as deletions", async () => {
  const { mvcc, backend } = await open();
  put(mvcc, ["a", "b", "c"]);
  const keys = new KeyTree<true>();
  for (const key of ["a", "c"]) keys.set(key, true);
  const written: string[] = [];
  const txn = mvcc.beginLong();
  runSteps(txn.deleteOfLease(keys, (key) => written.push(key)));
  txn.commit();
  await backend.flush();
  assert.deepEqual(written, ["a", "c"]);
  assert.equal(mvcc.counts.deletes, 2);
  assert.equal(mvcc.keyCount, 1);
});

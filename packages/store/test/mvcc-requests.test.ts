/** Single rules of the requests, each with the state that shows it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  Compare,
  crc32c,
  DeleteRangeRequest,
  EtcdError,
  fromLatin1,
  KeyValue,
  PutRequest,
  RangeRequest,
  type RequestOp,
  TxnRequest,
  toLatin1,
} from "@quorate/proto";
import { applyCompaction, applyDeleteRange, applyPut, applyRange, applyTxn } from "@quorate/store";
import { Backend, Bucket } from "../src/backend/backend.ts";
import { encodeRevision } from "../src/backend/revision.ts";
import { type LeaseBook, Mvcc, noLeases } from "../src/mvcc/index.ts";
import { KeyTree } from "../src/mvcc/key-tree.ts";

async function open(): Promise<{ backend: Backend; mvcc: Mvcc; reopen: () => Promise<Mvcc> }> {
  const opener = new MemoryKeyspaceOpener(new MemoryDisk());
  let backend = new Backend(await opener.open("/store", { create: true }));
  const reopen = async (): Promise<Mvcc> => {
    await backend.close({ flush: true });
    backend = new Backend(await opener.open("/store", { create: false }));
    return Mvcc.open(backend, "/store");
  };
  return { backend, mvcc: await Mvcc.open(backend, "/store"), reopen };
}

const putOf = (key: string, value: string, more: Partial<PutRequest> = {}): PutRequest =>
  PutRequest.create({ key: fromLatin1(key), value: fromLatin1(value), ...more });
const deleteOf = (key: string, end = ""): DeleteRangeRequest =>
  DeleteRangeRequest.create({ key: fromLatin1(key), rangeEnd: fromLatin1(end) });
const rangeOf = (key: string, end = "", more: Partial<RangeRequest> = {}): RangeRequest =>
  RangeRequest.create({ key: fromLatin1(key), rangeEnd: fromLatin1(end), ...more });
const put = (key: string, value: string, more: Partial<PutRequest> = {}): RequestOp => ({
  request: { case: "requestPut", value: putOf(key, value, more) },
});
const del = (key: string, end = ""): RequestOp => ({
  request: { case: "requestDeleteRange", value: deleteOf(key, end) },
});
const get = (key: string, more: Partial<RangeRequest> = {}): RequestOp => ({
  request: { case: "requestRange", value: rangeOf(key, "", more) },
});
const nest = (value: Partial<TxnRequest>): RequestOp => ({
  request: { case: "requestTxn", value: TxnRequest.create(value) },
});

function throwsCode(code: string, run: () => unknown): void {
  assert.throws(run, (error) => error instanceof EtcdError && error.code === code);
}

/** "key=value" of each pair of a range. */
function pairs(mvcc: Mvcc, request: RangeRequest): string[] {
  return applyRange(mvcc, request).kvs.map((record) => {
    const kv = KeyValue.decode(record);
    return `${toLatin1(kv.key)}=${toLatin1(kv.value)}`;
  });
}

test("an empty store is at revision 1, the first put makes 2, and what changes nothing makes none", async () => {
  const { mvcc } = await open();
  assert.equal(mvcc.currentRevision, 1);
  assert.equal(applyDeleteRange(mvcc, noLeases, deleteOf("a")).header!.revision, 1);
  assert.equal(
    applyTxn(mvcc, noLeases, TxnRequest.create({ success: [del("a")] })).header!.revision,
    1,
  );
  assert.equal(applyPut(mvcc, noLeases, putOf("a", "1")).header!.revision, 2);
  assert.equal(mvcc.currentRevision, 2);
});

test("a range answers with the stored records themselves", async () => {
  const { backend, mvcc } = await open();
  applyPut(mvcc, noLeases, putOf("a", "1"));
  const [record] = applyRange(mvcc, rangeOf("a")).kvs;
  const stored = backend.waitingRecord(2, 0);
  assert.deepEqual(record, stored);
  assert.equal(record?.buffer, stored?.buffer, "a view, not a copy");
});

test("a sort without an order sorts only the first limit + 1 keys, one with an order all", async () => {
  const { mvcc } = await open();
  for (const [key, value] of ["a3", "b2", "c1", "d0"]) applyPut(mvcc, noLeases, putOf(key, value));
  const all = { limit: 1, sortTarget: 4 };
  assert.deepEqual(pairs(mvcc, rangeOf("a", "z", all)), ["b=2"]);
  assert.deepEqual(pairs(mvcc, rangeOf("a", "z", { ...all, sortOrder: 1 })), ["d=0"]);
  assert.deepEqual(pairs(mvcc, rangeOf("a", "z", { ...all, sortOrder: 2 })), ["a=3"]);
});

test("a limited range of the past says that there is more, where the next key was made again since", async () => {
  const { mvcc } = await open();
  for (const key of ["a", "b"]) applyPut(mvcc, noLeases, putOf(key, "1"));
  applyDeleteRange(mvcc, noLeases, deleteOf("b"));
  applyPut(mvcc, noLeases, putOf("b", "2"));
  const first = rangeOf("a", "z", { revision: 3, limit: 1, maxCreateRevision: 3 });
  for (const keysOnly of [false, true]) {
    const { kvs, more, count } = applyRange(mvcc, { ...first, keysOnly });
    assert.deepEqual([kvs.length, more, count], [1, true, 2]);
  }
});

test("keys_only keeps everything but the value, the lease too", async () => {
  const { mvcc } = await open();
  const leases: LeaseBook = { ...noLeases, exists: () => true };
  applyPut(mvcc, leases, putOf("a", "1"));
  applyPut(mvcc, leases, putOf("a", "2", { lease: 7n }));
  applyPut(mvcc, leases, putOf("b", "3"));
  for (const revision of [0, 2, 3]) {
    const whole = applyRange(mvcc, rangeOf("a", "z", { revision })).kvs.map((record) => ({
      ...KeyValue.decode(record),
      value: "",
    }));
    const keys = applyRange(mvcc, rangeOf("a", "z", { revision, keysOnly: true })).kvs.map(
      (record) => KeyValue.decode(record),
    );
    assert.ok(keys.every(({ value }) => value.length === 0));
    assert.deepEqual(
      keys.map((kv) => ({ ...kv, value: "" })),
      whole,
    );
  }
});

test("a transaction compares before it changes, its nested ones too, and reads what it has changed", async () => {
  const { mvcc } = await open();
  applyPut(mvcc, noLeases, putOf("a", "old"));
  const isOld = Compare.create({
    key: fromLatin1("a"),
    target: 3,
    targetUnion: { case: "value", value: fromLatin1("old") },
  });
  const response = applyTxn(
    mvcc,
    noLeases,
    TxnRequest.create({
      compare: [isOld],
      success: [
        get("a"),
        put("a", "new"),
        get("a"),
        get("a", { revision: 2 }),
        nest({ compare: [isOld], success: [put("b", "1")] }),
      ],
    }),
  );
  assert.equal(response.header!.revision, 3);
  const [before, , after, history, nested] = response.responses.map(
    ({ response: op }) => op!.value,
  );
  const value = (answer: unknown): string =>
    toLatin1(KeyValue.decode((answer as { kvs: Uint8Array[] }).kvs[0]).value);
  assert.deepEqual([value(before), value(after), value(history)], ["old", "new", "old"]);
  assert.deepEqual(
    [before.header!.revision, after.header!.revision, nested.header!.revision],
    [2, 3, 0],
  );
  assert.equal((nested as { succeeded: boolean }).succeeded, true);
});

test("a transaction that fails leaves nothing behind", async () => {
  const { backend, mvcc } = await open();
  applyPut(mvcc, noLeases, putOf("a", "1"));
  applyPut(mvcc, noLeases, putOf("b", "1"));
  mvcc.compact(3);
  while (!mvcc.compactStep(10));
  const pending = backend.pendingOps;
  const fails: readonly [string, RequestOp][] = [
    ["FutureRev", get("a", { revision: 4 })],
    ["Compacted", get("a", { revision: 2 })],
    ["Compacted", get("a", { revision: -1 })],
    ["LeaseNotFound", put("x", "1", { lease: 5n })],
    ["KeyNotFound", put("x", "", { ignoreValue: true })],
    ["KeyNotFound", put("x", "1", { ignoreLease: true })],
    ["KeyNotFound", nest({ success: [put("x", "", { ignoreValue: true })] })],
  ];
  for (const [code, op] of fails) {
    throwsCode(code, () =>
      applyTxn(mvcc, noLeases, TxnRequest.create({ success: [put("a", "2"), del("b"), op] })),
    );
    assert.deepEqual(pairs(mvcc, rangeOf("\0", "\0")), ["a=1", "b=1"]);
  }
  assert.equal(mvcc.currentRevision, 3);
  assert.equal(backend.pendingOps, pending);
  throwsCode("LeaseNotFound", () => applyPut(mvcc, noLeases, putOf("x", "1", { lease: 5n })));
  throwsCode("KeyNotFound", () => applyPut(mvcc, noLeases, putOf("x", "", { ignoreValue: true })));
});

test("a put that keeps the value of a key which the same transaction deletes is an error, not a crash", async () => {
  const { mvcc } = await open();
  applyPut(mvcc, noLeases, putOf("b", "1"));
  throwsCode("KeyNotFound", () =>
    applyTxn(
      mvcc,
      noLeases,
      TxnRequest.create({ success: [del("a", "\0"), put("b", "", { ignoreValue: true })] }),
    ),
  );
  const response = applyTxn(
    mvcc,
    noLeases,
    TxnRequest.create({ success: [put("b", "", { ignoreValue: true }), del("a", "\0")] }),
  );
  assert.equal(response.header!.revision, 3);
  assert.deepEqual(pairs(mvcc, rangeOf("\0", "\0")), []);
});

test("a key deleted and put in one transaction is new, and compaction at that revision keeps it", async () => {
  const { mvcc, reopen } = await open();
  applyPut(mvcc, noLeases, putOf("a", "1"));
  applyPut(mvcc, noLeases, putOf("b", "1"));
  applyTxn(mvcc, noLeases, TxnRequest.create({ success: [del("a", "\0"), put("b", "2")] }));
  const kv = KeyValue.decode(applyRange(mvcc, rangeOf("b")).kvs[0]);
  assert.deepEqual([kv.createRevision, kv.modRevision, kv.version], [4, 4, 1]);
  mvcc.compact(4);
  while (!mvcc.compactStep(10));
  assert.deepEqual(pairs(mvcc, rangeOf("\0", "\0")), ["b=2"]);
  assert.deepEqual(pairs(await reopen(), rangeOf("\0", "\0")), ["b=2"]);
});

test("no caller waiting: the same state and header without reads for the response", async () => {
  const request = TxnRequest.create({
    success: [
      put("a", "2", { prevKv: true }),
      get("a"),
      { request: { case: "requestDeleteRange", value: { ...deleteOf("b"), prevKv: true } } },
    ],
  });
  const hashes: number[] = [];
  for (const answered of [true, false]) {
    const { mvcc } = await open();
    applyPut(mvcc, noLeases, putOf("a", "1", { prevKv: true }), answered);
    applyPut(mvcc, noLeases, putOf("b", "1"), answered);
    const response = applyTxn(mvcc, noLeases, request, answered);
    assert.deepEqual(
      response.responses.map(({ response: op }) => op!.value.header!.revision),
      [4, 4, 4],
    );
    const [first, second, third] = response.responses.map(({ response: op }) => op!.value);
    assert.equal((first as { prevKv?: Uint8Array }).prevKv !== undefined, answered);
    assert.equal((second as { kvs: unknown[] }).kvs.length === 1, answered);
    assert.equal((third as { prevKvs: unknown[] }).prevKvs.length === 1, answered);
    hashes.push((await mvcc.hashKV(0)).hash);
  }
  assert.equal(hashes[0], hashes[1]);
});

test("a hash of a store whose keys were all deleted after a compaction walks through no index", async (t) => {
  const { mvcc } = await open();
  for (let i = 0; i < 600; i++) applyPut(mvcc, noLeases, putOf(`k${i}`, "1"));
  applyCompaction(mvcc, { revision: mvcc.currentRevision, physical: false });
  applyDeleteRange(mvcc, noLeases, deleteOf("k", "l"));
  const walks = (["scan", "scanPart"] as const).map((name) =>
    t.mock.method(KeyTree.prototype, name),
  );
  assert.equal((await mvcc.hashKV(0)).compactRevision, 601);
  for (const { mock } of walks) assert.equal(mock.callCount(), 0);
});

test("compaction: refused below and above, at once for reads, bounded in each step", async () => {
  const { backend, mvcc } = await open();
  for (let i = 0; i < 50; i++) applyPut(mvcc, noLeases, putOf("hot", String(i)));
  for (let i = 0; i < 50; i++) applyPut(mvcc, noLeases, putOf(`k${i}`, "1"));
  throwsCode("FutureRev", () => applyCompaction(mvcc, { revision: 102, physical: false }));
  assert.equal(applyCompaction(mvcc, { revision: 60, physical: false }).header!.revision, 101);
  throwsCode("Compacted", () => applyCompaction(mvcc, { revision: 60, physical: false }));
  throwsCode("Compacted", () => applyRange(mvcc, rangeOf("hot", "", { revision: 59 })));
  assert.deepEqual(pairs(mvcc, rangeOf("hot", "", { revision: 60 })), ["hot=49"]);
  assert.deepEqual(
    [mvcc.compactRevision, mvcc.compactedRevision, mvcc.isCompacting],
    [60, -1, true],
  );
  let steps = 0;
  for (let done = false; !done; steps++) {
    await backend.flush();
    done = mvcc.compactStep(10);
    assert.ok(backend.pendingOps <= 11, `${backend.pendingOps} changes in a step`);
  }
  assert.ok(steps >= 5);
  assert.deepEqual([mvcc.compactedRevision, mvcc.isCompacting], [60, false]);
  assert.equal(backend.get(Bucket.key, encodeRevision(50, 0, false)), undefined);
  assert.notEqual(backend.get(Bucket.key, encodeRevision(51, 0, false)), undefined);
});

test("compaction: a step looks at a bounded number of keys even where there is nothing to drop", async () => {
  const { mvcc } = await open();
  for (let i = 0; i < 400; i++) applyPut(mvcc, noLeases, putOf(`k${i}`, "1"));
  mvcc.compact(401);
  let steps = 1;
  while (!mvcc.compactStep(5)) steps++;
  assert.ok(steps >= 20, `${steps} steps`);
});

test("a compaction scheduled while another is under way is done after it", async () => {
  const { mvcc } = await open();
  for (let i = 0; i < 20; i++) applyPut(mvcc, noLeases, putOf(`k${i % 10}`, String(i)));
  mvcc.compact(15);
  assert.equal(mvcc.compactStep(2), false);
  mvcc.compact(21);
  const finished = new Set<number>();
  while (!mvcc.compactStep(2)) finished.add(mvcc.compactedRevision);
  assert.deepEqual([...finished, mvcc.compactedRevision], [-1, 15, 21]);
});

test("a hash holds compaction back, and is not changed by what goes on meanwhile", async () => {
  const { mvcc } = await open();
  for (let i = 0; i < 20; i++) applyPut(mvcc, noLeases, putOf(`k${i % 5}`, String(i)));
  const quiet = await mvcc.hashKV(15);
  const taken = mvcc.hashKV(15);
  mvcc.compact(21);
  applyPut(mvcc, noLeases, putOf("k0", "later"));
  assert.equal(mvcc.compactStep(1000), false);
  assert.deepEqual(await taken, {
    ...quiet,
    revision: 15,
    compactRevision: -1,
    currentRevision: 21,
  });
  assert.equal(mvcc.compactStep(1000), true);
  await assert.rejects(
    mvcc.hashKV(20),
    (error) => error instanceof EtcdError && error.code === "Compacted",
  );
  assert.equal(mvcc.compactStep(1000), true);
});

test("the hash of an empty store is that of the bucket's name, and the hash of everything covers more", async () => {
  const { backend, mvcc } = await open();
  assert.deepEqual(await mvcc.hashKV(0), {
    hash: crc32c(0, fromLatin1("key")),
    revision: 1,
    compactRevision: -1,
    currentRevision: 1,
  });
  const empty = await mvcc.hash();
  backend.put(Bucket.meta, fromLatin1("consistent_index"), new Uint8Array([1]));
  backend.put(Bucket.meta, fromLatin1("term"), new Uint8Array([1]));
  assert.equal(await mvcc.hash(), empty);
  backend.put(Bucket.members, fromLatin1("1"), new Uint8Array([1]));
  assert.notEqual(await mvcc.hash(), empty);
});

test("a transaction that broke off half way stops the store", async () => {
  const { mvcc } = await open();
  mvcc.begin().put(fromLatin1("a"), "a", fromLatin1("1"), 0n);
  assert.throws(() => mvcc.begin(), /MVCC-6/);
});

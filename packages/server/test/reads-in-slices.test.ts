/**
 * Heavy reads of a member, through its services: others go on meanwhile, and what is not wanted any
 * more costs nothing.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Member } from "@quorate/member";
import { SLICE_LIMITS } from "@quorate/member/testing";
import {
  CompactionRequest,
  Compare,
  Compare_CompareResult,
  Compare_CompareTarget,
  errorOf,
  fromUtf8,
  HashKVRequest,
  HashKVResponse,
  KeyValue,
  KVService,
  LeaseGrantRequest,
  LeaseLeasesResponse,
  LeaseService,
  LeaseTimeToLiveRequest,
  LeaseTimeToLiveResponse,
  MaintenanceService,
  PutRequest,
  PutResponse,
  RangeRequest,
  RangeRequest_SortOrder,
  RangeRequest_SortTarget,
  RangeResponse,
  TxnRequest,
  TxnResponse,
  toUtf8,
} from "@quorate/proto";
import { call, put, World } from "./support/world.ts";

const { Range, Txn, Compact, Put } = KVService.methods;
const ALL = { key: new Uint8Array(1), rangeEnd: new Uint8Array(1) };
const KEYS = 20_000;
const OPS = 100;

const keyOf = (i: number): string => `k${String(i).padStart(6, "0")}`;

/** A member with many keys, whose values are not in the order of the keys. */
async function filled(
  keys = KEYS,
  prepare: (world: World) => void = () => {},
  lease = 0n,
): Promise<{ world: World; member: Member }> {
  const world = new World(1);
  prepare(world);
  await world.startAll();
  const member = world.leader()!.member!;
  if (lease !== 0n) {
    await world.settled(
      call(
        member,
        LeaseService.methods.LeaseGrant.path,
        LeaseGrantRequest.encode({ ID: lease, TTL: 36_000 }),
      ),
    );
  }
  const fills: Promise<unknown>[] = [];
  for (let first = 0; first < keys; first += OPS) {
    const success = Array.from({ length: Math.min(OPS, keys - first) }, (_, i) => ({
      request: {
        case: "requestPut" as const,
        value: PutRequest.create({
          key: fromUtf8(keyOf(first + i)),
          value: fromUtf8(String((first + i) * 7919)),
          lease,
        }),
      },
    }));
    fills.push(call(member, Txn.path, TxnRequest.encode({ compare: [], success, failure: [] })));
    if (fills.length % 20 === 0) await world.settled(Promise.all(fills));
  }
  await world.settled(Promise.all(fills));
  // The records are on the disk, as most are.
  await world.run(500);
  return { world, member };
}

const sortByValue = RangeRequest.encode({
  ...ALL,
  sortTarget: RangeRequest_SortTarget.VALUE,
  sortOrder: RangeRequest_SortOrder.ASCEND,
});

test("a put is answered while a sort of many keys runs, and the sort answers as of its beginning", async () => {
  const { world, member } = await filled();
  const order: string[] = [];
  const sorting = call(member, Range.path, sortByValue);
  void sorting.then(() => order.push("sort"));
  await world.until(() => member.slices.count === 1);
  const answer = PutResponse.decode(await world.settled(put(member, keyOf(KEYS - 1), " first")));
  order.push("put");
  const { header, kvs, count } = RangeResponse.decode(await world.settled(sorting));
  assert.deepEqual(order, ["put", "sort"]);
  assert.equal(header!.revision, answer.header!.revision - 1);
  assert.equal(count, KEYS);
  const values = kvs.map((kv) => toUtf8(KeyValue.decode(kv).value));
  assert.deepEqual(values, Array.from({ length: KEYS }, (_, i) => String(i * 7919)).sort());
  await world.stopAll();
});

test("heavy calls of each kind let a put through before they are done", async () => {
  const limit = (one: World) => {
    one.sliceLimits = { ...SLICE_LIMITS, turnSteps: 1, quantumSteps: 1 };
    // A step of a read takes a turn, and a turn takes time.
    one.turnMs = 1;
  };
  const { world, member } = await filled(KEYS, limit, 77n);
  const compareAll = Compare.create({
    ...ALL,
    result: Compare_CompareResult.NOT_EQUAL,
    target: Compare_CompareTarget.VALUE,
    targetUnion: { case: "value", value: fromUtf8("none") },
  });
  const rangeOp = (options: Partial<RangeRequest>) => ({
    request: { case: "requestRange" as const, value: RangeRequest.create({ ...ALL, ...options }) },
  });
  const txn = (compare: Compare[], ops: ReturnType<typeof rangeOp>[]) =>
    TxnRequest.encode({ compare, success: ops, failure: [] });
  const heavy: readonly (readonly [name: string, path: string, request: Uint8Array])[] = [
    ["range", Range.path, RangeRequest.encode(ALL)],
    ["keys only, with a lease", Range.path, RangeRequest.encode({ ...ALL, keysOnly: true })],
    ["sort", Range.path, sortByValue],
    ["comparison of values", Txn.path, txn([compareAll], [rangeOp({ countOnly: true })])],
    ["ranges in a transaction", Txn.path, txn([], [rangeOp({}), rangeOp({ limit: 1000 })])],
  ];
  for (const [name, path, request] of heavy) {
    let isDone = false;
    const answer = call(member, path, request).finally(() => {
      isDone = true;
    });
    await world.run(1);
    const other = put(member, "other", name);
    let isPut = false;
    void other.then(() => {
      isPut = true;
    });
    await world.until(() => isPut || isDone);
    assert.ok(isPut && !isDone, `${name} was done before the put`);
    await world.settled(answer);
  }
  assert.equal(member.slices.memory.totalBytes, 0);
  await world.stopAll();
});

test("a lease's keys and the list of leases are whole and in order", async () => {
  const { world, member } = await filled(3000, () => {}, 77n);
  const { TimeToLive, Leases } = {
    TimeToLive: LeaseService.methods.LeaseTimeToLive,
    Leases: LeaseService.methods.LeaseLeases,
  };
  const ttl = LeaseTimeToLiveResponse.decode(
    await world.settled(
      call(member, TimeToLive.path, LeaseTimeToLiveRequest.encode({ ID: 77n, keys: true })),
    ),
  );
  assert.deepEqual(
    ttl.keys.map((key) => toUtf8(key)),
    Array.from({ length: 3000 }, (_, i) => keyOf(i)),
  );
  assert.equal(ttl.ID, 77n);
  const list = LeaseLeasesResponse.decode(
    await world.settled(call(member, Leases.path, new Uint8Array(0))),
  );
  assert.deepEqual(
    list.leases.map(({ ID }) => ID),
    [77n],
  );
  await world.stopAll();
});

test("a read whose caller is gone lets compaction go on, and holds no memory", async () => {
  const { world, member } = await filled(5000);
  let cancel: () => void = () => {};
  const caller = {
    peerAddress: "10.0.0.1:1",
    onCancel: (listener: () => void) => {
      cancel = listener;
    },
  };
  const sorting = call(member, Range.path, sortByValue, {}, caller);
  const gone = assert.rejects(sorting, { message: errorOf("Canceled").message });
  await world.until(() => member.slices.memory.totalBytes > 0);
  await world.settled(put(member, keyOf(1), "again"));
  const { currentRevision } = member.store.mvcc;
  await world.settled(
    call(member, Compact.path, CompactionRequest.encode({ revision: currentRevision })),
  );
  cancel();
  await gone;
  assert.deepEqual([member.slices.count, member.slices.memory.totalBytes], [0, 0]);
  await world.until(() => member.store.mvcc.compactedRevision === currentRevision);
  assert.ok(member.store.mvcc.droppedRecords > 0);
  await world.stopAll();
});

test("a transaction whose ranges are more than an answer may take is refused with the limit, and the next one is answered", async () => {
  const limits = { totalBytes: 2 << 20, clientBytes: 1 << 20, answerBytes: 512 << 10 };
  const { world, member } = await filled(5000, (one) => {
    one.answerLimits = limits;
  });
  const op = {
    request: {
      case: "requestRange" as const,
      value: RangeRequest.create({ ...ALL, keysOnly: true }),
    },
  };
  const txn = (times: number) =>
    TxnRequest.encode({
      compare: [],
      success: Array.from({ length: times }, () => op),
      failure: [],
    });
  await world.settled(
    assert.rejects(call(member, Txn.path, txn(128)), {
      code: 8,
      message: /^etcdserver: answer too large: one answer may take 524288 bytes/,
    }),
  );
  assert.deepEqual([member.slices.count, member.slices.memory.totalBytes], [0, 0]);
  const answer = TxnResponse.decode(await world.settled(call(member, Txn.path, txn(2))));
  assert.deepEqual(
    answer.responses.map(
      ({ response }) => response?.case === "responseRange" && response.value.kvs.length,
    ),
    [5000, 5000],
  );
  assert.ok(answer.succeeded && answer.header!.revision > 0);
  await world.stopAll();
});

test("hashes of the same revision are computed once, one at a time, and too many are refused", async () => {
  const { world, member } = await filled(3000);
  const { currentRevision } = member.store.mvcc;
  const hash = (revision: number) =>
    call(member, MaintenanceService.methods.HashKV.path, HashKVRequest.encode({ revision }));
  const same = Array.from({ length: 50 }, () => hash(currentRevision));
  const answers = (await world.settled(Promise.all(same))).map(
    (bytes) => HashKVResponse.decode(bytes).hash,
  );
  assert.equal(new Set(answers).size, 1);
  const different = await world.settled(
    Promise.allSettled(Array.from({ length: 20 }, (_, i) => hash(currentRevision - i))),
  );
  const refused = different.filter((one) => one.status === "rejected");
  assert.equal(refused.length, 11, "one runs, eight wait");
  for (const one of refused)
    assert.equal((one.reason as Error).message, errorOf("TooManyRequests").message);
  assert.equal(HashKVResponse.decode(await world.settled(hash(currentRevision))).hash, answers[0]);
  await world.stopAll();
});

test("a put in between is seen by the next get, while a heavy read goes on", async () => {
  const { world, member } = await filled(5000);
  const heavy = call(member, Range.path, sortByValue);
  await world.run(1);
  await world.settled(
    call(member, Put.path, PutRequest.encode({ key: fromUtf8("x"), value: fromUtf8("1") })),
  );
  const got = RangeResponse.decode(
    await world.settled(call(member, Range.path, RangeRequest.encode({ key: fromUtf8("x") }))),
  );
  assert.equal(got.kvs.length, 1);
  assert.ok(
    !RangeResponse.decode(await world.settled(heavy)).kvs.some(
      (kv) => toUtf8(KeyValue.decode(kv).key) === "x",
    ),
  );
  await world.stopAll();
});

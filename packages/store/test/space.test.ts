/**
 * What the store says of its space: live bytes against what is really there, and the alarms that
 * refuse requests.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AlarmType,
  CompactionRequest,
  DeleteRangeRequest,
  fromLatin1,
  fromUtf8,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  PutRequest,
  RangeRequest,
  TxnRequest,
} from "@quorate/proto";
import { Bucket, type LiveSizes } from "../src/backend/backend.ts";
import { LIVE_BYTES } from "../src/backend/meta.ts";
import { LEASE_COST_BYTES } from "../src/requests/lease.ts";
import { putCostBytes } from "../src/requests/put.ts";
import { txnCostBytes } from "../src/requests/txn-check.ts";
import { Store } from "../src/store.ts";
import { Prng } from "./mvcc-history.ts";
import { applyEntry, Log, randomLog } from "./store-log.ts";

const { GET, ACTIVATE, DEACTIVATE } = AlarmRequest_AlarmAction;

function open(keyspaces: MemoryKeyspaceOpener): Promise<Store> {
  return Store.open(keyspaces, "/store");
}

/** Records of keys and leases, and their bytes, that the backend really has. */
async function counted(keyspaces: MemoryKeyspaceOpener): Promise<LiveSizes> {
  const keyspace = await keyspaces.open("/store/db", { create: false });
  let [records, bytes] = [0, 0];
  for await (const slice of keyspace.scan({})) {
    for (const [key, value] of slice)
      if (key[0] === Bucket.key || key[0] === Bucket.lease) {
        records++;
        bytes += key.length + value.length;
      }
  }
  await keyspace.close();
  return { records, bytes };
}

for (const seed of [1, 2, 3, 4]) {
  test(`live bytes are those of the records that are there, at every stop (seed ${seed})`, async () => {
    const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
    const log = randomLog(seed, 400);
    for (let lease = 1n; lease <= 4n; lease++)
      log.request({ leaseGrant: LeaseGrantRequest.encode({ ID: lease, TTL: 60 * Number(lease) }) });
    log.request({
      put: PutRequest.encode({ key: fromUtf8("leased"), value: fromUtf8("v"), lease: 2n }),
    });
    for (const lease of [2n, 3n])
      log.request({ leaseRevoke: LeaseRevokeRequest.encode({ ID: lease }) });
    const prng = new Prng(seed);
    let stops = 0;
    while (stops < 1000) {
      const store = await open(keyspaces);
      if (store.position.index === log.entries.length && !store.mvcc.isCompacting) {
        await store.close({ flush: false });
        break;
      }
      const runs = 1 + prng.below(40);
      for (let i = 0; i < runs && store.position.index < log.entries.length; i++)
        applyEntry(store, log.entries[store.position.index]);
      store.mvcc.compactStep(1 + prng.below(6));
      await store.flush();
      const { writtenSizes } = store;
      await store.close({ flush: true });
      assert.deepEqual(await counted(keyspaces), writtenSizes);
      stops++;
    }
    assert.ok(stops > 5 && stops < 1000, `${stops} stops`);
  });
}

test("compaction reduces live bytes, to the byte", async () => {
  const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
  const store = await open(keyspaces);
  const log = new Log();
  log.put("kept", "x".repeat(1000));
  for (let i = 0; i < 50; i++) log.put("hot", `${i}`.padStart(100, "."));
  for (const entry of log.entries) applyEntry(store, entry);
  const before = store.liveBytes;
  log.request({ compaction: CompactionRequest.encode({ revision: 52 }) });
  applyEntry(store, log.entries[51]);
  assert.equal(store.liveBytes, before, "nothing is dropped yet");
  while (!store.mvcc.compactStep(7));
  // Two records are left of 51; those that went are alike but for the version, which takes one byte
  // in all of them.
  const onePut = before - store.liveBytes;
  assert.ok(onePut > 49 * 120 && onePut < 49 * 150, `${onePut}`);
  await store.close({ flush: true });
  assert.equal((await open(keyspaces)).liveBytes, before - onePut);
});

test("the quota counts a key twice: in its records, and once in the index, until a compaction has dropped it", async () => {
  const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
  let store = await open(keyspaces);
  const log = new Log();
  const long = "k".repeat(100_000);
  log.put(long, "1");
  log.put(long, "2");
  log.put("short", "x");
  for (const entry of log.entries) applyEntry(store, entry);
  assert.equal(store.mvcc.keyBytes, 100_005);
  assert.equal(store.quotaBytes, store.liveBytes + 100_005);
  log.request({
    deleteRange: DeleteRangeRequest.encode({ key: fromLatin1("k"), rangeEnd: fromLatin1("l") }),
  });
  applyEntry(store, log.entries[3]);
  assert.equal(store.mvcc.keyBytes, 100_005, "its history can still be read");
  await store.close({ flush: true });
  store = await open(keyspaces);
  assert.equal(store.mvcc.keyBytes, 100_005, "counted again when the index is rebuilt");
  log.put("short", "y");
  log.request({ compaction: CompactionRequest.encode({ revision: 6 }) });
  for (const entry of log.entries.slice(4)) applyEntry(store, entry);
  while (!store.mvcc.compactStep(10));
  assert.equal(store.mvcc.keyBytes, 5);
  await store.close({ flush: true });
});

test("records that are not those that were written are damage, found when the store is opened", async () => {
  const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
  const log = new Log();
  for (let i = 0; i < 5; i++) log.put(`k${i}`, "value");
  let store = await open(keyspaces);
  for (const entry of log.entries) applyEntry(store, entry);
  await store.close({ flush: true });
  const change = async (key: Uint8Array, value: Uint8Array | undefined) => {
    const keyspace = await keyspaces.open("/store/db", { create: false });
    await keyspace.write([{ key, value }]);
    await keyspace.close();
  };
  const prefixed = (bucket: number, key: Uint8Array) => Uint8Array.of(bucket, ...key);
  const last = fromLatin1("k\0\0\0\0\0\0\0\x06_\0\0\0\0\0\0\0\0");
  const keyspace = await keyspaces.open("/store/db", { create: false });
  const record = keyspace.get(last)!;
  const sum = keyspace.get(prefixed(Bucket.meta, LIVE_BYTES))!;
  await keyspace.close();

  // A whole record vanishes: only this record shows it.
  await change(last, undefined);
  await assert.rejects(open(keyspaces), {
    code: "Damaged",
    message: /quorate_live_bytes: the records have \d+ bytes, and \d+ were written/,
  });
  await change(last, record);
  await (await open(keyspaces)).close({ flush: false });
  await change(prefixed(Bucket.meta, LIVE_BYTES), sum.subarray(0, 15));
  await assert.rejects(open(keyspaces), { code: "Damaged", message: /the record has 15 bytes/ });
  await change(prefixed(Bucket.meta, LIVE_BYTES), sum);

  // The position falls: the log would be applied a second time to what it has made.
  const position = prefixed(Bucket.meta, fromLatin1("consistent_index"));
  await change(position, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 4));
  await assert.rejects(open(keyspaces), {
    code: "Damaged",
    message: /it is of index 5, and the store's position is 4/,
  });
  await change(position, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 5));

  // One of another index, left by a version that does not write it, says nothing; the next batch
  // has a new one.
  await change(prefixed(Bucket.meta, LIVE_BYTES), new Uint8Array(16));
  store = await open(keyspaces);
  log.put("k9", "value");
  applyEntry(store, log.entries[5]);
  await store.close({ flush: true });
  await change(fromLatin1("k\0\0\0\0\0\0\0\x07_\0\0\0\0\0\0\0\0"), undefined);
  await assert.rejects(open(keyspaces), { code: "Damaged" });
});

/** A store on which requests are applied one by one; returns the response or the error's name. */
async function alarmed() {
  const keyspaces = new MemoryKeyspaceOpener(new MemoryDisk());
  const log = new Log();
  let store = await open(keyspaces);
  const apply = (request: Parameters<Log["request"]>[0]): unknown => {
    log.request(request);
    const { response, error } = store.apply(log.entries[log.entries.length - 1]);
    return error?.code ?? response;
  };
  return {
    apply,
    alarm: (action: number, memberID: bigint, alarm: number) => {
      const response = apply({ alarm: AlarmRequest.encode({ action, memberID, alarm }) }) as {
        alarms: { memberID: bigint; alarm: number }[];
      };
      return response.alarms.map((one) => `${one.memberID} ${one.alarm}`);
    },
    get store() {
      return store;
    },
    reopen: async () => {
      await store.close({ flush: true });
      store = await open(keyspaces);
    },
  };
}

const put = { put: PutRequest.encode({ key: fromUtf8("a"), value: fromUtf8("1") }) };
const grant = (ID: bigint) => ({ leaseGrant: LeaseGrantRequest.encode({ ID, TTL: 10 }) });
const range = { range: RangeRequest.encode({ key: fromUtf8("a") }) };
const remove = { deleteRange: DeleteRangeRequest.encode({ key: fromUtf8("a") }) };
const compaction = (revision: number) => ({ compaction: CompactionRequest.encode({ revision }) });
const op = PutRequest.create({ key: fromUtf8("b"), value: fromUtf8("2") });
const putTxn = TxnRequest.create({ success: [{ request: { case: "requestPut", value: op } }] });
const deleteTxn = TxnRequest.create({
  success: [
    {
      request: {
        case: "requestDeleteRange",
        value: DeleteRangeRequest.create({ key: fromUtf8("a") }),
      },
    },
  ],
});

test("NOSPACE refuses what grows the store, and nothing else, on any member that has it", async () => {
  const world = await alarmed();
  world.apply(put);
  world.apply(grant(1n));
  assert.deepEqual(world.alarm(ACTIVATE, 7n, AlarmType.NOSPACE), ["7 1"]);
  const growing = [put, { txn: TxnRequest.encode(putTxn) }, grant(2n)];
  for (const request of growing) assert.equal(world.apply(request), "NoSpace");
  assert.equal(world.store.mvcc.currentRevision, 2, "nothing was changed");
  for (const request of [
    range,
    { txn: TxnRequest.encode(deleteTxn) },
    remove,
    { leaseRevoke: LeaseRevokeRequest.encode({ ID: 1n }) },
  ]) {
    assert.equal(typeof world.apply(request), "object");
  }
  assert.equal(typeof world.apply(compaction(3)), "object");
  await world.reopen();
  assert.equal(world.apply(put), "NoSpace", "an alarm outlives the process");
  assert.deepEqual(world.alarm(DEACTIVATE, 7n, AlarmType.NOSPACE), ["7 1"]);
  for (const request of growing) assert.equal(typeof world.apply(request), "object");
});

test("CORRUPT refuses every change and every read that goes through the log", async () => {
  const world = await alarmed();
  world.apply(put);
  world.apply(grant(1n));
  world.alarm(ACTIVATE, 7n, AlarmType.NOSPACE);
  world.alarm(ACTIVATE, 8n, AlarmType.CORRUPT);
  const all = [put, range, remove, { txn: TxnRequest.encode(deleteTxn) }, compaction(2), grant(2n)];
  for (const request of [...all, { leaseRevoke: LeaseRevokeRequest.encode({ ID: 1n }) }])
    assert.equal(world.apply(request), "Corrupt");
  world.alarm(DEACTIVATE, 8n, AlarmType.CORRUPT);
  assert.equal(world.apply(put), "NoSpace");
  assert.equal(typeof world.apply(remove), "object");
});

test("alarms are raised, listed and ended by member and kind; 0 is a member id like any other", async () => {
  const world = await alarmed();
  assert.deepEqual(world.alarm(GET, 0n, AlarmType.NONE), []);
  assert.deepEqual(world.alarm(ACTIVATE, 9n, AlarmType.NONE), [], "no kind, no alarm");
  assert.deepEqual(world.alarm(DEACTIVATE, 9n, AlarmType.NOSPACE), [], "nothing to end");
  world.alarm(ACTIVATE, 9n, AlarmType.NOSPACE);
  world.alarm(ACTIVATE, 3n, AlarmType.CORRUPT);
  world.alarm(ACTIVATE, 2n ** 64n - 1n, AlarmType.NOSPACE);
  assert.deepEqual(world.alarm(ACTIVATE, 9n, AlarmType.NOSPACE), ["9 1"], "once is enough");
  world.alarm(ACTIVATE, 0n, AlarmType.NOSPACE);
  const all = ["0 1", "9 1", "18446744073709551615 1", "3 2"];
  assert.deepEqual(world.alarm(GET, 0n, AlarmType.NONE), all);
  assert.deepEqual(
    world.alarm(GET, 9n, AlarmType.CORRUPT),
    ["3 2"],
    "the member of a question is not looked at",
  );
  await world.reopen();
  assert.deepEqual(world.alarm(GET, 0n, AlarmType.NONE), all);
  assert.deepEqual(
    world.alarm(DEACTIVATE, 0n, AlarmType.NOSPACE),
    ["0 1"],
    "not those of all members",
  );
  assert.deepEqual(world.alarm(DEACTIVATE, 9n, AlarmType.NONE), []);
  assert.deepEqual(world.alarm(GET, 0n, AlarmType.NOSPACE), ["9 1", "18446744073709551615 1"]);
  assert.equal(world.store.mvcc.currentRevision, 1, "alarms are no changes of keys");
});

test("an alarm remembers how far the store was compacted when it was raised", async () => {
  const world = await alarmed();
  world.alarm(ACTIVATE, 1n, AlarmType.NOSPACE);
  world.apply(remove);
  world.store.alarms.deactivate(1n, AlarmType.NOSPACE);
  world.apply(put);
  world.apply(compaction(2));
  world.alarm(ACTIVATE, 2n, AlarmType.NOSPACE);
  world.alarm(ACTIVATE, 0n, AlarmType.CORRUPT);
  await world.reopen();
  assert.deepEqual(world.store.alarms.list(), [
    { memberId: 2n, type: AlarmType.NOSPACE, compactRevision: 2 },
    { memberId: 0n, type: AlarmType.CORRUPT, compactRevision: 2 },
  ]);
});

test("costs are estimated as etcd does", () => {
  assert.equal(LEASE_COST_BYTES, 64);
  assert.equal(
    putCostBytes(PutRequest.create({ key: fromUtf8("abc"), value: fromUtf8("12345") })),
    264,
  );
  assert.equal(txnCostBytes(TxnRequest.create({})), 0);
  assert.equal(txnCostBytes(deleteTxn), 0);
  assert.equal(txnCostBytes(putTxn), 258);
  const big = {
    request: {
      case: "requestPut" as const,
      value: PutRequest.create({ key: fromUtf8("k"), value: new Uint8Array(999) }),
    },
  };
  assert.equal(
    txnCostBytes(TxnRequest.create({ success: putTxn.success, failure: [big, big] })),
    2 * 1256,
  );
  const nested = { request: { case: "requestTxn" as const, value: putTxn } };
  assert.equal(txnCostBytes(TxnRequest.create({ success: [nested, ...putTxn.success] })), 2 * 258);
});

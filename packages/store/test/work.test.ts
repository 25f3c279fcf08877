/**
 * How much one request may be: what is refused before it is proposed, with an error that names the
 * limit.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import {
  Compare,
  DeleteRangeRequest,
  fromUtf8,
  PutRequest,
  RangeRequest,
  type RequestOp,
  Compare_CompareTarget as Target,
  TxnRequest,
} from "@quorate/proto";
import { checkWork, copiedBytes, mayReadMuch } from "@quorate/store";
import { runSteps } from "../src/backend/steps.ts";
import { Store } from "../src/store.ts";
import { Log } from "./store-log.ts";

const putOf = (key: string, more: Partial<PutRequest> = {}): RequestOp => ({
  request: { case: "requestPut", value: PutRequest.create({ key: fromUtf8(key), ...more }) },
});
const txnOf = (success: RequestOp[], failure: RequestOp[] = []): TxnRequest =>
  TxnRequest.create({ success, failure });
const nested = (txn: TxnRequest): RequestOp => ({ request: { case: "requestTxn", value: txn } });
const ALL = { key: fromUtf8("k"), rangeEnd: fromUtf8("l") };

async function filled(): Promise<Store> {
  const disk = new MemoryDisk();
  const store = await Store.open(new MemoryKeyspaceOpener(disk), "/store");
  const log = new Log();
  for (let i = 0; i < 10; i++) log.put(`k${i}`, "v".repeat(1000));
  for (const entry of log.entries) store.apply(entry);
  return store;
}

test("puts with ignore_value cost what they copy, and one request copies up to a bound", async () => {
  const { view } = (await filled()).mvcc;
  const one = copiedBytes(view, PutRequest.create({ key: fromUtf8("k1"), ignoreValue: true }));
  assert.ok(one > 1000 && one < 1100, `${one}`);
  assert.equal(copiedBytes(view, PutRequest.create({ key: fromUtf8("k1") })), 0);
  assert.equal(
    copiedBytes(view, PutRequest.create({ key: fromUtf8("none"), ignoreValue: true })),
    0,
  );
  const keep = { ignoreValue: true };
  const txn = txnOf(
    [putOf("k1", keep), nested(txnOf([putOf("k2", keep), putOf("k3", keep)], [putOf("k4", keep)]))],
    [putOf("k5", keep)],
  );
  assert.equal(copiedBytes(view, txn), 3 * one);
  assert.equal(copiedBytes(view, txn, 3 * one), 3 * one);
  assert.throws(() => copiedBytes(view, txn, 3 * one - 1), {
    code: "RequestTooLarge",
    message: `etcdserver: request is too large: its puts with ignore_value would copy ${3 * one} bytes; at most ${3 * one - 1} are copied`,
  });
});

test("the answer of a request that writes is bounded before it is proposed", async () => {
  const store = await filled();
  const { view } = store.mvcc;
  const record = store.liveBytes / 10;
  const refused = (request: DeleteRangeRequest | TxnRequest, records: number): void => {
    assert.equal(mayReadMuch(request), true);
    const limits = { answerBytes: records * record, comparedRecords: 0 };
    runSteps(checkWork(view, request, limits));
    limits.answerBytes--;
    assert.throws(() => runSteps(checkWork(view, request, limits)), {
      code: "RequestTooLarge",
      message:
        /answer would hold more than \d+ bytes of earlier values and ranges; ask for less, or in parts$/,
    });
  };
  const deletion = DeleteRangeRequest.create({ ...ALL, prevKv: true });
  const remove: RequestOp = { request: { case: "requestDeleteRange", value: deletion } };
  const rangeOf = (more: Partial<RangeRequest>): RequestOp => ({
    request: { case: "requestRange", value: RangeRequest.create({ ...ALL, ...more }) },
  });
  refused(deletion, 10);
  refused(txnOf([remove, rangeOf({ limit: 3 })]), 13);
  refused(txnOf([putOf("x")], [nested(txnOf([], [rangeOf({})]))]), 10);
  for (const small of [
    DeleteRangeRequest.create(ALL),
    DeleteRangeRequest.create({ key: fromUtf8("k1"), prevKv: true }),
    txnOf([putOf("k1"), rangeOf({ countOnly: true })]),
  ]) {
    assert.equal(mayReadMuch(small), false);
  }
  await store.close({ flush: false });
});

test("comparisons over ranges read up to a bound of records", async () => {
  const store = await filled();
  const { view } = store.mvcc;
  const compareOf = (target: Target, more: Partial<Compare> = {}): Compare =>
    Compare.create({ ...ALL, target, ...more });
  const ofValues = compareOf(Target.VALUE);
  const inner: RequestOp = {
    request: {
      case: "requestTxn",
      value: TxnRequest.create({ compare: [compareOf(Target.VALUE)], success: [putOf("x")] }),
    },
  };
  const check = (request: TxnRequest, comparedRecords: number): void =>
    runSteps(checkWork(view, request, { answerBytes: 0, comparedRecords }));
  for (const [request, records] of [
    [TxnRequest.create({ compare: [ofValues], success: [putOf("x")] }), 10],
    [TxnRequest.create({ compare: [ofValues, ofValues], success: [putOf("x")] }), 20],
    [TxnRequest.create({ compare: [ofValues], success: [putOf("x")], failure: [inner] }), 20],
  ] as const) {
    assert.equal(mayReadMuch(request), true);
    check(request, records);
    assert.throws(() => check(request, records - 1), {
      code: "RequestTooLarge",
      message:
        "etcdserver: request is too large: its comparisons would read more than " +
        `${records - 1} records; compare fewer keys, or in parts`,
    });
  }
  // The index has all but values, and leases where there is one.
  const ofLeases = TxnRequest.create({ compare: [compareOf(Target.LEASE)] });
  assert.equal(mayReadMuch(ofLeases), true);
  check(ofLeases, 0);
  for (const small of [Target.VERSION, Target.CREATE, Target.MOD])
    assert.equal(mayReadMuch(TxnRequest.create({ compare: [compareOf(small)] })), false);
  const single = compareOf(Target.VALUE, { rangeEnd: new Uint8Array(0) });
  assert.equal(mayReadMuch(TxnRequest.create({ compare: [single] })), false);
  await store.close({ flush: false });
});

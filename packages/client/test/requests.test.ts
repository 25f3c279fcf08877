import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, RangeRequest_SortOrder, RangeRequest_SortTarget } from "@quorate/proto";
import {
  compareCreateRevision,
  compareLease,
  compareModRevision,
  compareValue,
  compareVersion,
  deleteRequest,
  getRequest,
  opDelete,
  opGet,
  opPut,
  opTxn,
  prefixEnd,
  putRequest,
  readsOnly,
  txnRequest,
} from "../src/requests.ts";

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);

test("the end of a prefix is the first key after all that begin with it", () => {
  assert.deepEqual(prefixEnd("ab"), fromUtf8("ac"));
  assert.deepEqual(prefixEnd(bytes(1, 0xff)), bytes(2));
  assert.deepEqual(prefixEnd(bytes(0xff, 0xff)), bytes(0));
  assert.deepEqual(prefixEnd(""), bytes(0));
});

test("a range is a prefix, from a key on, or up to a key, and only one of them", () => {
  const ends = (...args: Parameters<typeof getRequest>): [Uint8Array, Uint8Array] => [
    getRequest(...args).key,
    getRequest(...args).rangeEnd,
  ];
  assert.deepEqual(ends("k"), [fromUtf8("k"), bytes()]);
  assert.deepEqual(ends("k", { prefix: true }), [fromUtf8("k"), fromUtf8("l")]);
  assert.deepEqual(ends("", { prefix: true }), [bytes(0), bytes(0)]);
  assert.deepEqual(ends("k", { fromKey: true }), [fromUtf8("k"), bytes(0)]);
  assert.deepEqual(ends("", { fromKey: true }), [bytes(0), bytes(0)]);
  assert.deepEqual(ends("k", { rangeEnd: bytes(0xff) }), [fromUtf8("k"), bytes(0xff)]);
  assert.throws(() => getRequest("k", { prefix: true, rangeEnd: "z" }), TypeError);
  assert.throws(() => deleteRequest("k", { prefix: true, fromKey: true }), TypeError);
});

test("a text key is encoded as UTF-8, and the caller's bytes are not changed", () => {
  // A slice of a Buffer is a view of it, of a Uint8Array a copy.
  for (const prefix of [bytes(1, 2), Buffer.from([1, 2])]) {
    assert.deepEqual(deleteRequest(prefix, { prefix: true }).rangeEnd, bytes(1, 3));
    assert.deepEqual([...prefix], [1, 2]);
  }
  assert.deepEqual(putRequest("ключ", "☃").value, fromUtf8("☃"));
});

test("a sort is requested only where the server's order differs", () => {
  const sort = (options: Parameters<typeof getRequest>[1]): [number, number] => {
    const request = getRequest("k", options);
    return [request.sortTarget, request.sortOrder];
  };
  const { KEY, MOD, VALUE } = RangeRequest_SortTarget;
  const { NONE, ASCEND, DESCEND } = RangeRequest_SortOrder;
  assert.deepEqual(sort({}), [KEY, NONE]);
  assert.deepEqual(sort({ sortBy: "key", order: "ascend" }), [KEY, NONE]);
  assert.deepEqual(sort({ order: "descend" }), [KEY, DESCEND]);
  assert.deepEqual(sort({ sortBy: "mod" }), [MOD, ASCEND]);
  assert.deepEqual(sort({ sortBy: "value", order: "descend" }), [VALUE, DESCEND]);
});

test("options reach the request under their names", () => {
  assert.deepEqual(
    putRequest("k", "", { lease: 7n, prevKv: true, ignoreValue: true, ignoreLease: true }),
    {
      key: fromUtf8("k"),
      value: bytes(),
      lease: 7n,
      prevKv: true,
      ignoreValue: true,
      ignoreLease: true,
    },
  );
  const request = getRequest("k", {
    limit: 1,
    revision: 2,
    serializable: true,
    keysOnly: true,
    countOnly: true,
    minModRevision: 3,
    maxModRevision: 4,
    minCreateRevision: 5,
    maxCreateRevision: 6,
  });
  assert.deepEqual(
    [
      request.limit,
      request.revision,
      request.serializable,
      request.keysOnly,
      request.countOnly,
      request.minModRevision,
      request.maxModRevision,
      request.minCreateRevision,
      request.maxCreateRevision,
    ],
    [1, 2, true, true, true, 3, 4, 5, 6],
  );
  assert.equal(deleteRequest("k", { prevKv: true }).prevKv, true);
});

test("comparisons name their target, and transactions know whether they only read", () => {
  assert.deepEqual(compareVersion("k", "=", 1).targetUnion, { case: "version", value: 1 });
  assert.deepEqual(compareCreateRevision("k", "!=", 2).targetUnion, {
    case: "createRevision",
    value: 2,
  });
  assert.deepEqual(compareModRevision("k", "<", 3).targetUnion, { case: "modRevision", value: 3 });
  assert.deepEqual(compareValue("k", ">", "v").targetUnion, {
    case: "value",
    value: fromUtf8("v"),
  });
  assert.deepEqual(compareLease("k", "=", 9n, { prefix: true }).rangeEnd, fromUtf8("l"));
  assert.deepEqual(
    ["=", ">", "<", "!="].map((sign) => compareVersion("k", sign as "=", 0).result),
    [0, 1, 2, 3],
  );
  const reads = { success: [opGet("a"), opTxn({ failure: [opGet("b")] })] };
  assert.equal(readsOnly(txnRequest(reads)), true);
  assert.equal(readsOnly(txnRequest({ ...reads, failure: [opPut("a", "b")] })), false);
  assert.equal(readsOnly(txnRequest({ success: [opTxn({ failure: [opDelete("b")] })] })), false);
});

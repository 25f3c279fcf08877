import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Compare,
  DeleteRangeRequest,
  type ErrorName,
  fromLatin1,
  PutRequest,
  RangeRequest,
  type RequestOp,
  type TxnRequest,
} from "@quorate/proto";
import {
  checkDeleteRange,
  checkPut,
  checkRange,
  checkTxn,
  isReadOnlyTxn,
  isSerializableTxn,
} from "@quorate/store";
import { Prng } from "./mvcc-history.ts";

const put = (key: string): RequestOp => ({
  request: { case: "requestPut", value: PutRequest.create({ key: fromLatin1(key) }) },
});
const del = (key: string, end = ""): RequestOp => ({
  request: {
    case: "requestDeleteRange",
    value: DeleteRangeRequest.create({ key: fromLatin1(key), rangeEnd: fromLatin1(end) }),
  },
});
const get = (key: string, serializable = false): RequestOp => ({
  request: {
    case: "requestRange",
    value: RangeRequest.create({ key: fromLatin1(key), serializable }),
  },
});
const txn = (
  success: RequestOp[],
  failure: RequestOp[] = [],
  compare: Compare[] = [],
): TxnRequest => ({ compare, success, failure });
const nest = (success: RequestOp[], failure: RequestOp[] = []): RequestOp => ({
  request: { case: "requestTxn", value: txn(success, failure) },
});
const key = fromLatin1("k");

test("ranges, puts and deletes", () => {
  const ranges: readonly [Partial<RangeRequest>, ErrorName | undefined][] = [
    [{}, "EmptyKey"],
    [{ key }, undefined],
    [{ key, sortOrder: 2, sortTarget: 4 }, undefined],
    [{ key, sortOrder: 3 }, "InvalidSortOption"],
    [{ key, sortOrder: -1 }, "InvalidSortOption"],
    [{ key, sortTarget: 5 }, "InvalidSortOption"],
    [{ sortTarget: 5 }, "EmptyKey"],
  ];
  for (const [request, error] of ranges)
    assert.equal(checkRange(RangeRequest.create(request)), error);
  const puts: readonly [Partial<PutRequest>, ErrorName | undefined][] = [
    [{ value: key }, "EmptyKey"],
    [{ key }, undefined],
    [{ key, value: key, ignoreValue: true }, "ValueProvided"],
    [{ key, ignoreValue: true, lease: 5n }, undefined],
    [{ key, ignoreLease: true, lease: 5n }, "LeaseProvided"],
    [{ key, value: key, ignoreLease: true }, undefined],
    [{ key, value: key, ignoreValue: true, ignoreLease: true, lease: 5n }, "ValueProvided"],
  ];
  for (const [request, error] of puts) assert.equal(checkPut(PutRequest.create(request)), error);
  assert.equal(checkDeleteRange(DeleteRangeRequest.create({})), "EmptyKey");
  assert.equal(checkDeleteRange(DeleteRangeRequest.create({ key })), undefined);
});

test("transactions: what each part may be", () => {
  const table: readonly [string, TxnRequest, ErrorName | undefined][] = [
    ["nothing", txn([]), undefined],
    ["an operation of no kind", txn([{ request: undefined }]), "KeyNotFound"],
    ["a compare without a key", txn([], [], [Compare.create({})]), "EmptyKey"],
    ["a put without a key", txn([put("")]), "EmptyKey"],
    ["a bad operation on the other branch", txn([], [get("")]), "EmptyKey"],
    ["a bad operation within", txn([nest([nest([], [del("")])])]), "EmptyKey"],
    ["the count before the keys", txn(Array.from({ length: 9 }, () => put(""))), "TooManyOps"],
  ];
  for (const [name, request, error] of table) assert.equal(checkTxn(request, 8), error, name);
});

test("transactions: the operations of a list, and the rest of them for what it nests", () => {
  const gets = (count: number): RequestOp[] => Array.from({ length: count }, () => get("a"));
  const compares = (count: number): Compare[] =>
    Array.from({ length: count }, () => Compare.create({ key }));
  assert.equal(checkTxn(txn(gets(128)), 128), undefined);
  assert.equal(checkTxn(txn(gets(129)), 128), "TooManyOps");
  assert.equal(checkTxn(txn([], gets(129)), 128), "TooManyOps");
  assert.equal(checkTxn(txn([], [], compares(129)), 128), "TooManyOps");
  assert.equal(checkTxn(txn(gets(128), gets(128), compares(128)), 128), undefined);
  assert.equal(checkTxn(txn([nest(gets(127))]), 128), undefined);
  assert.equal(checkTxn(txn([nest(gets(128))]), 128), "TooManyOps");
  assert.equal(checkTxn(txn([nest([])], gets(128)), 128), undefined);
  assert.equal(checkTxn(txn([nest(gets(1))], gets(128)), 128), "TooManyOps");
});

test("transactions: a key is changed once on each way", () => {
  const duplicate = "DuplicateKey";
  const table: readonly [string, RequestOp[], ErrorName | undefined][] = [
    ["two keys", [put("a"), put("b")], undefined],
    ["two puts of one", [put("a"), put("a")], duplicate],
    ["a put and its delete", [put("a"), del("a")], duplicate],
    ["a delete and then a put", [del("a"), put("a")], duplicate],
    ["two deletes of one", [del("a"), del("a")], undefined],
    ["a put in a deleted range", [put("b"), del("a", "c")], duplicate],
    ["a put at the end of a deleted range", [put("c"), del("a", "c")], undefined],
    ["a put right after a deleted key", [put("a\0"), del("a")], undefined],
    ["a put between deleted ranges", [put("c"), del("d", "e"), del("a", "c")], undefined],
    ["a put in the longer of two ranges", [put("f"), del("b", "c"), del("a", "g")], duplicate],
    ["a range upside down", [put("b"), del("c", "a")], undefined],
    ["a range without an upper bound, as etcd has it", [put("b"), del("a", "\0")], undefined],
    ["a put and a nested put", [put("a"), nest([put("a")])], duplicate],
    ["a put and one in a nested failure", [nest([], [put("a")]), put("a")], duplicate],
    ["puts in both branches", [nest([put("a")], [put("a")])], undefined],
    ["puts of two nested ones", [nest([put("a")]), nest([put("a")])], duplicate],
    [
      "of two nested ones, in different branches",
      [nest([put("a")]), nest([], [put("a")])],
      duplicate,
    ],
    ["a delete around a nested put", [nest([put("a")]), del("a")], duplicate],
    ["a nested delete and a put around it", [nest([del("a")]), put("a")], duplicate],
    [
      "a delete in a nested failure and a put around it",
      [nest([], [del("a")]), put("a")],
      duplicate,
    ],
    ["a nested delete, then a nested put", [nest([del("a", "b")]), nest([put("a")])], duplicate],
    [
      "a nested put, then a nested delete, as etcd has it",
      [nest([put("a")]), nest([del("a", "b")])],
      undefined,
    ],
    ["a delete in one branch, a put in the other", [nest([del("a")], [put("a")])], undefined],
    ["two levels down", [nest([nest([], [put("a")])]), put("a")], duplicate],
    ["a fault within a nested one", [nest([], [put("a"), put("a")])], duplicate],
  ];
  for (const [name, ops, error] of table) {
    assert.equal(checkTxn(txn(ops), 128), error, name);
    assert.equal(checkTxn(txn([], ops), 128), error, `${name}, on failure`);
  }
});

test("deleted ranges against a plain list", () => {
  const prng = new Prng(7);
  const name = (): string => String.fromCharCode(97 + prng.below(12));
  let duplicates = 0;
  for (let round = 0; round < 2000; round++) {
    const deletes = Array.from({ length: prng.below(6) }, () => ({
      from: name(),
      to: prng.chance(30) ? "" : name(),
    }));
    const one = name();
    const covered = deletes.some(({ from, to }) =>
      to === "" ? one === from : one >= from && one < to,
    );
    if (covered) duplicates++;
    assert.equal(
      checkTxn(txn([...deletes.map(({ from, to }) => del(from, to)), put(one)]), 128),
      covered ? "DuplicateKey" : undefined,
    );
  }
  assert.ok(duplicates > 200);
});

test("a large transaction is checked in time that grows with its size", () => {
  const lists = Array.from({ length: 40 }, (_, i) =>
    nest(Array.from({ length: 80 }, (_, j) => del(`${i}-${j}`, `${i}-${j}x`))),
  );
  const puts = Array.from({ length: 40 }, (_, i) =>
    nest(Array.from({ length: 80 }, (_, j) => put(`p${i}-${j}`))),
  );
  assert.equal(checkTxn(txn([...lists, ...puts]), 160), undefined);
});

test("what a transaction can do", () => {
  const table: readonly [TxnRequest, boolean, boolean][] = [
    [txn([]), true, true],
    [txn([get("a")], [get("b")]), true, false],
    [txn([get("a", true)], [get("b", true)]), true, true],
    [txn([get("a", true)], [get("b")]), true, false],
    [txn([get("a", true)], [put("b")]), false, false],
    [txn([del("b")]), false, false],
    [txn([nest([get("a", true)])]), false, false],
    [txn([{ request: undefined }]), false, false],
  ];
  for (const [request, readOnly, serializable] of table) {
    assert.equal(isReadOnlyTxn(request), readOnly);
    assert.equal(isSerializableTxn(request), serializable);
  }
});

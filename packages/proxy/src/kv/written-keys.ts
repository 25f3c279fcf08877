/** The keys that a request may write, for the cache. */
import { type RequestOp, type TxnRequest, toLatin1 } from "@quorate/proto";
import type { KeyRange } from "./range-cache.ts";

/** Transactions in transactions, as deep as the cluster takes them. */
const MAX_DEPTH = 128;

/**
 * The keys of a transaction: those that either branch writes, and those that it compares (etcd: a
 * transaction may show that a response is old).
 */
export function keysOfTxn(txn: TxnRequest, depth = 0): KeyRange[] {
  const keys = txn.compare.map((one) => rangeOf(one.key, one.rangeEnd));
  for (const op of [...txn.success, ...txn.failure]) keys.push(...keysOfOp(op, depth));
  return keys;
}

function keysOfOp({ request }: RequestOp, depth: number): KeyRange[] {
  if (request?.case === "requestPut") return [rangeOf(request.value.key)];
  if (request?.case === "requestDeleteRange")
    return [rangeOf(request.value.key, request.value.rangeEnd)];
  if (request?.case === "requestTxn" && depth < MAX_DEPTH)
    return keysOfTxn(request.value, depth + 1);
  return [];
}

/** A range of keys as text. */
export function rangeOf(key: Uint8Array, end?: Uint8Array): KeyRange {
  return { key: toLatin1(key), end: end === undefined ? "" : toLatin1(end) };
}

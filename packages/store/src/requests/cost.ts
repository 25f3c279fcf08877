/**
 * The bytes that a request may add to the store, as the space quota estimates them (etcd:
 * server/storage/quota.go); 0 if none.
 */
import type { PutRequest, RequestOp, TxnRequest } from "@quorate/proto";

/** Bytes of a key besides its name and value. */
const KEY_OVERHEAD_BYTES = 256;
/** Bytes of a lease. */
export const LEASE_COST_BYTES = 64;

export function putCostBytes(request: PutRequest): number {
  return KEY_OVERHEAD_BYTES + request.key.length + request.value.length;
}

/** The larger of its two lists, because the comparisons decide only when it is applied. */
export function txnCostBytes(request: TxnRequest): number {
  return Math.max(listCostBytes(request.success), listCostBytes(request.failure));
}

function listCostBytes(ops: readonly RequestOp[]): number {
  let bytes = 0;
  for (const { request: op } of ops) {
    if (op?.case === "requestPut") bytes += putCostBytes(op.value);
    else if (op?.case === "requestTxn") bytes += txnCostBytes(op.value);
  }
  return bytes;
}

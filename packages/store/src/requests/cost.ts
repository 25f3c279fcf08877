/**
 * What a request may add to the store in bytes, as the space quota estimates it (etcd:
 * server/storage/quota.go); 0 if nothing.
 */
import type { PutRequest, RequestOp, TxnRequest } from "@quorate/proto";

/** What a key takes beside its name and value. */
const KEY_OVERHEAD_BYTES = 256;
/** What a lease takes. */
export const LEASE_COST_BYTES = 64;

export function putCostBytes(request: PutRequest): number {
  return KEY_OVERHEAD_BYTES + request.key.length + request.value.length;
}

/** The larger of its two lists: which one runs is not known beforehand. */
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

/** Put: a new value for a key. */
import {
  type ErrorName,
  errorOf,
  KeyValue,
  type PutRequest,
  type PutResponse,
  toLatin1,
} from "@quorate/proto";
import { assert } from "../backend/invariants.ts";
import { headerAt } from "../backend/revision.ts";
import type { LeaseBook, Mvcc, WriteTxn } from "../mvcc/index.ts";

/** The error of a put that no state makes valid; undefined for a valid one. */
export function checkPut(request: PutRequest): ErrorName | undefined {
  if (request.key.length === 0) return "EmptyKey";
  if (request.ignoreValue && request.value.length > 0) return "ValueProvided";
  if (request.ignoreLease && request.lease !== 0n) return "LeaseProvided";
  return undefined;
}

/** Bytes of a key besides its name and value. */
const KEY_OVERHEAD_BYTES = 256;
/** What a put may add to the store, as the space quota estimates it (etcd: storage/quota.go). */
export function putCostBytes(request: PutRequest): number {
  return KEY_OVERHEAD_BYTES + request.key.length + request.value.length;
}

/**
 * Puts in a transaction of its own. @param answered false if no caller waits for the response:
 * prev_kv is not read @throws EtcdError LeaseNotFound, KeyNotFound (ignore_value or ignore_lease
 * without a key); nothing has changed then
 */
export function applyPut(
  mvcc: Mvcc,
  leases: LeaseBook,
  request: PutRequest,
  answered = true,
): PutResponse {
  checkLease(leases, request);
  if (
    (request.ignoreValue || request.ignoreLease) &&
    mvcc.view.get(toLatin1(request.key)) === undefined
  )
    throw errorOf("KeyNotFound");
  const txn = mvcc.begin(leases);
  const response = put(txn, request, answered);
  txn.commit();
  return response;
}

/** @throws EtcdError LeaseNotFound */
export function checkLease(leases: LeaseBook, request: PutRequest): void {
  if (request.lease !== 0n && !leases.exists(request.lease)) throw errorOf("LeaseNotFound");
}

/** Puts within a transaction, after all checks. */
export function put(txn: WriteTxn, request: PutRequest, answered: boolean): PutResponse {
  const key = toLatin1(request.key);
  let { value, lease } = request;
  let prevKv: Uint8Array | undefined;
  if (request.ignoreValue || request.ignoreLease || (request.prevKv && answered)) {
    const found = txn.get(key);
    const record = found === undefined ? undefined : txn.record(found);
    if (request.ignoreValue || request.ignoreLease) {
      assert(record !== undefined, "MVCC-7");
      const before = KeyValue.decode(record);
      if (request.ignoreValue) value = before.value;
      if (request.ignoreLease) lease = before.lease;
    }
    if (request.prevKv) prevKv = record;
  }
  txn.put(request.key, key, value, lease);
  return { header: headerAt(txn.revision), prevKv };
}

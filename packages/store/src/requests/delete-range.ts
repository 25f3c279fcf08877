/** DeleteRange: a tombstone for each key of a range. */
import {
  type DeleteRangeRequest,
  type DeleteRangeResponse,
  type ErrorName,
  toLatin1,
} from "@quorate/proto";
import { headerAt } from "../backend/revision.ts";
import { runSteps, type Steps } from "../backend/steps.ts";
import { keyRange, type LeaseBook, type Mvcc, type WriteTxn } from "../mvcc/index.ts";

/** The error of a deletion that no state makes valid; undefined for a valid one. */
export function checkDeleteRange(request: DeleteRangeRequest): ErrorName | undefined {
  return request.key.length === 0 ? "EmptyKey" : undefined;
}

/**
 * Deletes in a transaction of its own, without a pause; without a key in the range the revision
 * does not change. @param answered as in applyPut
 */
export function applyDeleteRange(
  mvcc: Mvcc,
  leases: LeaseBook,
  request: DeleteRangeRequest,
  answered = true,
): DeleteRangeResponse {
  return isSingleDelete(request)
    ? applyDelete(mvcc, leases, request, answered)
    : runSteps(deleteInSteps(mvcc, leases, request, answered));
}

/** True for a request that deletes one key. */
export function isSingleDelete(request: DeleteRangeRequest): boolean {
  return request.rangeEnd.length === 0;
}

/** Deletes one key in a transaction of its own. */
export function applyDelete(
  mvcc: Mvcc,
  leases: LeaseBook,
  request: DeleteRangeRequest,
  answered: boolean,
): DeleteRangeResponse {
  const txn = mvcc.begin(leases);
  const response = deleteKey(txn, request, answered);
  txn.commit();
  return response;
}

/**
 * Deletes a range in a transaction of its own, in steps. Its changes become visible with the last
 * step.
 */
export function* deleteInSteps(
  mvcc: Mvcc,
  leases: LeaseBook,
  request: DeleteRangeRequest,
  answered: boolean,
): Steps<DeleteRangeResponse> {
  const txn = mvcc.beginLong(leases);
  const response = yield* deleteRange(txn, request, answered);
  txn.commit();
  return response;
}

/** Deletes one key within a transaction. */
export function deleteKey(
  txn: WriteTxn,
  request: DeleteRangeRequest,
  answered: boolean,
): DeleteRangeResponse {
  const key = toLatin1(request.key);
  const found = request.prevKv && answered ? txn.get(key) : undefined;
  const prevKvs = found === undefined ? [] : [txn.record(found)];
  const deleted = txn.delete(key) ? 1 : 0;
  return { header: headerAt(txn.revision), deleted, prevKvs };
}

/** Deletes within a long transaction, in steps. */
export function* deleteRange(
  txn: WriteTxn,
  request: DeleteRangeRequest,
  answered: boolean,
): Steps<DeleteRangeResponse> {
  if (isSingleDelete(request)) return deleteKey(txn, request, answered);
  const keys = keyRange(request.key, request.rangeEnd);
  const prevKvs =
    request.prevKv && answered ? (yield* txn.records(keys, txn.revision, 0)).records : [];
  const deleted = yield* txn.deleteRange(keys);
  return { header: headerAt(txn.revision), deleted, prevKvs };
}

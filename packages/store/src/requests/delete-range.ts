/** DeleteRange: a tombstone for each key of a range. */
import type { DeleteRangeRequest, DeleteRangeResponse } from "@quorate/proto";
import type { LeaseBook, Mvcc, WriteTxn } from "../mvcc/index.ts";
import { keyRange } from "../mvcc/index.ts";
import { runSteps } from "../steps.ts";
import { headerAt } from "./header.ts";

/** Deletes in a transaction of its own; without a key in the range the revision stays. @param answered as in applyPut */
export function applyDeleteRange(mvcc: Mvcc, leases: LeaseBook, request: DeleteRangeRequest, answered = true): DeleteRangeResponse {
  const txn = mvcc.begin(leases);
  const response = deleteRange(txn, request, answered);
  txn.commit();
  return response;
}

/** Deletes within a transaction. */
export function deleteRange(txn: WriteTxn, request: DeleteRangeRequest, answered: boolean): DeleteRangeResponse {
  const keys = keyRange(request.key, request.rangeEnd);
  const prevKvs = request.prevKv && answered ? runSteps(txn.records(keys, txn.revision, 0)).records : [];
  const deleted = txn.deleteRange(keys);
  return { header: headerAt(txn.revision), deleted, prevKvs };
}

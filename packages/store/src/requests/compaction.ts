/** Compaction: drops the history before a revision. */
import type { CompactionRequest, CompactionResponse } from "@quorate/proto";
import { headerAt } from "../backend/revision.ts";
import type { Mvcc } from "../mvcc/index.ts";

/**
 * Schedules compaction; compactStep() then deletes the records. A `physical` request gets its
 * response once mvcc.compactedRevision has reached its revision. @throws EtcdError Compacted,
 * FutureRev
 */
export function applyCompaction(mvcc: Mvcc, request: CompactionRequest): CompactionResponse {
  mvcc.compact(request.revision);
  return { header: headerAt(mvcc.currentRevision) };
}

/** The requests' exports for the rest of the store. */
export {
  checkDeleteRange,
  checkPut,
  checkRange,
  checkTxn,
  isReadOnlyTxn,
  isSerializableTxn,
  isShortTxn,
} from "./check.ts";
export { applyCompaction } from "./compaction.ts";
export { decodeTxn, MAX_TXN_OPS_IN_ALL } from "./decode-txn.ts";
export { applyDelete, applyDeleteRange, deleteInSteps, isSingleDelete } from "./delete-range.ts";
export { applyPut } from "./put.ts";
export {
  applyRange,
  isPlainGet,
  type RangeSummary,
  type RecordSink,
  range,
  rangeIfSmall,
  rangeInto,
  readKey,
} from "./range.ts";
export { type ChunkRequest, type ChunkSummary, rangeChunk } from "./range-chunk.ts";
export { type ReadTxnAnswer, readTxn } from "./read-txn.ts";
export { applyShortTxn, applyTxn, txnInSteps } from "./txn.ts";
export {
  checkWork,
  copiedBytes,
  MAX_COMPARED_RECORDS,
  MAX_COPIED_BYTES,
  MAX_WRITE_ANSWER_BYTES,
  mayReadMuch,
} from "./work.ts";

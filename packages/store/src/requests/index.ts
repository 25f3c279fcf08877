/** The door of the requests for the rest of the store. */
export { checkDeleteRange, checkPut, checkRange, checkTxn } from "./check.ts";
export { applyCompaction } from "./compaction.ts";
export { applyDeleteRange } from "./delete-range.ts";
export { isReadOnlyTxn, isSerializableTxn } from "./kinds.ts";
export { applyPut } from "./put.ts";
export { applyRange, isPlainGet, type RangeSummary, type RecordSink, rangeIfSmall, rangeInto } from "./range.ts";
export { type ReadTxnAnswer, readTxn } from "./read-txn.ts";
export { applyTxn } from "./txn.ts";

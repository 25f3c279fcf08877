/** The door of the requests for the rest of the store. */
export { checkDeleteRange, checkPut, checkRange, checkTxn } from "./check.ts";
export { applyCompaction } from "./compaction.ts";
export { decodeTxn, MAX_TXN_OPS_IN_ALL } from "./decode-txn.ts";
export { applyDeleteRange } from "./delete-range.ts";
export { isReadOnlyTxn, isSerializableTxn } from "./kinds.ts";
export { applyPut } from "./put.ts";
export { applyRange } from "./range.ts";
export { applyTxn } from "./txn.ts";

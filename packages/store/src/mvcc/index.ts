/** The exports of mvcc for the rest of the store. */

export type { KeyIndex } from "./key-index.ts";
export { KeyTree } from "./key-tree.ts";
export { Mvcc } from "./mvcc.ts";
export type { PinnedView, ReadIo } from "./pinned-view.ts";
export {
  inRange,
  isLatest,
  type KeyRange,
  keyRange,
  ReadView,
  type VisitKey,
} from "./read-view.ts";
export { type Change, type LeaseBook, MAX_KEPT_CHANGES, noLeases, WriteTxn } from "./write-txn.ts";

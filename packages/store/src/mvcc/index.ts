/** The exports of mvcc for the rest of the store. */
export type { KeyValueHash } from "./hash.ts";
export type { KeyIndex } from "./key-index.ts";
export { inRange, type KeyRange, keyRange } from "./key-range.ts";
export { KeyTree } from "./key-tree.ts";
export { type LeaseBook, noLeases } from "./lease-book.ts";
export { type LargeChangeListener, Mvcc } from "./mvcc.ts";
export type { PinnedView, PinOptions, ReadIo } from "./pinned-view.ts";
export {
  type Found,
  isLatest,
  type NeedsRecord,
  ReadView,
  type VisitKey,
} from "./read-view.ts";
export { decodeRevision, encodeRevision, type Revision } from "./revision.ts";
export type { MvccCounts } from "./state.ts";
export { type Change, MAX_KEPT_CHANGES, WriteTxn } from "./write-txn.ts";

/** The exports of mvcc for the rest of the store. */

export { decodeRevision, encodeRevision, type Revision } from "../backend/revision.ts";
export type { KeyValueHash } from "./hash.ts";
export type { KeyIndex } from "./key-index.ts";
export { KeyTree } from "./key-tree.ts";
export { type LargeChangeListener, Mvcc } from "./mvcc.ts";
export type { PinnedView, PinOptions, ReadIo } from "./pinned-view.ts";
export {
  type Found,
  inRange,
  isLatest,
  type KeyRange,
  keyRange,
  type NeedsRecord,
  ReadView,
  type VisitKey,
} from "./read-view.ts";
export type { MvccCounts } from "./state.ts";
export { type Change, type LeaseBook, MAX_KEPT_CHANGES, noLeases, WriteTxn } from "./write-txn.ts";

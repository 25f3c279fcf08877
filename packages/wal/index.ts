/**
 * Durability: the segmented write-ahead log and the snapshot files of a member, in etcd's own
 * formats.
 */
export { WalDamageError, WalError, type WalErrorCode, type WalFailure } from "./src/errors.ts";
export { RecordType, SEGMENT_BYTES, type SegmentName } from "./src/format.ts";
export { readWal, type WalEnd, type WalRecord } from "./src/reader.ts";
export {
  parseSnapshotName,
  type SaveTiming,
  SnapshotFiles,
} from "./src/snapshots.ts";
export { memberOf, validSnapshotMarks, verifyWal, type WalSummary } from "./src/verify.ts";
export { type OpenedWal, Wal, type WalMeasures, type WalOptions } from "./src/wal.ts";

/**
 * Durability: the segmented write-ahead log and the snapshot files of a member, in etcd's own
 * formats.
 */
export { WalDamageError, WalError, type WalErrorCode } from "./src/errors.ts";
export { RecordType } from "./src/format.ts";
export { readWal, type WalRecord } from "./src/reader.ts";
export {
  parseSnapshotName,
  type SaveTiming,
  SnapshotFiles,
} from "./src/snapshots.ts";
export { memberOf, validSnapshotMarks, verifyWal, type WalSummary } from "./src/verify.ts";
export { Wal, type WalMeasures, type WalOptions } from "./src/wal.ts";

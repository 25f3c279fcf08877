/**
 * Continuous backups: the files they are made of, and stores rebuilt from them as of any revision.
 */
export {
  type BackupCatalog,
  type BaseFile,
  type Chain,
  chainFor,
  chainsOf,
  readCatalog,
  type SegmentFile,
} from "./src/catalog.ts";
export { BackupError } from "./src/errors.ts";
export { applyLeases, type FollowState, followState, leasesOfBase } from "./src/follow-state.ts";
export {
  type BackupRecord,
  baseName,
  MAX_LEASES_PER_RECORD,
  parseSegmentName,
  type RevisionChange,
} from "./src/format.ts";
export { prunable } from "./src/prune.ts";
export { type RebuildPoint, type RebuildTarget, rebuild } from "./src/rebuild.ts";
export { readSegment } from "./src/segment-reader.ts";
export { MAX_SEGMENT_BYTES, SegmentWriter } from "./src/segment-writer.ts";
export { type VerifiedChain, verifyChain } from "./src/verify.ts";

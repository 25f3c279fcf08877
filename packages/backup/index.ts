/**
 * Continuous backups: their files, stores rebuilt from them as of any revision, new members around
 * a store.
 */
export { type Chain, chainFor, chainsOf, prunable, readCatalog } from "./src/catalog.ts";
export { BackupError, type BackupErrorCode } from "./src/errors.ts";
export {
  adoptMember,
  type EtcdMemberDeps,
  EtcdMemberError,
  type MemberFiles,
  releaseMember,
  type TakenMember,
} from "./src/etcd-member.ts";
export { type Exchange, exchange, finishExchange } from "./src/exchange.ts";
export { fetchBackup } from "./src/fetch.ts";
export { followState } from "./src/follow-state.ts";
export { type BackupRecord, baseName, MAX_LEASES_PER_RECORD } from "./src/format.ts";
export { Mirror } from "./src/mirror.ts";
export { makeMember, type NewMember, newMember } from "./src/new-member.ts";
export {
  type Content,
  type ObjectStore,
  ObjectStoreError,
  type ObjectStoreErrorCode,
  type StoredObject,
} from "./src/object-store.ts";
export { rebuild } from "./src/rebuild.ts";
export { readSegment } from "./src/segment-reader.ts";
export { MAX_SEGMENT_BYTES, SegmentWriter } from "./src/segment-writer.ts";
export { survivorOf } from "./src/survivor.ts";
export { verifyChain } from "./src/verify.ts";

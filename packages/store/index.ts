/** The replicated state of a member: keys with their history, membership, and apply(entry). */
export { type Applied, type AppliedEntry, isSteps, NONE_AWAITED } from "./src/apply.ts";
export { AUTH_REQUESTS } from "./src/auth/auth-requests.ts";
export { type AuthObserver, AuthState, ROOT } from "./src/auth/auth-state.ts";
export {
  type AttachedKeys,
  type AuthIdentity,
  authorize,
  keysOperation,
  type Operation,
  userVerdict,
} from "./src/auth/authorize.ts";
export { isBase64 } from "./src/auth/base64.ts";
export { MAX_TOKEN_ROLE_LENGTH, MAX_TOKEN_ROLES } from "./src/auth/limits.ts";
export { compareNames } from "./src/auth/names.ts";
export {
  type LeaseKeys,
  leaseOperations,
  operationsOf,
  txnOperations,
  verdictBeforeEtcd,
  verdictInSteps,
  verdictNow,
} from "./src/auth/request-operations.ts";
export type { Alarm, Alarms } from "./src/backend/alarms.ts";
export { MAX_PENDING_OPS } from "./src/backend/backend.ts";
export { STORE_BOUNDS, type StoreBounds } from "./src/backend/bounds.ts";
export { dropIncoming, installReceived, recoverDirectories } from "./src/backend/directories.ts";
export { StoreDamageError } from "./src/backend/errors.ts";
export { type Position, STORAGE_VERSION } from "./src/backend/meta.ts";
export { encodeRevision } from "./src/backend/revision.ts";
export { runSteps, STEP_KEYS, type Steps } from "./src/backend/steps.ts";
export { InvalidRequestError } from "./src/entry/invalid-request.ts";
export { hasChecksum, verifyChecksum } from "./src/etcd-file/checksum.ts";
export type { EtcdSnapshot, Sha256 } from "./src/etcd-file/export.ts";
export { importEtcdFile, type LaterChange, type NewCluster } from "./src/etcd-file/import.ts";
export type { LaterUsers } from "./src/etcd-file/later-users.ts";
export { EtcdFileError, FILE_BUCKETS } from "./src/etcd-file/schema.ts";
export { etcdFileCluster, etcdFileRevision, etcdFileStatus } from "./src/etcd-file/status.ts";
export { type Lease, type LeaseObserver, MAX_LEASE_TTL_SECONDS } from "./src/lease/lessor.ts";
export { checkLevelFiles } from "./src/level-files/check.ts";
export { checkConfChangeData, readConfChange } from "./src/membership/conf-change.ts";
export { clusterId, memberId } from "./src/membership/ids.ts";
export {
  decodeChangeContext,
  decodeMembers,
  encodeChangeContext,
  encodeMember,
  type Member,
} from "./src/membership/member.ts";
export { soleSurvivor } from "./src/membership/sole-survivor.ts";
export type { KeyValueHash } from "./src/mvcc/hash.ts";
export { Intervals, intervalOf } from "./src/mvcc/intervals.ts";
export type { KeyIndex } from "./src/mvcc/key-index.ts";
export { Mvcc } from "./src/mvcc/mvcc.ts";
export type { PinnedView, ReadIo } from "./src/mvcc/pinned-view.ts";
export {
  inRange,
  type KeyRange,
  keyRange,
  type NeedsRecord,
  type VisitKey,
} from "./src/mvcc/read-view.ts";
export type { MvccCounts } from "./src/mvcc/state.ts";
export type { Change } from "./src/mvcc/write-txn.ts";
export { receiveEtcdFile, receiveSnapshot } from "./src/receive.ts";
export { applyDeleteRange, checkDeleteRange } from "./src/requests/delete-range.ts";
export { checkEntryData, encodeEntry, isV2 } from "./src/requests/entry-request.ts";
export { applyPut, checkPut, putCostBytes } from "./src/requests/put.ts";
export {
  applyRange,
  checkRange,
  isPlainGet,
  type RangeSummary,
  type RecordSink,
  rangeIfSmall,
  rangeInto,
  readKey,
} from "./src/requests/range.ts";
export { type ChunkSummary, rangeChunk } from "./src/requests/range-chunk.ts";
export type { RequestLimits } from "./src/requests/request-record.ts";
export {
  applyAlarm,
  applyCompaction,
  checkMessage,
  checkRequest,
  costOfRequest,
  decodeRequest,
  MAX_CHECKPOINT_LEASES,
  type RequestKind,
  type RequestOf,
} from "./src/requests/request-table.ts";
export { mergeSort } from "./src/requests/rows.ts";
export { encodeWithRoles, identifiedRequest } from "./src/requests/token-roles.ts";
export { applyTxn, type ReadTxnAnswer, readTxn } from "./src/requests/txn.ts";
export {
  checkTxn,
  decodeTxn,
  isReadOnlyTxn,
  isSerializableTxn,
  MAX_TXN_OPS_IN_ALL,
} from "./src/requests/txn-check.ts";
export { checkWork, copiedBytes, mayReadMuch } from "./src/requests/work.ts";
export { Store, type StoreOptions, type StoreSnapshot } from "./src/store.ts";

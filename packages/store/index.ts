/** The replicated state of a member: keys with their history, membership, and apply(entry). */
export type { Alarm, Alarms } from "./src/alarms.ts";
export {
  type Applied,
  type AppliedEntry,
  isSteps,
} from "./src/apply.ts";
export * from "./src/auth/index.ts";
export { MAX_PENDING_BYTES, MAX_PENDING_OPS } from "./src/backend.ts";
export { dropIncoming, installReceived, recoverDirectories } from "./src/directories.ts";
export { StoreDamageError } from "./src/errors.ts";
export * from "./src/etcd-file/index.ts";
export {
  type Lease,
  type LeaseObserver,
  Lessor,
  MAX_LEASE_TTL_SECONDS,
} from "./src/lease/lessor.ts";
export { type CheckedTables, checkLevelFiles } from "./src/level-files/check.ts";
export { checkConfChangeData, readConfChange } from "./src/membership/conf-change.ts";
export { clusterId, memberId } from "./src/membership/ids.ts";
export {
  type ChangeContext,
  decodeChangeContext,
  decodeMembers,
  encodeChangeContext,
  encodeMember,
  type Member,
} from "./src/membership/member.ts";
export type { Membership } from "./src/membership/membership.ts";
export type { Position } from "./src/meta.ts";
export * from "./src/mvcc/index.ts";
export { receiveSnapshot } from "./src/receive.ts";
export { applyAlarm } from "./src/requests/alarm.ts";
export { LEASE_COST_BYTES, putCostBytes, txnCostBytes } from "./src/requests/cost.ts";
export { checkEntryData } from "./src/requests/entry-request.ts";
export * from "./src/requests/index.ts";
export { InvalidRequestError } from "./src/requests/invalid-request.ts";
export type { ApplyState, RequestLimits } from "./src/requests/request-record.ts";
export {
  checkMessage,
  checkRequest,
  costOfRequest,
  decodeRequest,
  MAX_CHECKPOINT_LEASES,
  type RequestKind,
  type RequestOf,
  type ResponseOf,
} from "./src/requests/request-table.ts";
export { mergeSort } from "./src/requests/rows.ts";
export {
  encodeWithRoles,
  type IdentifiedRequest,
  identifiedRequest,
} from "./src/requests/token-roles.ts";
export { SnapshotStreamError } from "./src/snapshot-stream.ts";
export { runSteps, STEP_KEYS, type Steps } from "./src/steps.ts";
export { STORAGE_VERSION, StorageVersionError } from "./src/storage-version.ts";
export { Store, type StoreOptions, type StoreSnapshot } from "./src/store.ts";

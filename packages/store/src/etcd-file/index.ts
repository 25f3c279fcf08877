/** Import and export of etcd's snapshot files. */
export { hasChecksum, verifyChecksum } from "./checksum.ts";
export {
  CHECKSUM_BYTES,
  type EtcdSnapshot,
  type Sha256,
  SnapshotAbandonedError,
} from "./export.ts";
export {
  type ImportOptions,
  importEtcdFile,
  type LaterChange,
  type LaterHistory,
  type NewCluster,
} from "./import.ts";
export type { LaterUsers } from "./later-users.ts";
export { EtcdFileError, FILE_BUCKETS } from "./schema.ts";
export { type EtcdFileStatus, etcdFileRevision, etcdFileStatus } from "./status.ts";

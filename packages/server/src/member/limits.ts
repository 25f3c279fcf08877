/** Bounds of a member's queues and of its log in memory; docs/LIMITS.md lists them. */

export const MAX_WAITING_PROPOSALS = 20_000;
export const MAX_QUEUED_PROPOSAL_BYTES = 256 * 1024 * 1024;
export const MAX_WAITING_READS = 100_000;
export const READ_RETRY_MS = 500;
/** Committed entries that are not applied yet, beyond which new proposals are refused (etcd: maxGapBetweenApplyAndCommitIndex). */
export const MAX_APPLY_GAP_ENTRIES = 5000;
export const MAX_MESSAGE_BYTES = 512 * 1024;
export const MAX_INFLIGHT_MESSAGES = 512;
export const MAX_INFLIGHT_BYTES = 64 * 1024 * 1024;
export const MAX_UNCOMMITTED_BYTES = 256 * 1024 * 1024;
export const MAX_COMMITTED_BYTES_PER_READY = 4 * 1024 * 1024;
export const MAX_PENDING_READS = 10_000;
export const MAX_LOG_BYTES = 256 * 1024 * 1024;
export const MAX_CATCH_UP_BYTES = 64 * 1024 * 1024;
export const MAX_SNAPSHOT_FILES = 5;

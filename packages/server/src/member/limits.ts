/** Bounds of a member's queues and of its log in memory; docs/LIMITS.md lists them. */

export const MAX_WAITING_PROPOSALS = 20_000;
export const MAX_QUEUED_PROPOSAL_BYTES = 256 * 1024 * 1024;
export const MAX_WAITING_READS = 100_000;
export const READ_RETRY_MS = 500;
/**
 * Committed entries that are not applied yet, beyond which new proposals are refused (etcd:
 * maxGapBetweenApplyAndCommitIndex).
 */
export const MAX_APPLY_GAP_ENTRIES = 5000;
/** The same for the revocation of leases, if the feature gate PriorityRequest is on. */
export const MAX_PREFERRED_GAP_ENTRIES = 10_000;

/** Raft's own bounds (packages/raft/src/config.ts says what they mean). */
export const RAFT_LIMITS = {
  maxMessageBytes: 512 * 1024,
  maxInflightMessages: 512,
  maxInflightBytes: 64 * 1024 * 1024,
  maxUncommittedBytes: 256 * 1024 * 1024,
  maxCommittedBytesPerReady: 4 * 1024 * 1024,
  maxPendingReads: 10_000,
} as const;

/** Bounds of the log in memory, and of the snapshot files that are kept. */
export const LOG_LIMITS = {
  maxLogBytes: 256 * 1024 * 1024,
  maxCatchUpBytes: 64 * 1024 * 1024,
  maxSnapshotFiles: 5,
} as const;

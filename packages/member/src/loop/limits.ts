/** Bounds of a member's queues and of its log in memory; docs/reference/limits.md lists them. */
import type { Budgets } from "../config/budgets.ts";

export const MAX_WAITING_PROPOSALS = 20_000;
export const MAX_WAITING_READS = 100_000;
export const READ_RETRY_MS = 500;
/**
 * Committed entries that are not applied yet, beyond which new proposals are refused (etcd:
 * maxGapBetweenApplyAndCommitIndex).
 */
export const MAX_APPLY_GAP_ENTRIES = 5000;
/** The same for the revocation of leases, if the feature gate PriorityRequest is on. */
export const MAX_PREFERRED_GAP_ENTRIES = 10_000;

/** Raft's own bounds (packages/raft/src/interface.ts says what they mean). */
export const RAFT_LIMITS = {
  maxMessageBytes: 512 * 1024,
  maxInflightMessages: 512,
  maxInflightBytes: 64 * 1024 * 1024,
  maxCommittedBytesPerReady: 4 * 1024 * 1024,
  maxPendingReads: 10_000,
} as const;

/** Snapshot files that are kept. */
export const MAX_SNAPSHOT_FILES = 5;

/** What proposals and the log may take of the memory, in bytes. */
export interface LogMemory {
  /** Payloads that no leader has accepted yet. */
  readonly maxQueuedBytes: number;
  /** Entries that are proposed and not committed. */
  readonly maxUncommittedBytes: number;
  /** Applied entries, and those of them that stay for slow followers. */
  readonly maxLogBytes: number;
  readonly maxCatchUpBytes: number;
}

/** For a machine with much memory. */
export const DEFAULT_LOG_MEMORY: LogMemory = {
  maxQueuedBytes: 256 * 1024 * 1024,
  maxUncommittedBytes: 256 * 1024 * 1024,
  maxLogBytes: 256 * 1024 * 1024,
  maxCatchUpBytes: 64 * 1024 * 1024,
};

/** The share of a member's budgets. Two of the largest requests always fit. */
export function logMemoryFor(
  budgets: Pick<
    Budgets,
    "logTotalBytes" | "logCatchUpBytes" | "uncommittedTotalBytes" | "queuedProposalsTotalBytes"
  >,
  maxRequestBytes: number,
): LogMemory {
  const least = 2 * maxRequestBytes;
  return {
    maxQueuedBytes: Math.max(least, budgets.queuedProposalsTotalBytes),
    maxUncommittedBytes: Math.max(least, budgets.uncommittedTotalBytes),
    maxLogBytes: Math.max(least, budgets.logTotalBytes),
    maxCatchUpBytes: Math.max(least, budgets.logCatchUpBytes),
  };
}

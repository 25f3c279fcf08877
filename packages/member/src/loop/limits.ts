/** Bounds of a member's queues and of its log in memory; docs/reference/limits.md lists them. */
import type { RaftConfig } from "@quorate/raft";
import type { Budgets } from "../config/budgets.ts";

/** Proposals in one message that a member takes from another. */
export const MAX_WAITING_PROPOSALS = 20_000;
export const READ_RETRY_MS = 500;

/** What the loop takes at a time, and lets wait. */
export interface LoopBounds {
  readonly maxWaitingProposals: number;
  readonly maxWaitingReads: number;
  /**
   * Committed entries that are not applied yet, beyond which new proposals are refused (etcd:
   * maxGapBetweenApplyAndCommitIndex).
   */
  readonly maxApplyGapEntries: number;
  /** The same for the revocation of leases, if the feature gate PriorityRequest is on. */
  readonly maxPreferredGapEntries: number;
  /** Payload bytes that go into Raft as one append; a batch above it is split. */
  readonly maxBatchBytes: number;
  /**
   * Payload bytes that go into Raft in one turn, and one batch more: to write them and their
   * checksums takes some milliseconds.
   */
  readonly maxTurnBytes: number;
  /** Successions that wait for their time; a request of one more waits for its own. */
  readonly maxSuccessions: number;
  /** Readys handled before the event loop gets its turn back. */
  readonly maxReadysPerTurn: number;
  /** Of how many bytes of applied entries one has its place noted: the bounds in bytes are so exact. */
  readonly byteMarkEveryBytes: number;
  /** Snapshot files that are kept. */
  readonly maxSnapshotFiles: number;
}

export const LOOP_BOUNDS: LoopBounds = {
  maxWaitingProposals: MAX_WAITING_PROPOSALS,
  maxWaitingReads: 100_000,
  maxApplyGapEntries: 5000,
  maxPreferredGapEntries: 10_000,
  maxBatchBytes: 1024 * 1024,
  maxTurnBytes: 4 * 1024 * 1024,
  maxSuccessions: 16,
  maxReadysPerTurn: 8,
  byteMarkEveryBytes: 1024 * 1024,
  maxSnapshotFiles: 5,
};

/** Raft's own bounds (packages/raft/src/interface.ts says what they mean). */
export type RaftBounds = Pick<
  RaftConfig,
  | "maxMessageBytes"
  | "maxInflightMessages"
  | "maxInflightBytes"
  | "maxCommittedBytesPerReady"
  | "maxPendingReads"
>;

export const RAFT_BOUNDS: RaftBounds = {
  maxMessageBytes: 512 * 1024,
  maxInflightMessages: 512,
  maxInflightBytes: 64 * 1024 * 1024,
  maxCommittedBytesPerReady: 4 * 1024 * 1024,
  maxPendingReads: 10_000,
};

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

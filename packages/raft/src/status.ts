/** The state of a machine for its driver, and the results of the driver's requests. */
import type { raftpb } from "@quorate/proto";
import type { Role } from "./ready.ts";

/**
 * accepted: appended (leader) or forwarded (follower). It may still be lost, so the proposer waits
 * with a timeout. no-leader: no leader is known. transferring: leadership is being transferred.
 * too-large-uncommitted: maxUncommittedBytes is reached. not-a-member: this machine leads but was
 * removed from the configuration.
 */
export type ProposeResult =
  | "accepted"
  | "no-leader"
  | "transferring"
  | "too-large-uncommitted"
  | "not-a-member";

/**
 * conf-change-refused: another change is pending, or it does not fit the configuration; as in etcd
 * an empty entry took its place in the log.
 */
export type ConfChangeResult = ProposeResult | "conf-change-refused";

/**
 * too-many-reads: maxPendingReads are waiting. An accepted read may be lost with its leader; the
 * driver retries.
 */
export type ReadIndexResult = "accepted" | "no-leader" | "too-many-reads";

/** accepted: started, or forwarded to the leader. */
export type TransferResult =
  | "accepted"
  | "no-leader"
  | "already-leader"
  | "not-a-voter"
  | "unknown-member";

export type ProgressState = "probe" | "replicate" | "snapshot";

/** A leader's view of one member, itself included. */
export interface ProgressStatus {
  readonly id: bigint;
  /** Up to this index the member's log is known to match the leader's, durably. */
  readonly match: number;
  /** The next entry to send. */
  readonly next: number;
  readonly state: ProgressState;
  readonly recentActive: boolean;
  readonly isLearner: boolean;
  /** No more entries are sent for now. */
  readonly paused: boolean;
  readonly inflightMessages: number;
  readonly inflightBytes: number;
  /** Index of the snapshot in flight, 0 if none. */
  readonly pendingSnapshot: number;
}

export interface Status {
  readonly id: bigint;
  readonly role: Role;
  readonly term: number;
  readonly vote: bigint;
  /** The leader's id, 0n if unknown. */
  readonly leader: bigint;
  /** The target of a transfer of leadership, 0n if none is in progress. */
  readonly leadTransferee: bigint;
  readonly commit: number;
  /** The last index reported by applied(). */
  readonly applied: number;
  readonly firstIndex: number;
  readonly lastIndex: number;
  /** The log is durable on this member up to this index. */
  readonly stableIndex: number;
  readonly confState: raftpb.ConfState;
  /** By member id; empty unless this machine leads. */
  readonly progress: readonly ProgressStatus[];
}

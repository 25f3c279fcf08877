/** What a machine tells about itself, and the answers to requests of its driver. */
import type { raftpb } from "@quorate/proto";
import type { Role } from "./ready.ts";

/**
 * accepted: appended (leader) or forwarded (follower); it may still be lost, so the proposer waits
 * with a time limit. no-leader: nobody is known to lead. transferring: leadership is being handed
 * over. too-large-uncommitted: maxUncommittedBytes is reached. not-a-member: this machine leads but
 * was removed from the configuration.
 */
export type ProposeResult =
  | "accepted"
  | "no-leader"
  | "transferring"
  | "too-large-uncommitted"
  | "not-a-member";

/**
 * conf-change-refused: one is pending, or it does not fit the configuration; as in etcd an empty
 * entry took its place in the log.
 */
export type ConfChangeResult = ProposeResult | "conf-change-refused";

/**
 * too-many-reads: maxPendingReads wait already. A read that was accepted may get lost with its
 * leader: the driver asks again.
 */
export type ReadIndexResult = "accepted" | "no-leader" | "too-many-reads";

/** accepted: under way, or forwarded to the leader. */
export type TransferResult =
  | "accepted"
  | "no-leader"
  | "already-leader"
  | "not-a-voter"
  | "unknown-member";

export type ProgressState = "probe" | "replicate" | "snapshot";

/** What a leader knows of one member; of itself too. */
export interface ProgressStatus {
  readonly id: bigint;
  /** Up to here its log is known to be the leader's, durably. */
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
  /** Index of the snapshot on its way, 0 if none. */
  readonly pendingSnapshot: number;
}

export interface Status {
  readonly id: bigint;
  readonly role: Role;
  readonly term: number;
  readonly vote: bigint;
  /** 0n if unknown. */
  readonly leader: bigint;
  /** To whom leadership is being handed over, 0n if to nobody. */
  readonly leadTransferee: bigint;
  readonly commit: number;
  /** Reported by applied(). */
  readonly applied: number;
  readonly firstIndex: number;
  readonly lastIndex: number;
  /** Up to here the log is durable here. */
  readonly stableIndex: number;
  readonly confState: raftpb.ConfState;
  /** By id; empty unless this machine leads. */
  readonly progress: readonly ProgressStatus[];
}

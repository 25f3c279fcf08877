/**
 * The data that a driver and its machine exchange.
 *
 *     RaftConfig, InitialState --> machine --> Ready         the work of a turn
 *                                          --> Status        a copy of its state
 *                                          --> ...Result     of a request
 */
import { CodedError, type raftpb } from "@quorate/proto";

/**
 * The highest term and index. Up to here terms and indexes, and sums of them, are exact as numbers.
 */
export const MAX_TERM: number = 2 ** 52;
export const MAX_INDEX: number = 2 ** 52;

export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * Called for rare events (role changes, elections, snapshots, refusals). Ids in fields are in
 * hexadecimal, as etcd prints them.
 */
export type RaftLogger = (
  level: LogLevel,
  message: string,
  fields: Readonly<Record<string, unknown>>,
) => void;

/**
 * Settings of one machine. A tick is one call of tick(). The size of an entry is its data plus
 * ENTRY_OVERHEAD_BYTES.
 */
export interface RaftConfig {
  /** This member; not 0. */
  readonly id: bigint;
  /**
   * A follower without a message from its leader campaigns after electionTicks plus a random number
   * of ticks below electionTicks. More than heartbeatTicks.
   */
  readonly electionTicks: number;
  /** A leader sends a heartbeat this often. At least 1. */
  readonly heartbeatTicks: number;
  /** The driver's random stream: returns an integer in [0, bound). */
  readonly randomBelow: (bound: number) => number;
  /** Run a pre-vote before raising the term (Raft thesis, section 9.6). */
  readonly preVote: boolean;
  /**
   * A leader without contact to a quorum for electionTicks steps down, and a member in contact with
   * a leader grants no votes (thesis, section 6.2).
   */
  readonly checkQuorum: boolean;
  /**
   * How a leader confirms a read: by a round of heartbeats, or by its lease while it is valid.
   * "lease" needs checkQuorum.
   */
  readonly readOnly: "quorum" | "lease";
  /** Maximum bytes of entries in one MsgApp; one entry always fits. */
  readonly maxMessageBytes: number;
  /** Maximum number of MsgApp with entries in flight to one follower. At least 1. */
  readonly maxInflightMessages: number;
  /** Maximum bytes of entries in flight to one follower; at least maxMessageBytes. */
  readonly maxInflightBytes: number;
  /**
   * A leader refuses proposals while more than this many bytes of data are uncommitted. With
   * nothing uncommitted, one batch of any size is accepted.
   */
  readonly maxUncommittedBytes: number;
  /**
   * Maximum bytes of committed entries that were handed out and are not yet reported as applied;
   * one entry always fits.
   */
  readonly maxCommittedBytesPerReady: number;
  /** Maximum number of reads that wait for confirmation at a leader, forwarded reads included. */
  readonly maxPendingReads: number;
  readonly logger?: RaftLogger | undefined;
}

/** The state that a member found on its disk, or starts with. */
export interface InitialState {
  /**
   * The last hard state written. Its commit index is raised to the snapshot's index and to
   * `applied`, which are committed by definition.
   */
  readonly hardState: raftpb.HardState;
  /** The snapshot the log starts from: index 0, term 0 and an empty confState for a new log. */
  readonly snapshot: raftpb.SnapshotMetadata;
  /** All entries after the snapshot, without a gap, all of them durable. */
  readonly entries: readonly raftpb.Entry[];
  /**
   * The index up to which the state machine is applied: at least snapshot.index, at most the last
   * entry.
   */
  readonly applied: number;
  /**
   * The configuration as of `applied`. May be left out if no configuration change lies between the
   * snapshot and `applied`: the snapshot's then holds.
   */
  readonly confState?: raftpb.ConfState | undefined;
}

/** A setting is missing or contradicts another. */
export class RaftConfigError extends CodedError<"InvalidRaftConfig"> {
  constructor(problem: string) {
    super("RaftConfigError", "InvalidRaftConfig", problem);
  }
}

function atLeast(config: RaftConfig, name: keyof RaftConfig, lowest: number): void {
  const value = config[name] as number;
  if (!Number.isSafeInteger(value) || value < lowest)
    throw new RaftConfigError(`${name} must be a whole number from ${lowest}, got ${value}`);
}

/** Throws RaftConfigError if a setting is out of range. */
export function checkConfig(config: RaftConfig): void {
  if (config.id <= 0n) throw new RaftConfigError("id must not be 0");
  atLeast(config, "heartbeatTicks", 1);
  atLeast(config, "electionTicks", config.heartbeatTicks + 1);
  atLeast(config, "maxMessageBytes", 1);
  atLeast(config, "maxInflightMessages", 1);
  atLeast(config, "maxInflightBytes", config.maxMessageBytes);
  atLeast(config, "maxUncommittedBytes", 1);
  atLeast(config, "maxCommittedBytesPerReady", 1);
  atLeast(config, "maxPendingReads", 1);
  if (config.readOnly === "lease" && !config.checkQuorum)
    throw new RaftConfigError('readOnly "lease" needs checkQuorum');
}

export type Role = "follower" | "pre-candidate" | "candidate" | "leader";

/** A member's view of leadership; not written to disk. `leader` is 0n when unknown. */
export interface SoftState {
  readonly leader: bigint;
  readonly role: Role;
}

/**
 * A read may run once the state machine has applied up to index. `context` is the one passed to
 * readIndex.
 */
export interface ReadState {
  readonly context: Uint8Array;
  readonly index: number;
}

/**
 * The work of one turn. Several may be in progress, but their writes go to disk, and their
 * committed entries to the state machine, in the order of their numbers.
 *
 * Order of records within one write: snapshot, entries, hardState. So whatever prefix of it
 * survives a crash is coherent.
 */
export interface Ready {
  /** Grows by one with each Ready. */
  readonly number: number;
  /** Set if it changed. */
  readonly softState: SoftState | undefined;
  /** To write; set if it changed. */
  readonly hardState: raftpb.HardState | undefined;
  /**
   * To write. The first may have an index that was written before: it replaces that entry and all
   * after it.
   */
  readonly entries: readonly raftpb.Entry[];
  /**
   * The write must be durable before persisted(number) is called. If false, only the commit index
   * changed. Losing that is harmless while a quorum remembers it; a driver whose members leave when
   * their removal is committed has to see to that.
   */
  readonly mustSync: boolean;
  /**
   * Received from the leader: to save (durable with this Ready), and to install before any
   * `committed` of this or a later Ready.
   */
  readonly snapshot: raftpb.Snapshot | undefined;
  /** To send at once: a leader's messages do not wait for its own disk. */
  readonly messages: readonly raftpb.Message[];
  /**
   * To send when this Ready and all before it are durable: votes, vote requests and
   * acknowledgements.
   */
  readonly messagesAfterSync: readonly raftpb.Message[];
  /** To apply, in order. All are durable on this member. */
  readonly committed: readonly raftpb.Entry[];
  /** Reads that were confirmed. */
  readonly readStates: readonly ReadState[];
}

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

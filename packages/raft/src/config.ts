/** The inputs of a machine: its settings, and the state found on disk. */
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

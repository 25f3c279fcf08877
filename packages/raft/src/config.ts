/** What a machine is made from: its settings, and the state found on disk. */
import type { raftpb } from "@quorate/proto";

/** No term and no index is higher: they, and what is computed from them, stay exact as numbers. */
export const MAX_TERM: number = 2 ** 52;
export const MAX_INDEX: number = 2 ** 52;

export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * Receives the machine's rare events (role changes, elections, snapshots, refusals). Ids in fields
 * are hex as etcd prints them.
 */
export type RaftLogger = (
  level: LogLevel,
  message: string,
  fields: Readonly<Record<string, unknown>>,
) => void;

/**
 * Settings of one machine. Counts of ticks are in calls of tick(); bytes count an entry as its data
 * plus ENTRY_OVERHEAD_BYTES.
 */
export interface RaftConfig {
  /** This member; not 0. */
  readonly id: bigint;
  /**
   * A follower that hears nothing for this long (plus a random part of up to as much again)
   * campaigns. More than heartbeatTicks.
   */
  readonly electionTicks: number;
  /** A leader sends a heartbeat this often. At least 1. */
  readonly heartbeatTicks: number;
  /** The driver's random stream: a whole number in [0, bound). */
  readonly randomBelow: (bound: number) => number;
  /** Ask for pre-votes before raising the term (Raft thesis, section 9.6). */
  readonly preVote: boolean;
  /**
   * A leader that hears from no quorum for electionTicks steps down, and who hears a leader grants
   * no votes (thesis, section 6.2).
   */
  readonly checkQuorum: boolean;
  /**
   * How a leader confirms a read: by a heartbeat round, or by its lease while that is good. "lease"
   * needs checkQuorum.
   */
  readonly readOnly: "quorum" | "lease";
  /** Most bytes of entries in one MsgApp; one entry always fits. */
  readonly maxMessageBytes: number;
  /** Most MsgApp with entries on their way to one follower. At least 1. */
  readonly maxInflightMessages: number;
  /** Most bytes of entries on their way to one follower; at least maxMessageBytes. */
  readonly maxInflightBytes: number;
  /**
   * A leader refuses proposals while more bytes of data than this wait to be committed. One batch
   * is always taken when none wait.
   */
  readonly maxUncommittedBytes: number;
  /**
   * Most bytes of committed entries that are handed out and not yet reported as applied; one entry
   * always fits.
   */
  readonly maxCommittedBytesPerReady: number;
  /** Most reads that wait for confirmation at a leader, forwarded ones included. */
  readonly maxPendingReads: number;
  readonly logger?: RaftLogger | undefined;
}

/** What a member found on its disk, or was given to start with. */
export interface InitialState {
  /**
   * The last one written. A commit below the snapshot or below `applied` is raised to them: both
   * prove more than it does.
   */
  readonly hardState: raftpb.HardState;
  /** The snapshot the log starts from: index 0, term 0 and an empty confState for a new log. */
  readonly snapshot: raftpb.SnapshotMetadata;
  /** All entries after the snapshot, without a gap, all of them durable. */
  readonly entries: readonly raftpb.Entry[];
  /**
   * Up to here the state machine's own state goes: at least snapshot.index, at most the last entry.
   */
  readonly applied: number;
  /**
   * The configuration as of `applied`. May be left out where no configuration change lies between
   * the snapshot and `applied`: it is then the snapshot's.
   */
  readonly confState?: raftpb.ConfState | undefined;
}

/** A setting is missing or contradicts another. */
export class RaftConfigError extends Error {
  override readonly name = "RaftConfigError";
  readonly code = "INVALID_RAFT_CONFIG";
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

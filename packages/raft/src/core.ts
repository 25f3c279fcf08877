/**
 * The state of a machine, and the operations that every part of it needs. The files around it hold
 * the behaviour:
 *
 *     replicate.ts   a leader's appends, heartbeats, snapshots and commits
 *     follow.ts      what a follower does with them
 *     lead.ts        what a leader does with responses
 *     propose.ts     proposals and the guard of configuration changes
 *     configure.ts   putting a configuration in force
 *     roles.ts       becoming follower, candidate, leader
 *     election.ts    campaigns and votes
 *     read.ts        confirmed reads
 *     step.ts        terms, leases, ticks, and which file handles which message
 *     raft.ts        the public machine, Ready
 */
import { idToHex, type raftpb } from "@quorate/proto";
import { checkConfState, normalize } from "./confchange.ts";
import {
  checkConfig,
  type InitialState,
  type LogLevel,
  MAX_TERM,
  type RaftConfig,
} from "./config.ts";
import { isConfChange } from "./entries.ts";
import { violated } from "./invariants.ts";
import { RaftLog } from "./log.ts";
import { newMessage } from "./message.ts";
import type { Progress } from "./progress.ts";
import { ReadOnly } from "./read-only.ts";
import type { ReadState, Role } from "./ready.ts";
import { Tracker } from "./tracker.ts";

/** A vote of the machine for itself: it counts once it is durable. */
export type SelfVote = "none" | "pre-vote" | "vote";

export class Core {
  readonly config: RaftConfig;
  readonly id: bigint;
  readonly log: RaftLog;
  readonly tracker: Tracker;
  readonly reads: ReadOnly;

  #term: number;
  #vote: bigint;
  leader = 0n;
  role: Role = "follower";
  leadTransferee = 0n;
  /**
   * A transfer of leadership was started in this term: its target may campaign at any time, so this
   * leader's lease is no proof of leadership.
   */
  leaseWaived = false;

  /** Ticks since the machine was created. */
  ticks = 0;
  /**
   * The tick of the last message from a leader. A new machine assumes that one arrived just before
   * it started.
   */
  heardLeaderTick = 0;
  /**
   * Follower and candidate: ticks since the last message from the leader, or since the election
   * began. Leader: ticks since the last check for a quorum.
   */
  electionElapsed = 0;
  heartbeatElapsed = 0;
  /** The randomized election timeout: from electionTicks to 2 * electionTicks - 1. */
  electionTimeoutTicks = 0;

  /** Leader: no configuration change after this index is pending. */
  pendingConfIndex = 0;
  /** Leader: entries after this index are of its term. */
  termStartIndex = 0;
  /** Leader: bytes of data in entries of its term that are not committed. */
  uncommittedBytes = 0;
  /** Leader: a heartbeat is due. */
  heartbeatDue = false;

  /**
   * Configurations of received snapshots, by index; each takes effect when its snapshot is
   * installed.
   */
  readonly restoredConfs: { readonly index: number; readonly conf: raftpb.ConfState }[] = [];

  messages: raftpb.Message[] = [];
  messagesAfterSync: raftpb.Message[] = [];
  readStates: ReadState[] = [];
  selfVoteDue: SelfVote = "none";

  /**
   * Throws RaftConfigError for bad settings, InvariantError (RAFT-1, RAFT-14, RAFT-20) for an
   * incoherent state.
   */
  constructor(config: RaftConfig, initial: InitialState) {
    checkConfig(config);
    this.config = config;
    this.id = config.id;
    this.log = new RaftLog(initial, config.maxCommittedBytesPerReady);
    this.tracker = new Tracker(config.maxInflightMessages, config.maxInflightBytes);
    this.reads = new ReadOnly(config.maxPendingReads);
    // A crash may have kept the entries of a write and lost its hard state. This member then cast
    // no vote in the term of those entries.
    const lastTerm = this.log.lastTerm;
    this.#term = Math.max(initial.hardState.term, lastTerm);
    this.#vote = initial.hardState.term < lastTerm ? 0n : initial.hardState.vote;
    if (initial.confState === undefined) {
      const skipped = initial.entries.find(
        (entry) => entry.index <= initial.applied && isConfChange(entry),
      );
      if (skipped !== undefined)
        violated("RAFT-20", `the change ${skipped.index} is applied, but no confState is given`);
    }
    this.tracker.configure(
      checkConfState(normalize(initial.confState ?? initial.snapshot.confState)),
      this.log.lastIndex,
    );
  }

  get term(): number {
    return this.#term;
  }

  get vote(): bigint {
    return this.#vote;
  }

  /** Enters a higher term, without a vote in it; does nothing for the same term. */
  enterTerm(term: number): void {
    if (term < this.#term) violated("RAFT-9", `${this.#term} to ${term}`);
    if (term > MAX_TERM) violated("RAFT-16", `${this.#term} to ${term}`);
    if (term === this.#term) return;
    this.#term = term;
    this.#vote = 0n;
  }

  castVote(id: bigint): void {
    if (this.#vote !== 0n && this.#vote !== id)
      violated("RAFT-10", `${idToHex(this.#vote)} to ${idToHex(id)} in term ${this.#term}`);
    this.#vote = id;
  }

  /** This machine's own progress; undefined if it is not a member. */
  get self(): Progress | undefined {
    return this.tracker.get(this.id);
  }

  get isLeader(): boolean {
    return this.role === "leader";
  }

  /** True if this machine may campaign: it is a voter, and no snapshot waits to be installed. */
  get promotable(): boolean {
    const self = this.self;
    return self !== undefined && !self.isLearner && !this.log.snapshotPending;
  }

  /**
   * True if an entry of this term is committed: only then does a leader know the cluster's commit
   * index (thesis, section 6.4).
   */
  get committedInTerm(): boolean {
    return this.log.term(this.log.committed) === this.#term;
  }

  /** A message of the current term from this machine. */
  message(type: raftpb.MessageType, to: bigint): raftpb.Message {
    return newMessage(type, to, this.id, this.#term);
  }

  /** Sends at once, without waiting for this machine's disk write. */
  send(message: raftpb.Message): void {
    if (message.to === this.id) violated("RAFT-18", `message type ${message.type}`);
    this.messages.push(message);
  }

  /** Sends after everything that the message promises is durable. */
  sendAfterSync(message: raftpb.Message): void {
    if (message.to === this.id) violated("RAFT-18", `message type ${message.type}`);
    this.messagesAfterSync.push(message);
  }

  get hasLogger(): boolean {
    return this.config.logger !== undefined;
  }

  /** Writes to the logger; for rare events only. */
  note(level: LogLevel, text: string, fields: Readonly<Record<string, unknown>> = {}): void {
    const logger = this.config.logger;
    if (logger === undefined) return;
    logger(level, text, { id: idToHex(this.id), term: this.#term, ...fields });
  }

  randomizeElectionTimeout(): void {
    const { electionTicks, randomBelow } = this.config;
    this.electionTimeoutTicks = electionTicks + randomBelow(electionTicks);
  }
}

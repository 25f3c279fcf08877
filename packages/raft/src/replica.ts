/**
 * The replica: the part of a machine that outlives its roles. It has the term and the vote, the
 * log, the configuration, the clock, and the messages that wait to be sent. It serves whoever leads
 * or campaigns:
 *
 *     receives                                sends
 *     MsgApp       entries                    MsgAppResp, when they are durable
 *     MsgSnap      a state instead of them    MsgAppResp, when it is durable
 *     MsgHeartbeat a commit index             MsgHeartbeatResp, at once
 *     MsgVote      a request for its vote     MsgVoteResp, when the vote is durable
 *     MsgPreVote   the same, as a question    MsgPreVoteResp
 *
 * The caller (machine.ts) has compared terms and sizes before.
 */
import { defined, idToHex, raftpb } from "@quorate/proto";
import { checkConfState, isMember, isVoter, normalize } from "./confchange.ts";
import {
  checkConfig,
  type InitialState,
  type LogLevel,
  MAX_TERM,
  type RaftConfig,
  type ReadState,
} from "./interface.ts";
import { violated } from "./invariants.ts";
import { isConfChange, RaftLog } from "./log.ts";
import { newMessage } from "./message.ts";

const {
  MsgApp,
  MsgAppResp,
  MsgHeartbeat,
  MsgHeartbeatResp,
  MsgPreVote,
  MsgPreVoteResp,
  MsgVoteResp,
} = raftpb.MessageType;

export class Replica {
  readonly config: RaftConfig;
  readonly id: bigint;
  readonly log: RaftLog;
  #term: number;
  #vote: bigint;
  #conf: raftpb.ConfState;
  /**
   * Configurations of received snapshots, by index; each takes effect when its snapshot is
   * installed.
   */
  readonly #restoredConfs: { readonly index: number; readonly conf: raftpb.ConfState }[] = [];

  /** Ticks since the machine was created. */
  ticks = 0;

  /** Taken by the next Ready, as are the two lists below. */
  messages: raftpb.Message[] = [];
  messagesAfterSync: raftpb.Message[] = [];
  readStates: ReadState[] = [];

  /**
   * Throws RaftConfigError for bad settings, InvariantError (RAFT-1, RAFT-14, RAFT-20) for an
   * incoherent state.
   */
  constructor(config: RaftConfig, initial: InitialState) {
    checkConfig(config);
    this.config = config;
    this.id = config.id;
    this.log = new RaftLog(initial, config.maxCommittedBytesPerReady);
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
    this.#conf = checkConfState(normalize(initial.confState ?? initial.snapshot.confState));
  }

  get term(): number {
    return this.#term;
  }

  get vote(): bigint {
    return this.#vote;
  }

  /** The end of the log. */
  get lastIndex(): number {
    return this.log.lastIndex;
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

  /** The configuration in effect, lists in ascending order. Must not be changed. */
  get conf(): raftpb.ConfState {
    return this.#conf;
  }

  /** Puts a configuration into effect. */
  configure(conf: raftpb.ConfState): void {
    this.#conf = conf;
    this.note("info", "switched configuration", {
      voters: conf.voters.map(idToHex),
      votersOutgoing: conf.votersOutgoing.map(idToHex),
      learners: conf.learners.map(idToHex),
    });
  }

  /** The configuration of the next snapshot that is installed; undefined if there is none. */
  takeRestoredConf(): raftpb.ConfState | undefined {
    const [next] = this.#restoredConfs;
    if (next === undefined || next.index > this.log.applied) return undefined;
    this.#restoredConfs.shift();
    return next.conf;
  }

  /** True if this machine may campaign: it is a voter, and no snapshot waits to be installed. */
  get promotable(): boolean {
    return isVoter(this.#conf, this.id) && !this.log.snapshotPending;
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

  #acknowledge(to: bigint, index: number): void {
    const response = this.message(MsgAppResp, to);
    response.index = index;
    this.sendAfterSync(response);
  }

  /** Appends the leader's entries, or responds with an index at which the two logs may match. */
  handleAppend(append: raftpb.Message): void {
    const log = this.log;
    if (append.index < log.committed) {
      this.#acknowledge(append.from, log.committed);
      return;
    }
    const last = log.tryAppend(append.index, append.logTerm, append.entries, append.commit);
    if (last !== undefined) {
      this.#acknowledge(append.from, last);
      return;
    }
    // The leader's log has no term above logTerm up to this index, so the logs cannot match where
    // this log's terms are higher.
    const meet = log.findConflict(Math.min(append.index, log.lastIndex), append.logTerm);
    const response = this.message(MsgAppResp, append.from);
    response.reject = true;
    response.index = append.index;
    response.rejectHint = meet.index;
    response.logTerm = meet.term;
    this.sendAfterSync(response);
  }

  /**
   * Commits up to the leader's commit index (the leader knows that this log has it) and returns the
   * context, which confirms reads and the lease.
   */
  handleHeartbeat(heartbeat: raftpb.Message): void {
    this.log.commitTo(heartbeat.commit);
    const response = this.message(MsgHeartbeatResp, heartbeat.from);
    response.context = heartbeat.context;
    this.send(response);
  }

  /**
   * Replaces the log with a snapshot, unless the log is already that far. The response carries the
   * index from which the leader continues.
   */
  handleSnapshot(message: raftpb.Message): void {
    const { snapshot } = message;
    const restored = snapshot !== undefined && this.#restore(snapshot);
    this.#acknowledge(message.from, restored ? this.log.lastIndex : this.log.committed);
  }

  #restore(snapshot: raftpb.Snapshot): boolean {
    const { index, term, confState } = snapshot.metadata;
    const log = this.log;
    if (index <= log.committed) return false;
    const conf = normalize(confState);
    if (!isMember(conf, this.id)) {
      this.note("warn", "ignored a snapshot whose configuration does not know this member", {
        index,
      });
      return false;
    }
    if (log.matches(index, term)) {
      log.commitTo(index);
      this.note("info", "has all that a snapshot brings", { index });
      return false;
    }
    log.restore(snapshot);
    // The driver may still have older entries to apply, configuration changes among them, so this
    // configuration takes effect after them.
    this.#restoredConfs.push({ index, conf: checkConfState(conf) });
    this.note("info", "starts over from a snapshot", { index, snapshotTerm: term });
    return true;
  }

  /**
   * Responds to MsgVote and MsgPreVote of this machine's term, or MsgPreVote of a higher one. True
   * if it casts its vote. @param leader the leader of this term, 0n if unknown
   */
  handleVoteRequest(request: raftpb.Message, leader: bigint): boolean {
    const asking = request.type === MsgPreVote;
    const free =
      this.#vote === request.from || // a repeated request
      (this.#vote === 0n && leader === 0n) || // no vote cast and no leader known
      (asking && request.term > this.#term);
    const granted = free && this.log.isUpToDate(request.index, request.logTerm);
    if (this.hasLogger) {
      this.note("info", granted ? "grants a vote" : "refuses a vote", {
        to: idToHex(request.from),
        asking,
        requestTerm: request.term,
      });
    }
    // Learners vote too: the candidate may know of a promotion that has not reached this machine.
    const response = this.message(asking ? MsgPreVoteResp : MsgVoteResp, request.from);
    response.reject = !granted;
    // A granted pre-vote carries the requested term. With this machine's own, lower term the
    // candidate would drop it as stale; a higher one would make it step down.
    if (granted) response.term = request.term;
    else this.#hintCommit(response);
    const votes = granted && !asking;
    if (votes) this.castVote(request.from);
    this.sendAfterSync(response);
    return votes;
  }

  /**
   * Adds this machine's commit index to a refusal. etcd's members neither send nor read one there.
   */
  #hintCommit(refusal: raftpb.Message): void {
    refusal.commit = this.log.committed;
    refusal.logTerm = defined(this.log.term(this.log.committed), "the term of the commit");
  }

  /**
   * Commits up to the commit index in a refusal, if this log has the entry; true if it was not
   * known. Configurations take effect when they are applied, so a member that has not learnt that a
   * change is committed uses the old configuration and may need the vote of a member which the
   * change removed or demoted. If that member's log is longer, no candidate could ever win. (TiKV's
   * raft-rs documents this case.)
   */
  learnCommit(refusal: raftpb.Message): boolean {
    const { log } = this;
    if (
      !refusal.reject ||
      refusal.commit <= log.committed ||
      !log.matches(refusal.commit, refusal.logTerm)
    )
      return false;
    log.commitTo(refusal.commit);
    this.note("info", "learned from a refused vote what is committed", { commit: refusal.commit });
    return true;
  }

  /**
   * Sends the current term to the sender of an old one, where the sender would not learn it
   * otherwise.
   */
  notifyStale(message: raftpb.Message): void {
    const { checkQuorum: leases, preVote } = this.config;
    if ((message.type === MsgApp || message.type === MsgHeartbeat) && (leases || preVote)) {
      // The other members ignore this machine's votes while they have a leader, so that leader has
      // to learn the higher term.
      this.sendAfterSync(this.message(MsgAppResp, message.from));
    } else if (message.type === MsgPreVote) {
      // Otherwise a member with a longer log and a lower term would repeat its request for ever.
      const refusal = this.message(MsgPreVoteResp, message.from);
      refusal.reject = true;
      this.#hintCommit(refusal);
      this.sendAfterSync(refusal);
    }
  }
}

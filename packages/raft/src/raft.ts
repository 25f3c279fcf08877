/**
 * The machine's door: one member's part in the agreement (Ongaro and Ousterhout, "In Search of an
 * Understandable Consensus Algorithm"; Ongaro's thesis), with the message types of etcd's raft
 * library on the wire.
 *
 * A driver calls it from one loop:
 *
 *     raft.tick(), raft.step(message), raft.propose(payloads), raft.readIndex(context), ...
 *     if (raft.hasReady()) {
 *       const ready = raft.ready();
 *       send(ready.messages);                      // at once
 *       write(ready.snapshot, ready.entries, ready.hardState);
 *       when durable: raft.persisted(ready.number); send(ready.messagesAfterSync);
 *       apply(ready.snapshot, ready.committed);    // conf changes through raft.applyConfChange
 *       when applied: raft.applied(index);
 *       answer(ready.readStates);
 *     }
 *
 * It calls nothing back, and throws only InvariantError (and RaftConfigError when made). A member
 * that sees one has to stop.
 */
import { raftpb } from "@quorate/proto";
import type { InitialState, RaftConfig } from "./config.ts";
import { applyChange, restoreConfs } from "./configure.ts";
import { Core, type SelfVote } from "./core.ts";
import { countSelfVote, tryCampaign } from "./election.ts";
import { encodeConfChange } from "./entries.ts";
import { handleSnapshotReport, handleUnreachable, startTransfer } from "./lead.ts";
import { newMessage } from "./message.ts";
import { leaveJointIfDue, propose, proposeConfChange } from "./propose.ts";
import { acceptRead } from "./read.ts";
import type { Ready, Role, SoftState } from "./ready.ts";
import { acknowledgeSelf, flush } from "./replicate.ts";
import { becomeFollower } from "./roles.ts";
import type {
  ConfChangeResult,
  ProposeResult,
  ReadIndexResult,
  Status,
  TransferResult,
} from "./status.ts";
import { inLease, step, tick } from "./step.ts";

/** A vote for itself that becomes countable when the Ready of this number is durable. */
interface PendingSelfVote {
  readonly number: number;
  readonly term: number;
  readonly kind: Exclude<SelfVote, "none">;
}

const NONE: readonly never[] = Object.freeze([]);

export class Raft {
  readonly #core: Core;
  #readyNumber = 0;
  #givenSoftState: SoftState;
  #givenHardState: raftpb.HardState;
  #selfVotes: PendingSelfVote[] = [];

  /**
   * Throws RaftConfigError for settings that contradict each other, InvariantError for a state that
   * does.
   */
  constructor(config: RaftConfig, initial: InitialState) {
    this.#core = new Core(config, initial);
    becomeFollower(this.#core, this.#core.term, 0n);
    this.#givenSoftState = { leader: 0n, role: "follower" };
    this.#givenHardState = { ...initial.hardState };
  }

  get id(): bigint {
    return this.#core.id;
  }

  get term(): number {
    return this.#core.term;
  }

  /** 0n if unknown. */
  get leader(): bigint {
    return this.#core.leader;
  }

  get role(): Role {
    return this.#core.role;
  }

  get commitIndex(): number {
    return this.#core.log.committed;
  }

  /** As reported by applied(). */
  get appliedIndex(): number {
    return this.#core.log.applied;
  }

  /** The first entry held in memory, or where it would be. */
  get firstIndex(): number {
    return this.#core.log.firstIndex;
  }

  get lastIndex(): number {
    return this.#core.log.lastIndex;
  }

  /** Durable here up to this index. */
  get stableIndex(): number {
    return this.#core.log.stable;
  }

  /**
   * The configuration in force: that of the last change applied. Lists in ascending order; not to
   * be changed.
   */
  get confState(): raftpb.ConfState {
    return this.#core.tracker.conf;
  }

  /** One step of the driver's clock: heartbeats, elections and checks count in these. */
  tick(): void {
    tick(this.#core);
  }

  /**
   * Takes a message from another member. Messages that do not belong (to another member, of an old
   * term, answers from strangers, local types) are dropped. The message and its entries are kept
   * and must not be changed afterwards.
   *
   * Gives undefined, or, for a message that no member sends that keeps to the protocol, why it was
   * refused. That changes nothing here.
   */
  step(message: raftpb.Message): string | undefined {
    return step(this.#core, message);
  }

  /**
   * Proposes payloads, in order and next to one another, as one append; all or none. A follower
   * forwards them in one message. "accepted" is no promise: only seeing a payload among committed
   * entries is. The payloads are kept and must not be changed afterwards.
   */
  propose(payloads: readonly Uint8Array[]): ProposeResult {
    return propose(this.#core, payloads);
  }

  /**
   * Proposes a configuration change. One may be pending at a time, and it has to fit the
   * configuration: else an empty entry takes its place, which a leader reports here and a follower
   * does not learn.
   */
  proposeConfChange(change: raftpb.ConfChange | raftpb.ConfChangeV2): ConfChangeResult {
    const { type, data } = encodeConfChange(change);
    return proposeConfChange(this.#core, type, data);
  }

  /**
   * Carries out a committed change; the driver calls it when it applies the entry, in order with
   * the others and before applied(). A change that the driver decides against is not brought here,
   * on any member. Gives the configuration now in force.
   */
  applyConfChange(change: raftpb.ConfChangeV2): raftpb.ConfState {
    applyChange(this.#core, change);
    return this.#core.tracker.conf;
  }

  /**
   * Asks for the index that a linearizable read has to wait for; the answer comes in
   * Ready.readStates with this context. All contexts of a member have to differ, across restarts
   * too, for a late answer to an old one must not pass for a new one's. An answer may come twice,
   * or never (when the leader changes): the driver asks again.
   */
  readIndex(context: Uint8Array): ReadIndexResult {
    const core = this.#core;
    if (core.isLeader)
      return acceptRead(core, { from: 0n, context }) ? "accepted" : "too-many-reads";
    if (core.leader === 0n) return "no-leader";
    const message = newMessage(raftpb.MessageType.MsgReadIndex, core.leader, core.id, 0);
    message.entries = [{ type: raftpb.EntryType.EntryNormal, term: 0, index: 0, data: context }];
    core.send(message);
    return "accepted";
  }

  /**
   * Campaigns now, if it is a voter and has all committed configuration changes applied. With lease
   * reads only out of a leader's lease.
   */
  campaign(): void {
    const core = this.#core;
    if (core.config.readOnly === "lease" && inLease(core)) return;
    tryCampaign(core, core.config.preVote ? "pre-vote" : "vote");
  }

  /**
   * A follower that knows by other means that its leader is gone may grant votes at once. Does
   * nothing with lease reads, which rest on followers to keep still.
   */
  forgetLeader(): void {
    const core = this.#core;
    if (core.role !== "follower" || core.config.readOnly === "lease") return;
    core.leader = 0n;
  }

  /**
   * Hands leadership over: the leader stops taking proposals, brings the other up to date and tells
   * it to campaign. If that takes longer than an election timeout, it goes on leading. A follower
   * passes the order on.
   */
  transferLeadership(to: bigint): TransferResult {
    const core = this.#core;
    if (core.isLeader) return startTransfer(core, to);
    if (core.leader === 0n) return "no-leader";
    if (core.leader === to) return "already-leader";
    // On the wire the order comes from the member that is to lead.
    core.send(newMessage(raftpb.MessageType.MsgTransferLeader, core.leader, to, core.term));
    return "accepted";
  }

  /** Messages to this member were dropped: a leader probes before it streams again. */
  reportUnreachable(id: bigint): void {
    const progress = this.#core.isLeader ? this.#core.tracker.get(id) : undefined;
    if (progress !== undefined) handleUnreachable(progress);
  }

  /**
   * The snapshot that a MsgSnap stood for went through, or did not. To be called for every MsgSnap:
   * nothing else is sent before.
   */
  reportSnapshot(id: bigint, ok: boolean): void {
    const progress = this.#core.isLeader ? this.#core.tracker.get(id) : undefined;
    if (progress !== undefined) handleSnapshotReport(progress, ok);
  }

  /** True if ready() has work to give. */
  hasReady(): boolean {
    const core = this.#core;
    flush(core);
    return (
      core.messages.length > 0 ||
      core.messagesAfterSync.length > 0 ||
      core.readStates.length > 0 ||
      core.selfVoteDue !== "none" ||
      core.log.hasWrites() ||
      core.log.hasCommitted() ||
      this.#hardStateChanged() ||
      core.leader !== this.#givenSoftState.leader ||
      core.role !== this.#givenSoftState.role
    );
  }

  #hardStateChanged(): boolean {
    const given = this.#givenHardState;
    return (
      this.#core.log.committed !== given.commit ||
      this.#core.term !== given.term ||
      this.#core.vote !== given.vote
    );
  }

  /** Takes the work out. It is given once: the driver has to carry all of it out. */
  ready(): Ready {
    const core = this.#core;
    flush(core);
    const number = ++this.#readyNumber;
    const { entries, snapshot } = core.log.takeWrites(number);
    const votes =
      core.term !== this.#givenHardState.term || core.vote !== this.#givenHardState.vote;
    let hardState: raftpb.HardState | undefined;
    if (this.#hardStateChanged()) {
      hardState = { term: core.term, vote: core.vote, commit: core.log.committed };
      this.#givenHardState = hardState;
    }
    let softState: SoftState | undefined;
    if (core.leader !== this.#givenSoftState.leader || core.role !== this.#givenSoftState.role) {
      softState = { leader: core.leader, role: core.role };
      this.#givenSoftState = softState;
    }
    if (core.selfVoteDue !== "none") {
      this.#selfVotes.push({ number, term: core.term, kind: core.selfVoteDue });
      core.selfVoteDue = "none";
    }
    const ready: Ready = {
      number,
      softState,
      hardState,
      entries,
      mustSync: votes || entries.length > 0 || snapshot !== undefined,
      snapshot,
      // An empty queue stays with the machine, which will fill it: it must not be seen to fill in a
      // Ready that is out.
      messages: core.messages.length > 0 ? core.messages : NONE,
      messagesAfterSync: core.messagesAfterSync.length > 0 ? core.messagesAfterSync : NONE,
      committed: core.log.takeCommitted(),
      readStates: core.readStates.length > 0 ? core.readStates : NONE,
    };
    if (core.messages.length > 0) core.messages = [];
    if (core.messagesAfterSync.length > 0) core.messagesAfterSync = [];
    if (core.readStates.length > 0) core.readStates = [];
    return ready;
  }

  /**
   * The writes of this Ready and of all before it are durable. A Ready whose mustSync is false
   * counts as soon as all before it are. Only from here on does a leader count its own copy and a
   * candidate its own vote, and are entries given out to be applied.
   */
  persisted(readyNumber: number): void {
    const core = this.#core;
    core.log.persisted(readyNumber);
    while (this.#selfVotes.length > 0 && this.#selfVotes[0].number <= readyNumber) {
      const { term, kind } = this.#selfVotes.shift()!;
      if (term === core.term) countSelfVote(core, kind);
    }
    acknowledgeSelf(core);
  }

  /** Everything up to index, entries and a snapshot alike, is applied. */
  applied(index: number): void {
    this.#core.log.appliedTo(index);
    restoreConfs(this.#core);
    leaveJointIfDue(this.#core);
  }

  /**
   * Drops entries up to index, which is applied, from memory. confState is the configuration as of
   * index; it goes into MsgSnap. Followers that need what was dropped get a snapshot, so the driver
   * leaves some entries for those that are a little behind.
   */
  compact(index: number, confState: raftpb.ConfState): void {
    this.#core.log.compact(index, confState);
  }

  /**
   * Applied entries from `first` to the last one; undefined where the log in memory begins later.
   */
  appliedFrom(first: number): raftpb.Entry[] | undefined {
    const { log } = this.#core;
    return first < log.firstIndex || first > log.applied + 1
      ? undefined
      : log.slice(first, log.applied);
  }

  /** The term of an entry held, or of the mark before the first; undefined for any other index. */
  termOf(index: number): number | undefined {
    return this.#core.log.term(index);
  }

  /** A copy of all that is worth knowing; allocates. */
  status(): Status {
    const core = this.#core;
    const { log } = core;
    return {
      id: core.id,
      role: core.role,
      term: core.term,
      vote: core.vote,
      leader: core.leader,
      leadTransferee: core.leadTransferee,
      commit: log.committed,
      applied: log.applied,
      firstIndex: log.firstIndex,
      lastIndex: log.lastIndex,
      stableIndex: log.stable,
      confState: core.tracker.conf,
      progress: core.isLeader ? core.tracker.all.map((progress) => progress.status()) : [],
    };
  }
}

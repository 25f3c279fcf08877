/**
 * The public interface of the Raft machine: one member of the cluster (Ongaro and Ousterhout, "In
 * Search of an Understandable Consensus Algorithm"; Ongaro's thesis), with the message types of
 * etcd's raft library on the wire.
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
 *       serveReads(ready.readStates);
 *     }
 *
 * The machine performs no IO and calls only two functions of its configuration: randomBelow and
 * logger. It throws only InvariantError (and RaftConfigError from the constructor). A member on
 * which it throws must stop.
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
import { advanceElection, inLease, step, tick } from "./step.ts";

/** A vote for itself, which counts when the Ready of this number is durable. */
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
   * Throws RaftConfigError for contradictory settings, and InvariantError for an incoherent state.
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

  /** The leader's id, 0n if unknown. */
  get leader(): bigint {
    return this.#core.leader;
  }

  get role(): Role {
    return this.#core.role;
  }

  get commitIndex(): number {
    return this.#core.log.committed;
  }

  /** The last index reported by applied(). */
  get appliedIndex(): number {
    return this.#core.log.applied;
  }

  /** The first entry held in memory, or the index after the snapshot mark. */
  get firstIndex(): number {
    return this.#core.log.firstIndex;
  }

  get lastIndex(): number {
    return this.#core.log.lastIndex;
  }

  /** The log is durable on this member up to this index. */
  get stableIndex(): number {
    return this.#core.log.stable;
  }

  /**
   * The current configuration, as of the last change applied. Lists are in ascending order and must
   * not be changed.
   */
  get confState(): raftpb.ConfState {
    return this.#core.tracker.conf;
  }

  /** One tick of the driver's clock: heartbeats, elections and quorum checks count ticks. */
  tick(): void {
    tick(this.#core);
  }

  /**
   * Lets `ticks` of the election timeout pass at once, on a follower that knows no leader. For a
   * member that has just started.
   */
  advanceElection(ticks: number): void {
    advanceElection(this.#core, ticks);
  }

  /**
   * Handles a message from another member. Messages that do not apply are dropped: those for
   * another member, of an old term, responses from members outside the configuration, and local
   * types. Keeps the message and its entries, which must not be changed afterwards.
   *
   * Returns undefined, or the reason if it refused the message because no correct member sends it;
   * a refused message changes nothing.
   */
  step(message: raftpb.Message): string | undefined {
    return step(this.#core, message);
  }

  /**
   * Proposes payloads as consecutive entries in one append: all or none. A follower forwards them
   * in one message. "accepted" is no promise that they will be committed: only a payload among the
   * committed entries is. Keeps the payloads, which must not be changed afterwards.
   */
  propose(payloads: readonly Uint8Array[]): ProposeResult {
    return propose(this.#core, payloads);
  }

  /**
   * Proposes a configuration change. Only one may be pending, and it must fit the configuration.
   * Otherwise an empty entry takes its place, which a leader reports here and a follower does not
   * learn.
   */
  proposeConfChange(change: raftpb.ConfChange | raftpb.ConfChangeV2): ConfChangeResult {
    const { type, data } = encodeConfChange(change);
    return proposeConfChange(this.#core, type, data);
  }

  /**
   * Applies a committed change. The driver calls it when it applies the entry, in order with the
   * others and before applied(). For a change that every member's driver rejects, it is not called.
   * Returns the resulting configuration.
   */
  applyConfChange(change: raftpb.ConfChangeV2): raftpb.ConfState {
    applyChange(this.#core, change);
    return this.#core.tracker.conf;
  }

  /**
   * Requests the index that a linearizable read waits for; it arrives in Ready.readStates with the
   * same context. The contexts of a member must be unique, across restarts too, so that a late
   * response to an old one cannot be taken for a new one's. A response may arrive twice, or never
   * (when the leader changes); the driver retries.
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
   * Starts a campaign, if this machine is a voter and has applied all committed configuration
   * changes. With lease reads, only while no leader's lease is valid.
   */
  campaign(): void {
    const core = this.#core;
    if (core.config.readOnly === "lease" && inLease(core)) return;
    tryCampaign(core, core.config.preVote ? "pre-vote" : "vote");
  }

  /**
   * For a follower that knows from elsewhere that its leader is gone: it may grant votes at once.
   * Does nothing with lease reads, which rely on followers not to vote during a lease.
   */
  forgetLeader(): void {
    const core = this.#core;
    if (core.role !== "follower" || core.config.readOnly === "lease") return;
    core.leader = 0n;
  }

  /**
   * Transfers leadership: the leader stops accepting proposals, brings the target's log up to date
   * and requests it to campaign. After one election timeout it gives up and continues to lead. A
   * follower forwards the request.
   */
  transferLeadership(to: bigint): TransferResult {
    const core = this.#core;
    if (core.isLeader) return startTransfer(core, to);
    if (core.leader === 0n) return "no-leader";
    if (core.leader === to) return "already-leader";
    // On the wire, the sender of the request is the member that is to lead.
    core.send(newMessage(raftpb.MessageType.MsgTransferLeader, core.leader, to, core.term));
    return "accepted";
  }

  /** Messages to this member were dropped: a leader returns to probing. */
  reportUnreachable(id: bigint): void {
    const progress = this.#core.isLeader ? this.#core.tracker.get(id) : undefined;
    if (progress !== undefined) handleUnreachable(progress);
  }

  /**
   * Reports whether the snapshot of a MsgSnap was installed. Must be called for every MsgSnap: no
   * appends are sent before.
   */
  reportSnapshot(id: bigint, ok: boolean): void {
    const progress = this.#core.isLeader ? this.#core.tracker.get(id) : undefined;
    if (progress !== undefined) handleSnapshotReport(progress, ok);
  }

  /** True if ready() would return work. */
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

  /** Returns the work, once: the driver must carry out all of it. */
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
      // An empty queue stays with the machine, which will fill it, so it must not be part of a
      // Ready.
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
   * The writes of this Ready and of all before it are durable. A Ready with mustSync false counts
   * as durable as soon as all before it are. Only after this does a leader count its own copy and a
   * candidate its own vote, and are entries handed out to be applied.
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

  /** Everything up to index, entries and snapshot, is applied. */
  applied(index: number): void {
    this.#core.log.appliedTo(index);
    restoreConfs(this.#core);
    leaveJointIfDue(this.#core);
  }

  /**
   * Drops entries up to index, which must be applied, from memory. @param confState the
   * configuration as of index, sent in MsgSnap. A follower that needs a dropped entry gets a
   * snapshot, so the driver keeps some entries for followers that are slightly behind.
   */
  compact(index: number, confState: raftpb.ConfState): void {
    this.#core.log.compact(index, confState);
  }

  /** Applied entries from `first` to the last one; undefined if the log in memory starts later. */
  appliedFrom(first: number): raftpb.Entry[] | undefined {
    const { log } = this.#core;
    return first < log.firstIndex || first > log.applied + 1
      ? undefined
      : log.slice(first, log.applied);
  }

  /** The term of an entry in memory, or of the snapshot mark; undefined for any other index. */
  termOf(index: number): number | undefined {
    return this.#core.log.term(index);
  }

  /** A copy of the machine's state for status calls and metrics; allocates. */
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

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
import type {
  ConfChangeResult,
  InitialState,
  ProposeResult,
  RaftConfig,
  ReadIndexResult,
  Ready,
  Role,
  SoftState,
  Status,
  TransferResult,
} from "./interface.ts";
import { encodeConfChange } from "./log.ts";
import { type CandidateRole, Machine } from "./machine.ts";
import { newMessage } from "./message.ts";

const { MsgProp, MsgReadIndex, MsgTransferLeader } = raftpb.MessageType;
const { EntryNormal } = raftpb.EntryType;

/** A vote for itself, which counts when the Ready of this number is durable. */
interface PendingVote {
  readonly number: number;
  readonly term: number;
  readonly role: CandidateRole;
}

const NONE: readonly never[] = Object.freeze([]);

export class Raft {
  readonly #machine: Machine;
  #readyNumber = 0;
  #givenSoftState: SoftState;
  #givenHardState: raftpb.HardState;
  readonly #ownVotes: PendingVote[] = [];

  /**
   * Throws RaftConfigError for contradictory settings, and InvariantError for an incoherent state.
   */
  constructor(config: RaftConfig, initial: InitialState) {
    this.#machine = new Machine(config, initial);
    this.#givenSoftState = { leader: 0n, role: "follower" };
    this.#givenHardState = { ...initial.hardState };
  }

  get id(): bigint {
    return this.#machine.replica.id;
  }

  get term(): number {
    return this.#machine.replica.term;
  }

  /** The leader's id, 0n if unknown. */
  get leader(): bigint {
    return this.#machine.leader;
  }

  get role(): Role {
    return this.#machine.role;
  }

  get commitIndex(): number {
    return this.#machine.replica.log.committed;
  }

  /** The last index reported by applied(). */
  get appliedIndex(): number {
    return this.#machine.replica.log.applied;
  }

  /** The first entry held in memory, or the index after the snapshot mark. */
  get firstIndex(): number {
    return this.#machine.replica.log.firstIndex;
  }

  get lastIndex(): number {
    return this.#machine.replica.log.lastIndex;
  }

  /** The log is durable on this member up to this index. */
  get stableIndex(): number {
    return this.#machine.replica.log.stable;
  }

  /**
   * The current configuration, as of the last change applied. Lists are in ascending order and must
   * not be changed.
   */
  get confState(): raftpb.ConfState {
    return this.#machine.replica.conf;
  }

  /** One tick of the driver's clock: heartbeats, elections and quorum checks count ticks. */
  tick(): void {
    this.#machine.tick();
  }

  /**
   * Lets `ticks` of the election timeout pass at once, on a follower that knows no leader. For a
   * member that has just started.
   */
  advanceElection(ticks: number): void {
    this.#machine.advanceElection(ticks);
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
    return this.#machine.step(message);
  }

  /**
   * Proposes payloads as consecutive entries in one append: all or none. A follower forwards them
   * in one message. "accepted" is no promise that they will be committed: only a payload among the
   * committed entries is. Keeps the payloads, which must not be changed afterwards.
   */
  propose(payloads: readonly Uint8Array[]): ProposeResult {
    const { leading } = this.#machine;
    if (leading !== undefined) return leading.propose(payloads);
    if (payloads.length === 0) return "accepted";
    return this.#machine.forward(MsgProp, EntryNormal, payloads) ? "accepted" : "no-leader";
  }

  /**
   * Proposes a configuration change. Only one may be pending, and it must fit the configuration.
   * Otherwise an empty entry takes its place, which a leader reports here and a follower does not
   * learn.
   */
  proposeConfChange(change: raftpb.ConfChange | raftpb.ConfChangeV2): ConfChangeResult {
    const { type, data } = encodeConfChange(change);
    const { leading } = this.#machine;
    if (leading !== undefined) return leading.proposeConfChange(type, data);
    return this.#machine.forward(MsgProp, type, [data]) ? "accepted" : "no-leader";
  }

  /**
   * Applies a committed change. The driver calls it when it applies the entry, in order with the
   * others and before applied(). For a change that every member's driver rejects, it is not called.
   * Returns the resulting configuration.
   */
  applyConfChange(change: raftpb.ConfChangeV2): raftpb.ConfState {
    this.#machine.applyConfChange(change);
    return this.#machine.replica.conf;
  }

  /**
   * Requests the index that a linearizable read waits for; it arrives in Ready.readStates with the
   * same context. The contexts of a member must be unique, across restarts too, so that a late
   * response to an old one cannot be taken for a new one's. A response may arrive twice, or never
   * (when the leader changes); the driver retries.
   */
  readIndex(context: Uint8Array): ReadIndexResult {
    const { leading } = this.#machine;
    if (leading !== undefined)
      return leading.reads.accept({ from: 0n, context }) ? "accepted" : "too-many-reads";
    return this.#machine.forward(MsgReadIndex, EntryNormal, [context]) ? "accepted" : "no-leader";
  }

  /**
   * Starts a campaign, if this machine is a voter and has applied all committed configuration
   * changes. With lease reads, only while no leader's lease is valid.
   */
  campaign(): void {
    const machine = this.#machine;
    if (machine.replica.config.readOnly === "lease" && machine.inLease) return;
    machine.tryCampaign();
  }

  /**
   * For a follower that knows from elsewhere that its leader is gone: it may grant votes at once.
   * Does nothing with lease reads, which rely on followers not to vote during a lease.
   */
  forgetLeader(): void {
    const machine = this.#machine;
    if (machine.replica.config.readOnly !== "lease") machine.forgetLeader();
  }

  /**
   * Transfers leadership: the leader stops accepting proposals, brings the target's log up to date
   * and requests it to campaign. After one election timeout it gives up and continues to lead. A
   * follower forwards the request.
   */
  transferLeadership(to: bigint): TransferResult {
    const { leader, leading, replica } = this.#machine;
    if (leading !== undefined) return leading.transfer(to);
    if (leader === 0n) return "no-leader";
    if (leader === to) return "already-leader";
    // On the wire, the sender of the request is the member that is to lead.
    replica.send(newMessage(MsgTransferLeader, leader, to, replica.term));
    return "accepted";
  }

  /** Messages to this member were dropped: a leader returns to probing. */
  reportUnreachable(id: bigint): void {
    this.#machine.leading?.reportUnreachable(id);
  }

  /**
   * Reports whether the snapshot of a MsgSnap was installed. Must be called for every MsgSnap: no
   * appends are sent before.
   */
  reportSnapshot(id: bigint, ok: boolean): void {
    this.#machine.leading?.reportSnapshot(id, ok);
  }

  /** True if ready() would return work. */
  hasReady(): boolean {
    const { leading, campaign, replica } = this.#machine;
    leading?.flush();
    return (
      replica.messages.length > 0 ||
      replica.messagesAfterSync.length > 0 ||
      replica.readStates.length > 0 ||
      campaign?.ownVoteDue === true ||
      replica.log.hasWrites() ||
      replica.log.hasCommitted() ||
      this.#hardStateChanged() ||
      this.#softStateChanged()
    );
  }

  #softStateChanged(): boolean {
    const { leader, role } = this.#machine;
    return leader !== this.#givenSoftState.leader || role !== this.#givenSoftState.role;
  }

  #termOrVoteChanged(): boolean {
    const { term, vote } = this.#machine.replica;
    return term !== this.#givenHardState.term || vote !== this.#givenHardState.vote;
  }

  #hardStateChanged(): boolean {
    const { committed } = this.#machine.replica.log;
    return committed !== this.#givenHardState.commit || this.#termOrVoteChanged();
  }

  /** Returns the work, once: the driver must carry out all of it. */
  ready(): Ready {
    const { leading, campaign, leader, role, replica } = this.#machine;
    leading?.flush();
    const number = ++this.#readyNumber;
    const { entries, snapshot } = replica.log.takeWrites(number);
    const votes = this.#termOrVoteChanged();
    let hardState: raftpb.HardState | undefined;
    if (this.#hardStateChanged()) {
      hardState = { term: replica.term, vote: replica.vote, commit: replica.log.committed };
      this.#givenHardState = hardState;
    }
    let softState: SoftState | undefined;
    if (this.#softStateChanged()) {
      softState = { leader, role };
      this.#givenSoftState = softState;
    }
    if (campaign?.ownVoteDue === true) {
      this.#ownVotes.push({ number, term: replica.term, role: campaign.role });
      campaign.ownVoteDue = false;
    }
    const { messages, messagesAfterSync, readStates } = replica;
    const ready: Ready = {
      number,
      softState,
      hardState,
      entries,
      mustSync: votes || entries.length > 0 || snapshot !== undefined,
      snapshot,
      // An empty queue stays with the machine, which will fill it, so it must not be part of a
      // Ready.
      messages: messages.length > 0 ? messages : NONE,
      messagesAfterSync: messagesAfterSync.length > 0 ? messagesAfterSync : NONE,
      committed: replica.log.takeCommitted(),
      readStates: readStates.length > 0 ? readStates : NONE,
    };
    if (messages.length > 0) replica.messages = [];
    if (messagesAfterSync.length > 0) replica.messagesAfterSync = [];
    if (readStates.length > 0) replica.readStates = [];
    return ready;
  }

  /**
   * The writes of this Ready and of all before it are durable. A Ready with mustSync false counts
   * as durable as soon as all before it are. Only after this does a leader count its own copy and a
   * candidate its own vote, and are entries handed out to be applied.
   */
  persisted(readyNumber: number): void {
    const machine = this.#machine;
    const { replica } = machine;
    replica.log.persisted(readyNumber);
    for (;;) {
      const [vote] = this.#ownVotes;
      if (vote === undefined || vote.number > readyNumber) break;
      this.#ownVotes.shift();
      if (vote.term === replica.term) machine.countOwnVote(vote.role);
    }
    machine.leading?.persisted();
  }

  /** Everything up to index, entries and snapshot, is applied. */
  applied(index: number): void {
    this.#machine.applied(index);
  }

  /**
   * Drops entries up to index, which must be applied, from memory. @param confState the
   * configuration as of index, sent in MsgSnap. A follower that needs a dropped entry gets a
   * snapshot, so the driver keeps some entries for followers that are slightly behind.
   */
  compact(index: number, confState: raftpb.ConfState): void {
    this.#machine.replica.log.compact(index, confState);
  }

  /** Applied entries from `first` to the last one; undefined if the log in memory starts later. */
  appliedFrom(first: number): raftpb.Entry[] | undefined {
    const { log } = this.#machine.replica;
    return first < log.firstIndex || first > log.applied + 1
      ? undefined
      : log.slice(first, log.applied);
  }

  /** The index of the last entry in memory that has a property, applied or not; 0: none has it. */
  lastIndexOf(has: (entry: raftpb.Entry) => boolean): number {
    const { log } = this.#machine.replica;
    return log.slice(log.firstIndex, log.lastIndex).findLast(has)?.index ?? 0;
  }

  /** The term of an entry in memory, or of the snapshot mark; undefined for any other index. */
  termOf(index: number): number | undefined {
    return this.#machine.replica.log.term(index);
  }

  /** A copy of the machine's state for status calls and metrics; allocates. */
  status(): Status {
    const { leader, leading, role, replica } = this.#machine;
    const { log } = replica;
    return {
      id: replica.id,
      role,
      term: replica.term,
      vote: replica.vote,
      leader,
      leadTransferee: leading?.transferee ?? 0n,
      commit: log.committed,
      applied: log.applied,
      firstIndex: log.firstIndex,
      lastIndex: log.lastIndex,
      stableIndex: log.stable,
      confState: replica.conf,
      progress: leading?.tracker.all.map((progress) => progress.status()) ?? [],
    };
  }
}

/**
 * The leader: made when a candidate wins, dropped when its machine enters another role. It appends
 * proposals, sends every member what its log lacks, and commits what a quorum has on disk:
 *
 *     propose ------------> log ---- flush, MsgApp ----> followers
 *                            |                               |
 *                        own disk                        their disks
 *                            |                               |
 *                         persisted                      MsgAppResp
 *                            +-----> quorumMatch <-----------+
 *                                         |
 *                               log.commitTo, held reads
 *
 * Handlers only mark what is due. flush() sends it once per Ready, so that all proposals and
 * commits of a turn share one append to each follower.
 */
import { defined, EMPTY, idToHex, raftpb, WireError } from "@quorate/proto";
import {
  ConfChangeRefusal,
  changeConfState,
  isJoint,
  isLeaveJoint,
  isVoter,
} from "./confchange.ts";
import type { ConfChangeResult, ProposeResult, TransferResult } from "./interface.ts";
import { violated } from "./invariants.ts";
import { confChangeOf, emptyEntry, entryBytes, isConfChange } from "./log.ts";
import { NO_ENTRIES } from "./message.ts";
import { Reads } from "./reads.ts";
import type { Replica } from "./replica.ts";
import { type Progress, Tracker } from "./tracker.ts";

const {
  MsgApp,
  MsgAppResp,
  MsgHeartbeat,
  MsgHeartbeatResp,
  MsgProp,
  MsgReadIndex,
  MsgSnap,
  MsgTimeoutNow,
  MsgTransferLeader,
} = raftpb.MessageType;
const { EntryConfChangeV2, EntryNormal } = raftpb.EntryType;

export class Leader {
  readonly role = "leader";
  /** The leader that this machine knows: itself. */
  readonly leader: bigint;
  readonly tracker: Tracker;
  readonly reads: Reads;
  readonly #replica: Replica;
  /** Ticks since the last check for a quorum, or since a transfer of leadership began. */
  #electionElapsed = 0;
  #heartbeatElapsed = 0;
  #heartbeatDue = false;
  #transferee = 0n;
  /** No configuration change after this index is pending. */
  #pendingConfIndex: number;
  /** Entries after this index are of this term. */
  readonly #termStartIndex: number;
  /** Bytes of data in entries of this term that are not committed. */
  #uncommittedBytes = 0;

  /** Opens the term with an empty entry: committing that commits all before it. */
  constructor(replica: Replica) {
    const { id, conf, lastIndex, log, term, config } = replica;
    this.#replica = replica;
    this.leader = id;
    this.tracker = new Tracker(conf, lastIndex + 1, config);
    this.reads = new Reads(replica, this.tracker);
    const self = this.tracker.get(id);
    if (self !== undefined) {
      self.becomeReplicate();
      self.match = log.stable;
      self.recentActive = true;
    }
    // A configuration change may be among the entries that are not applied: none is proposed before
    // all of them are.
    this.#pendingConfIndex = lastIndex;
    this.#termStartIndex = lastIndex;
    this.#append([emptyEntry(term, lastIndex + 1)]);
  }

  /** The target of a transfer of leadership, 0n if none is in progress. */
  get transferee(): bigint {
    return this.#transferee;
  }

  /** One tick; false if the machine must step down, since no quorum was active. */
  tick(): boolean {
    const { id, config } = this.#replica;
    this.#electionElapsed++;
    this.#heartbeatElapsed++;
    if (this.#electionElapsed >= config.electionTicks) {
      this.#electionElapsed = 0;
      if (config.checkQuorum && !this.tracker.takeQuorumActive(id)) return false;
      this.#giveUpTransfer();
    }
    if (this.#heartbeatElapsed >= config.heartbeatTicks) {
      this.#heartbeatElapsed = 0;
      this.#heartbeatDue = true;
    }
    return true;
  }

  /** Queues all messages that the members are due. */
  flush(): void {
    const replica = this.#replica;
    if (this.#heartbeatDue || this.reads.roundDue) this.#broadcastHeartbeat(this.#heartbeatDue);
    const committed = replica.log.committed;
    for (const progress of this.tracker.all) {
      if (progress.id === replica.id) continue;
      const due = progress.appendDue || progress.canBumpCommit(committed);
      progress.appendDue = false;
      if (!this.#sendAppend(progress, due)) continue;
      while (this.#sendAppend(progress, false));
    }
  }

  /** A heartbeat to every member if `everyone`, else to those that confirm reads. */
  #broadcastHeartbeat(everyone: boolean): void {
    const replica = this.#replica;
    this.#heartbeatDue = false;
    const context = this.reads.heartbeatContext();
    for (const progress of this.tracker.all) {
      if (progress.id === replica.id || !(everyone || isVoter(replica.conf, progress.id))) continue;
      const heartbeat = replica.message(MsgHeartbeat, progress.id);
      // Not above the follower's known match: beyond that its log may differ.
      heartbeat.commit = Math.min(progress.match, replica.log.committed);
      if (context !== undefined) heartbeat.context = context;
      replica.send(heartbeat);
      progress.sentCommit = heartbeat.commit;
    }
    this.reads.advance();
  }

  /**
   * Sends one append from progress.next, or a snapshot if the log starts later. False if there is
   * nothing to send.
   */
  #sendAppend(progress: Progress, evenIfEmpty: boolean): boolean {
    if (progress.paused) return false;
    const replica = this.#replica;
    const log = replica.log;
    const previous = progress.next - 1;
    const previousTerm = log.term(previous);
    if (previousTerm === undefined) return this.#sendSnapshot(progress);
    // With a full window only empty appends pass: their responses show whether the messages in it
    // were lost.
    const stopped = progress.state === "replicate" && progress.inflights.full;
    const entries =
      stopped || progress.next > log.lastIndex
        ? NO_ENTRIES
        : log.collect(progress.next, replica.config.maxMessageBytes);
    if (entries.length === 0 && !evenIfEmpty) return false;
    const append = replica.message(MsgApp, progress.id);
    append.index = previous;
    append.logTerm = previousTerm;
    append.entries = entries;
    append.commit = log.committed;
    replica.send(append);
    let bytes = 0;
    for (const entry of entries) bytes += entryBytes(entry);
    progress.sentEntries(entries.length, bytes);
    progress.sentCommit = log.committed;
    return true;
  }

  /**
   * Sends the log's snapshot mark: the driver streams a state of that index or above. False if the
   * member seems to be unreachable.
   */
  #sendSnapshot(progress: Progress): boolean {
    if (!progress.recentActive) return false;
    const replica = this.#replica;
    const metadata = replica.log.snapshot;
    if (metadata.index === 0)
      violated("RAFT-17", `next ${progress.next} of ${idToHex(progress.id)}, the log starts at 1`);
    progress.becomeSnapshot(metadata.index);
    const message = replica.message(MsgSnap, progress.id);
    message.snapshot = raftpb.Snapshot.create({ metadata });
    replica.send(message);
    replica.note("info", "sends a snapshot", {
      to: idToHex(progress.id),
      index: metadata.index,
      match: progress.match,
    });
    return true;
  }

  /** Handles a message of this term. */
  step(message: raftpb.Message): void {
    switch (message.type) {
      case MsgProp:
        this.#handleProposal(message);
        return;
      case MsgReadIndex:
        this.#handleReadIndex(message);
        return;
      case MsgTransferLeader:
        this.transfer(message.from);
        return;
    }
    const progress = this.tracker.get(message.from);
    if (progress === undefined) return;
    if (message.type === MsgAppResp) this.#handleAppendResponse(progress, message);
    else if (message.type === MsgHeartbeatResp) this.#handleHeartbeatResponse(progress, message);
  }

  #handleReadIndex({ from, entries }: raftpb.Message): void {
    const [entry] = entries;
    if (entry === undefined || entries.length !== 1) return;
    if (!this.reads.accept({ from, context: entry.data })) {
      this.#replica.note("debug", "dropped a forwarded read: too many wait", {
        from: idToHex(from),
      });
    }
  }

  #handleAppendResponse(progress: Progress, response: raftpb.Message): void {
    progress.recentActive = true;
    if (response.reject) this.#handleRejection(progress, response);
    else this.#handleAcknowledgement(progress, response.index);
  }

  /**
   * The follower's log has no entry that matches the append's predecessor. Its hint is the highest
   * lower index with a term not above the append's. With the term at the hint, the leader skips its
   * own entries that cannot match. A probe thus costs at most one round trip per differing term,
   * not one per entry.
   */
  #handleRejection(progress: Progress, response: raftpb.Message): void {
    const replica = this.#replica;
    const meet =
      response.logTerm > 0
        ? replica.log.findConflict(response.rejectHint, response.logTerm).index
        : response.rejectHint;
    if (!progress.reject(response.index, meet)) return;
    if (progress.state === "replicate") progress.becomeProbe();
    progress.appendDue = true;
    if (replica.hasLogger) {
      replica.note("debug", "probes further back", {
        to: idToHex(progress.id),
        next: progress.next,
      });
    }
  }

  #handleAcknowledgement(progress: Progress, index: number): void {
    const log = this.#replica.log;
    const news = progress.acknowledge(index, log.lastIndex);
    // A response without news still ends a probe: the logs match there.
    if (!news && !(progress.state === "probe" && progress.match === index)) return;
    if (progress.state === "probe") {
      progress.becomeReplicate();
    } else if (progress.state === "replicate") {
      progress.inflights.freeUpTo(index);
    } else if (progress.match + 1 >= log.firstIndex) {
      // The log continues from the installed snapshot, whichever leader sent it.
      progress.becomeProbe();
      progress.becomeReplicate();
    }
    this.#advanceCommit();
    if (progress.id === this.#transferee && progress.match === log.lastIndex)
      this.#sendTimeoutNow(progress.id);
  }

  #handleHeartbeatResponse(progress: Progress, response: raftpb.Message): void {
    progress.recentActive = true;
    // Allows one more append, empty if the window is full: if all messages in the window were lost,
    // only its response would show that.
    progress.flowPaused = false;
    if (progress.match < this.#replica.log.lastIndex || progress.state === "probe")
      progress.appendDue = true;
    this.reads.acknowledge(progress, response.context);
  }

  /** A snapshot was installed, or failed. Either way the next append waits for a response. */
  reportSnapshot(id: bigint, ok: boolean): void {
    const progress = this.tracker.get(id);
    if (progress === undefined || progress.state !== "snapshot") return;
    if (!ok) progress.pendingSnapshot = 0;
    progress.becomeProbe();
    progress.flowPaused = true;
  }

  /** Messages in flight to this member are probably lost. */
  reportUnreachable(id: bigint): void {
    const progress = this.tracker.get(id);
    if (progress?.state === "replicate") progress.becomeProbe();
  }

  /**
   * Commits entries that a quorum has on disk. Only an entry of the leader's own term is counted;
   * it commits the ones before it too (paper, section 5.4.2).
   */
  #advanceCommit(): void {
    const { log, term } = this.#replica;
    const index = this.tracker.quorumMatch();
    if (index <= log.committed || log.term(index) !== term) return;
    const before = Math.max(log.committed, this.#termStartIndex);
    log.commitTo(index);
    this.#uncommittedBytes -= log.dataBytes(before + 1, index);
    const bytes = this.#uncommittedBytes;
    if (bytes < 0 || (bytes > 0 && index === log.lastIndex))
      violated("RAFT-21", `${bytes} bytes after ${index}, the log ends at ${log.lastIndex}`);
    this.reads.release();
  }

  /** The leader's own disk write is durable: its own copy counts from now on. */
  persisted(): void {
    const { id, log } = this.#replica;
    if (this.tracker.get(id)?.acknowledge(log.stable, log.lastIndex) === true)
      this.#advanceCommit();
  }

  /** Appends entries, with terms and indexes set, to the log. */
  #append(entries: readonly raftpb.Entry[]): void {
    this.#replica.log.append(entries);
    for (const entry of entries) this.#uncommittedBytes += entry.data.length;
  }

  /** The reason why a proposal of so many bytes is refused now; "accepted" if it is not. */
  #admission(dataBytes: number): ProposeResult {
    const { id, config } = this.#replica;
    if (this.tracker.get(id) === undefined) return "not-a-member";
    if (this.#transferee !== 0n) return "transferring";
    // With nothing uncommitted, a batch of any size is accepted, or a large one never could be.
    // Empty entries always are: the entry that leaves a joint configuration is empty.
    if (
      this.#uncommittedBytes > 0 &&
      dataBytes > 0 &&
      this.#uncommittedBytes + dataBytes > config.maxUncommittedBytes
    ) {
      return "too-large-uncommitted";
    }
    return "accepted";
  }

  /** Proposes normal entries: all of them or none. */
  propose(payloads: readonly Uint8Array[]): ProposeResult {
    if (payloads.length === 0) return "accepted";
    let dataBytes = 0;
    for (const data of payloads) dataBytes += data.length;
    const admitted = this.#admission(dataBytes);
    if (admitted !== "accepted") return admitted;
    const { term, lastIndex } = this.#replica;
    const next = lastIndex + 1;
    this.#append(payloads.map((data, i) => ({ type: EntryNormal, term, index: next + i, data })));
    return "accepted";
  }

  /** Proposes an encoded configuration change. */
  proposeConfChange(type: raftpb.EntryType, data: Uint8Array): ConfChangeResult {
    return this.#appendProposed([{ type, term: 0, index: 0, data }]);
  }

  #handleProposal({ entries }: raftpb.Message): void {
    if (entries.length === 0) return;
    const result = this.#appendProposed(entries);
    if (result !== "accepted")
      this.#replica.note("debug", "dropped a forwarded proposal", { result });
  }

  /**
   * Appends entries of any type, each configuration change only if it may be proposed now. Sets
   * their term and index.
   */
  #appendProposed(proposed: readonly raftpb.Entry[]): ConfChangeResult {
    let dataBytes = 0;
    for (const entry of proposed) dataBytes += entry.data.length;
    const admitted = this.#admission(dataBytes);
    if (admitted !== "accepted") return admitted;
    const { term, lastIndex } = this.#replica;
    const next = lastIndex + 1;
    let result: ConfChangeResult = "accepted";
    const entries = proposed.map((entry, i) => {
      const { type, data } = entry;
      if (!isConfChange(entry)) return { type, term, index: next + i, data };
      const refusal = this.#confChangeRefusal(entry);
      if (refusal === undefined) {
        this.#pendingConfIndex = next + i;
        return { type, term, index: next + i, data };
      }
      this.#replica.note("info", "refused a configuration change", { reason: refusal });
      result = "conf-change-refused";
      return { type: EntryNormal, term, index: next + i, data: EMPTY };
    });
    this.#append(entries);
    return result;
  }

  /**
   * The reason why a change may not be proposed now. While none is pending, the change is checked
   * against the current configuration, so that no change that does not fit is appended.
   */
  #confChangeRefusal(entry: raftpb.Entry): string | undefined {
    const { conf, log } = this.#replica;
    if (this.#pendingConfIndex > log.applied)
      return `one may be pending at index ${this.#pendingConfIndex}, applied is ${log.applied}`;
    try {
      const change = defined(confChangeOf(entry), "the change in the entry");
      if (isJoint(conf) && !isLeaveJoint(change))
        return "the configuration is joint and has to be left first";
      const changed = changeConfState(conf, change);
      return changed instanceof ConfChangeRefusal ? changed.reason : undefined;
    } catch (error) {
      if (error instanceof WireError) return `malformed: ${error.message}`;
      throw error;
    }
  }

  /**
   * Proposes to leave a joint configuration with autoLeave, once the change that entered it is
   * applied. Called whenever that may have become possible: after applying, and after a failed
   * transfer of leadership (which blocks proposals).
   */
  leaveJointIfDue(): void {
    const { conf, log } = this.#replica;
    if (!conf.autoLeave || log.applied < this.#pendingConfIndex) return;
    if (this.proposeConfChange(EntryConfChangeV2, EMPTY) === "accepted")
      this.#replica.note("info", "leaves the joint configuration");
  }

  /**
   * The replica has a new configuration: sends to, and counts, its members. False if the machine
   * must step down, since it was removed or demoted.
   */
  reconfigure(): boolean {
    const { id, conf, lastIndex } = this.#replica;
    this.tracker.configure(conf, lastIndex);
    if (!isVoter(conf, id)) return false;
    // The new quorum may be smaller: entries may be committed and reads confirmed by it.
    this.#advanceCommit();
    this.reads.advance();
    if (this.#transferee !== 0n && !isVoter(conf, this.#transferee)) this.#transferee = 0n;
    return true;
  }

  /**
   * Starts a transfer of leadership: proposals stop, and the target may campaign as soon as it has
   * all entries. It times out after one election timeout from now.
   */
  transfer(to: bigint): TransferResult {
    const replica = this.#replica;
    if (to === replica.id) return "already-leader";
    const progress = this.tracker.get(to);
    if (progress === undefined) return "unknown-member";
    if (!isVoter(replica.conf, to)) return "not-a-voter";
    if (this.#transferee === to) return "accepted";
    replica.note("info", "hands leadership over", { to: idToHex(to) });
    this.#transferee = to;
    this.#electionElapsed = 0;
    if (progress.match === replica.lastIndex) this.#sendTimeoutNow(to);
    else progress.appendDue = true;
    return "accepted";
  }

  #sendTimeoutNow(to: bigint): void {
    this.reads.leaseWaived = true;
    this.#replica.send(this.#replica.message(MsgTimeoutNow, to));
  }

  #giveUpTransfer(): void {
    if (this.#transferee === 0n) return;
    this.#replica.note("info", "keeps leadership: the handover took too long", {
      to: idToHex(this.#transferee),
    });
    this.#transferee = 0n;
    this.leaveJointIfDue();
  }
}

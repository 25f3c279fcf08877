/**
 * A member's loop, from top to bottom. Inbound messages, proposals, reads and ticks go into Raft; a
 * Ready comes out; it is persisted, sent and applied, in that order:
 *
 *     received() propose() read() tick            turn()
 *          |         |       |     |      +-> append to the WAL, start fdatasync
 *          +---------+-------+-----+-> Raft -> Ready -> send (a leader's appends travel while its
 *                                         |             own disk works)
 *                                         +-> queue what is committed and durable here
 *                  fdatasync is done --------> send what had to wait for the disk, step Raft
 *                      in each turn ---------> apply from the queue for a few milliseconds, and
 *                                              respond to the waiting callers
 *
 * Input only marks the loop; the work is done once at the end of the event loop's turn, so that all
 * that arrived together shares one append, one fdatasync and one write for each peer.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import { raftpb } from "@quorate/proto";
import { confChangeOf, isConfChange, type Raft, type Ready } from "@quorate/raft";
import type { Transport } from "@quorate/transport";
import type { Wal } from "@quorate/wal";
import type { Applier } from "../apply/applier.ts";
import type { SnapshotInstall } from "../apply/snapshot-install.ts";
import type { SnapshotSender } from "../apply/snapshot-sender.ts";
import type { LeaseKeeper } from "../lease/keeper.ts";
import type { VersionMonitor } from "../membership/index.ts";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import type { MemberObserver } from "../observer.ts";
import type { FaultHook } from "./fault-points.ts";
import type { LeaderView } from "./leader-view.ts";
import type { Lifetime } from "./lifetime.ts";
import type { LoopBounds } from "./limits.ts";
import type { Proposals, Timeouts } from "./proposals.ts";
import type { Reads } from "./reads.ts";
import type { LoopTurns, Standstill, UnwrittenCommit } from "./turns.ts";

/**
 * A single entry is synced by a blocking call if the last sync took no longer than this: with
 * nothing else to do meanwhile it saves the way to another thread and back, a third of what one
 * client's write takes.
 */
const MAX_BLOCKING_SYNC_MS = 1;

/** What the loop works with. */
export interface LoopParts {
  /** Milliseconds between two ticks. */
  readonly tickMs: number;
  readonly bounds: LoopBounds;
  readonly raft: Raft;
  readonly turns: LoopTurns;
  readonly lifetime: Lifetime;
  readonly wal: Wal;
  readonly unwritten: UnwrittenCommit;
  readonly transport: Transport;
  readonly proposals: Proposals;
  readonly timeouts: Timeouts;
  readonly reads: Reads;
  readonly applier: Applier;
  readonly standstill: Standstill;
  readonly snapshotInstall: SnapshotInstall;
  readonly sender: SnapshotSender;
  readonly leader: LeaderView;
  readonly keeper: LeaseKeeper;
  readonly versions: VersionMonitor;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MemberMetrics;
  readonly faults: FaultHook | undefined;
  readonly observer: MemberObserver | undefined;
}

export class MemberLoop {
  readonly #parts: LoopParts;
  #tickTimer: Timer | undefined;
  readonly #heartbeats: HeartbeatGaps;
  /** When this turn began to apply; undefined: it has not. */
  #sliceStartMs: number | undefined;
  /** The last entry of the highest term that was handed on to be applied. */
  #newest = { index: 0, term: 0 };
  readonly #unsynced = new UnsyncedReadys();
  readonly #lastVoter: LastVoter;

  constructor(parts: LoopParts) {
    this.#parts = parts;
    const { commitIndex, lastIndex } = parts.raft;
    this.#lastVoter = new LastVoter(commitIndex, lastIndex);
    this.#heartbeats = new HeartbeatGaps(parts.tickMs);
  }

  start(): void {
    const { clock, tickMs, turns } = this.#parts;
    this.#tickTimer = clock.every(tickMs, () => this.#guard(() => this.#tick()));
    turns.start(() => this.#guard(this.#turn));
  }

  /** No more turns. What is under way on disk finishes without effect. */
  stop(): void {
    this.#parts.turns.stop();
    this.#tickTimer?.cancel();
    this.#parts.standstill.entryEnded();
  }

  get #isStopped(): boolean {
    return !this.#parts.turns.areRunning;
  }

  /**
   * The last of the oldest entries that are not known to be on this member's disk; undefined if all
   * are.
   */
  get unsyncedIndex(): number | undefined {
    return this.#unsynced.oldestIndex;
  }

  #tick(): void {
    const { raft, proposals, timeouts, reads, turns } = this.#parts;
    raft.tick();
    proposals.expire(timeouts);
    reads.expire(raft);
    turns.wake();
  }

  readonly #turn = (): void => {
    const { proposals, reads, raft, applier, standstill, turns, bounds } = this.#parts;
    this.#sliceStartMs = undefined;
    if (proposals.handIn()) turns.wake();
    reads.startRound(raft);
    for (let i = 0; this.#canProceed(); i++) {
      if (i === bounds.maxReadysPerTurn) {
        turns.wake();
        return;
      }
      this.#process(raft.ready());
    }
    if (standstill.isOn || this.#isStopped || !applier.canRun) return;
    this.#apply();
    if (this.#canProceed() || applier.canRun) turns.wake();
  };

  /**
   * While a snapshot is being installed, Raft goes on hearing its peers, but nothing new is written
   * or applied.
   */
  #canProceed(): boolean {
    const { standstill, raft } = this.#parts;
    return !standstill.isOn && !this.#isStopped && raft.hasReady();
  }

  #process(ready: Ready): void {
    if (ready.softState !== undefined) this.#noteLeader(ready.softState.leader);
    if (ready.snapshot !== undefined) {
      this.#install(ready, ready.snapshot);
      return;
    }
    this.#lastVoter.wrote(ready.entries);
    if (ready.hardState !== undefined && this.#mustSaveFirst(ready.hardState)) {
      this.#saveFirst(ready, ready.hardState);
      return;
    }
    const unsynced = this.#persist(ready);
    this.#send(ready.messages);
    if (unsynced !== undefined) {
      this.#parts.wal.syncNow();
      this.#synced(unsynced);
    }
    this.#handOn(ready);
  }

  /** Has what is committed applied, and confirmed reads answered. */
  #handOn(ready: Ready): void {
    const last = ready.committed.at(-1);
    if (last !== undefined) {
      const { index, term } = last;
      if (term > this.#newest.term) this.#newest = { index, term };
      this.#parts.applier.push(ready.committed);
      this.#apply();
    }
    const { reads, raft } = this.#parts;
    for (const read of ready.readStates) reads.answered(read.context, read.index);
    reads.release(raft.appliedIndex);
  }

  #mustSaveFirst({ commit }: raftpb.HardState): boolean {
    const { voters } = this.#parts.raft.confState;
    return this.#lastVoter.mustSave(commit, this.#parts.raft.appliedIndex, voters.length);
  }

  /**
   * The commit index is made durable before anything is sent and applied. Meanwhile Raft goes on
   * hearing its peers.
   */
  #saveFirst(ready: Ready, hardState: raftpb.HardState): void {
    const { wal, faults, standstill, unwritten, turns } = this.#parts;
    standstill.isOn = true;
    unwritten.hardState = undefined;
    faults?.("before-wal-append");
    wal.append(hardState, ready.entries);
    faults?.("after-wal-append");
    wal.sync().then(
      () =>
        this.#guard(() => {
          if (this.#isStopped) return;
          standstill.isOn = false;
          this.#lastVoter.saved(hardState.commit);
          this.#send(ready.messages);
          this.#synced(this.#unsynced.push(ready));
          this.#handOn(ready);
          turns.wake();
        }),
      (error: unknown) => this.#fail(error),
    );
  }

  /**
   * One write call now; the fdatasync runs on beside the loop as a rule, and what depends on it
   * follows in #synced. Returns the step where a blocking one is quicker: it is to be made when
   * the messages have left.
   */
  #persist(ready: Ready): Unsynced | undefined {
    const { wal, faults, unwritten, turns } = this.#parts;
    const hardState = ready.hardState ?? unwritten.hardState;
    const step = this.#unsynced.push(ready);
    if (ready.mustSync || ready.entries.length > 0) {
      unwritten.hardState = undefined;
      faults?.("before-wal-append");
      wal.append(hardState, ready.entries);
      faults?.("after-wal-append");
      if (this.#isAlone(ready)) return step;
      wal.sync().then(
        () =>
          this.#guard(() => {
            this.#synced(step);
            turns.wake();
          }),
        (error: unknown) => this.#fail(error),
      );
      return undefined;
    }
    unwritten.hardState = hardState;
    this.#synced(step);
    return undefined;
  }

  /** Whether the one entry is all that this member has to do: no other client waits for its own. */
  #isAlone({ entries }: Ready): boolean {
    const { wal, proposals } = this.#parts;
    const isSingle = entries.length === 1 && proposals.waitingCount <= 1;
    return isSingle && !wal.isSyncing && wal.lastSyncMs <= MAX_BLOCKING_SYNC_MS;
  }

  /**
   * `step` is durable. What waited for it leaves, once all before it is durable too. A turn must
   * follow, or go on.
   */
  #synced(step: Unsynced): void {
    if (this.#isStopped) return;
    step.durable = true;
    for (;;) {
      const first = this.#unsynced.takeDurable();
      if (first === undefined) return;
      this.#parts.faults?.("after-wal-sync");
      this.#send(first.messages);
      this.#parts.raft.persisted(first.number);
    }
  }

  #send(messages: readonly raftpb.Message[]): void {
    if (messages.length === 0) return;
    this.#parts.faults?.("before-send");
    this.#noteHeartbeats(messages);
    let toPeers = messages;
    if (messages.some((message) => message.type === raftpb.MessageType.MsgSnap)) {
      toPeers = messages.filter((message) => message.type !== raftpb.MessageType.MsgSnap);
      for (const message of messages) {
        if (message.type === raftpb.MessageType.MsgSnap) this.#parts.sender.send(message);
      }
    }
    this.#parts.transport.send(toPeers);
  }

  #noteHeartbeats(messages: readonly raftpb.Message[]): void {
    const { clock, logger, metrics, tickMs } = this.#parts;
    for (const { type, to } of messages) {
      if (type !== raftpb.MessageType.MsgHeartbeat) continue;
      const lateMs = this.#heartbeats.sent(to, clock.monotonicMs());
      if (lateMs === undefined) continue;
      metrics.heartbeatSendFailures.add();
      logger.warn(
        "leader failed to send out heartbeat on time; took too long, leader is overloaded likely from slow disk",
        {
          to: to.toString(16),
          "heartbeat-interval": `${tickMs}ms`,
          "expected-duration": `${2 * tickMs}ms`,
          "exceeded-duration": `${Math.round(lateMs)}ms`,
        },
      );
    }
  }

  /** Applies what is queued, until this turn has used up its time for that. */
  #apply(): void {
    const { raft, clock, faults, reads, proposals, applier, standstill } = this.#parts;
    if (this.#sliceStartMs === undefined) this.#sliceStartMs = clock.monotonicMs();
    else if (applier.isSliceOver(this.#sliceStartMs)) return;
    faults?.("before-apply");
    const index = applier.run(this.#sliceStartMs);
    if (index !== undefined) {
      raft.applied(index);
      reads.release(index);
      if (index >= this.#newest.index) proposals.succeeded(this.#newest.term);
    }
    faults?.("after-apply");
    if (!standstill.isInEntry) standstill.entryEnded();
  }

  #install(ready: Ready, snapshot: raftpb.Snapshot): void {
    const { wal, raft, reads, proposals, applier, standstill, unwritten } = this.#parts;
    const { snapshotInstall, turns } = this.#parts;
    standstill.isOn = true;
    // The snapshot holds what these would have done.
    applier.clear();
    proposals.abandons();
    standstill.entryEnded();
    this.#send(ready.messages);
    for (const read of ready.readStates) reads.answered(read.context, read.index);
    const hardState = ready.hardState ?? unwritten.hardState;
    // The log knows of the snapshot, and that it is committed, before the store changes: a crash in
    // between finds both or neither.
    const install = async () => {
      await snapshotInstall.save(snapshot);
      wal.append(hardState, ready.entries);
      unwritten.hardState = undefined;
      await wal.sync();
      this.#lastVoter.wrote(ready.entries);
      this.#lastVoter.saved(hardState?.commit ?? 0);
      await snapshotInstall.install(snapshot);
    };
    install().then(
      () =>
        this.#guard(() => {
          if (this.#isStopped) return;
          standstill.isOn = false;
          raft.applied(snapshot.metadata.index);
          proposals.succeeded(snapshot.metadata.term);
          this.#synced(this.#unsynced.push(ready));
          reads.release(raft.appliedIndex);
          turns.wake();
        }),
      (error: unknown) => this.#fail(error),
    );
  }

  #noteLeader(id: bigint): void {
    const { leader, reads, raft, keeper, metrics, clock, versions } = this.#parts;
    if (id === leader.leader) return;
    leader.leader = id;
    this.#heartbeats.reset();
    if (leader.isLeader) keeper.leads(raft.term);
    else keeper.steppedDown();
    this.#parts.observer?.leaderChanged(id);
    if (id === 0n) return;
    metrics.leaderChanges.add();
    leader.electedMs = clock.monotonicMs();
    if (leader.isLeader) versions.lead();
    reads.leaderChanged(raft);
  }

  /** Runs a step; whatever it throws is the end of this member. */
  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#isStopped) return;
    this.stop();
    this.#parts.lifetime.end(error);
  }
}

/** A Ready whose persistence is under way. */
interface Unsynced {
  readonly number: number;
  /** To send when it and all before it are durable. */
  readonly messages: readonly raftpb.Message[];
  durable: boolean;
  /** Of the last entry that it writes; undefined if there is none. */
  readonly lastIndex: number | undefined;
}

/**
 * Readys whose persistence is under way, oldest first. Raft bounds the queue: it has a Ready only
 * for what fits into its windows.
 */
class UnsyncedReadys {
  readonly #steps: Unsynced[] = [];

  /** The last index of the oldest one that has entries and is not durable; undefined: none. */
  get oldestIndex(): number | undefined {
    return this.#steps.find((step) => step.lastIndex !== undefined && !step.durable)?.lastIndex;
  }

  push({ number, messagesAfterSync, entries }: Ready): Unsynced {
    const lastIndex = entries.at(-1)?.index;
    const step = { number, messages: messagesAfterSync, durable: false, lastIndex };
    this.#steps.push(step);
    return step;
  }

  /** Removes and returns the oldest one if it is durable. */
  takeDurable(): Unsynced | undefined {
    return this.#steps[0]?.durable === true ? this.#steps.shift() : undefined;
  }
}

/**
 * Whether a leader's heartbeats leave on time (etcd: pkg/contention, server/etcdserver/raft.go):
 * the time between two that are sent to the same member, whatever causes them. A late tick does no
 * harm where a round of reads has sent heartbeats meanwhile, and none where there is no follower.
 */
export class HeartbeatGaps {
  readonly #mostMs: number;
  /** When a heartbeat was sent last, by member. */
  readonly #sentMs = new Map<bigint, number>();

  /** @param intervalMs between two heartbeats; as in etcd, twice that is late */
  constructor(intervalMs: number) {
    this.#mostMs = 2 * intervalMs;
  }

  /** Notes a heartbeat that leaves. Returns by how many ms it is late; undefined if it is not. */
  sent(to: bigint, nowMs: number): number | undefined {
    const last = this.#sentMs.get(to);
    this.#sentMs.set(to, nowMs);
    if (last === undefined || nowMs - last <= this.#mostMs) return undefined;
    return nowMs - last - this.#mostMs;
  }

  /** Forgets all: another leader begins, or the members are others. */
  reset(): void {
    this.#sentMs.clear();
  }
}

const { ConfChangeRemoveNode } = raftpb.ConfChangeType;

/** Where the log of a start is not looked at: so many voters may become one within it. */
const MAX_VOTERS_AT_START = 3;

/**
 * Whether the removal of a member that leaves one voter is committed only in memory.
 *
 * A commit index alone is written lazily: a member that forgets it learns it again from a
 * quorum of the configuration that it knows. Where a removal leaves one voter, that needs the
 * removed member, which ends when it hears from the voter that the removal is committed
 * (membership/departure.ts). A voter that forgets the commit then has no quorum for good. So it
 * sends and applies nothing with that commit before the commit is on its disk.
 */
export class LastVoter {
  /** Indexes of removals that are not known to be applied, ascending. */
  #removals: number[] = [];
  /** The commit is durable up to here. */
  #savedTo: number;
  /** Up to this index the log is that of the start, whose entries are not known here. */
  readonly #startedTo: number;

  /** @param commit durable up to here @param lastIndex of the log */
  constructor(commit: number, lastIndex: number) {
    this.#savedTo = commit;
    this.#startedTo = lastIndex;
  }

  /** Entries are added to the log; the first may replace one, and all after it. */
  wrote(entries: readonly raftpb.Entry[]): void {
    const [first] = entries;
    if (first === undefined) return;
    if (this.#removals.length > 0)
      this.#removals = this.#removals.filter((index) => index < first.index);
    for (const entry of entries) if (isRemoval(entry)) this.#removals.push(entry.index);
  }

  /**
   * Whether the commit has to be durable before it is sent and applied.
   * @param commit the new commit index @param applied the last index that is applied
   * @param voters of the configuration as applied
   */
  mustSave(commit: number, applied: number, voters: number): boolean {
    if (commit <= this.#savedTo) return false;
    if (this.#savedTo < this.#startedTo && voters <= MAX_VOTERS_AT_START) return true;
    if (this.#removals.length === 0) return false;
    this.#removals = this.#removals.filter((index) => index > applied);
    const committed = this.#removals.filter((index) => index <= commit);
    return committed.some((index) => index > this.#savedTo) && voters - committed.length <= 1;
  }

  /** The commit is durable up to an index. */
  saved(commit: number): void {
    this.#savedTo = Math.max(this.#savedTo, commit);
  }
}

function isRemoval(entry: raftpb.Entry): boolean {
  if (!isConfChange(entry)) return false;
  try {
    const changes = confChangeOf(entry)?.changes ?? [];
    return changes.some(({ type }) => type === ConfChangeRemoveNode);
  } catch {
    // One that does not decode changes nothing.
    return false;
  }
}

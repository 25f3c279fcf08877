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
import type { Timer } from "@quorate/host";
import { raftpb } from "@quorate/proto";
import type { Raft, Ready } from "@quorate/raft";
import { LastVoter } from "../apply/last-voter.ts";
import { HeartbeatGaps } from "./heartbeat-gaps.ts";
import type { LoopHandlers, LoopParts } from "./loop-parts.ts";
import { handProposals } from "./proposal-batches.ts";
import { type Unsynced, UnsyncedReadys } from "./unsynced-readys.ts";

/** Readys handled before the event loop gets its turn back. */
const MAX_READYS_PER_TURN = 8;
/**
 * A single entry is synced by a blocking call if the last sync took no longer than this: with
 * nothing else to do meanwhile it saves the way to another thread and back, a third of what one
 * client's write takes.
 */
const MAX_BLOCKING_SYNC_MS = 1;

export class MemberLoop<R> {
  readonly #parts: LoopParts<R>;
  readonly #tickMs: number;
  #started: LoopHandlers | undefined;
  #tickTimer: Timer | undefined;
  readonly #heartbeats: HeartbeatGaps;
  #turnIsSet = false;
  /** Before `start` and after `stop` nothing happens. */
  #stopped = true;
  /** A snapshot is being installed, or a commit has to be durable before anybody hears of it. */
  #installing = false;
  /** When this turn began to apply; undefined: it has not. */
  #sliceStartMs: number | undefined;
  /** Waits for the end of the entry that is being applied. */
  #entryEnded: (() => void) | undefined;
  #appliedIndex: number;
  /** The last entry of the highest term that was handed on to be applied. */
  #newest = { index: 0, term: 0 };
  /**
   * A hard state whose only news is the commit index; it travels with the next append, because
   * no member depends on it being durable, but for #lastVoter.
   */
  #lazyHardState: raftpb.HardState | undefined;
  readonly #unsynced = new UnsyncedReadys();
  readonly #lastVoter: LastVoter;

  constructor(parts: LoopParts<R>, options: { tickMs: number; appliedIndex: number }) {
    this.#parts = parts;
    const { commitIndex, lastIndex } = parts.raft;
    this.#lastVoter = new LastVoter(commitIndex, lastIndex);
    this.#tickMs = options.tickMs;
    this.#heartbeats = new HeartbeatGaps(options.tickMs);
    this.#appliedIndex = options.appliedIndex;
  }

  get appliedIndex(): number {
    return this.#appliedIndex;
  }

  /** The rest of the member. @throws Error before the start */
  get #handlers(): LoopHandlers {
    if (this.#started === undefined) throw new Error("the loop has not been started");
    return this.#started;
  }

  start(handlers: LoopHandlers): void {
    this.#started = handlers;
    this.#stopped = false;
    this.#tickTimer = this.#parts.clock.every(this.#tickMs, () => this.#guard(() => this.#tick()));
    this.wake();
  }

  /** No more turns. What is under way on disk finishes without effect. */
  stop(): void {
    this.#stopped = true;
    this.#tickTimer?.cancel();
    this.#entryEnded?.();
  }

  /** Messages from a peer. */
  received(messages: readonly raftpb.Message[]): void {
    if (this.#stopped) return;
    this.#guard(() => {
      for (const message of messages) {
        const reason = this.#parts.raft.step(message);
        if (reason !== undefined) this.#handlers.refused(message, reason);
      }
    });
    this.wake();
  }

  /**
   * Writes the commit index that has waited for an append, for callers that are about to refer to
   * it in the log.
   */
  writeHardState(): void {
    const hardState = this.#lazyHardState;
    this.#lazyHardState = undefined;
    if (hardState !== undefined) this.#parts.wal.append(hardState, []);
  }

  /**
   * The last of the oldest entries that are not known to be on this member's disk; undefined if all
   * are.
   */
  get unsyncedIndex(): number | undefined {
    return this.#unsynced.oldestIndex;
  }

  /** Runs `change` on Raft (a transfer, a report) and sees to what follows from it. */
  withRaft<T>(change: (raft: Raft) => T): T {
    const result = change(this.#parts.raft);
    this.wake();
    return result;
  }

  /**
   * Runs `task` while nothing is written, sent or applied; Raft goes on hearing its peers. An entry
   * that is being applied is finished before. Rejects while a snapshot is being installed, or the
   * commit of a removal saved.
   */
  async standStill(task: () => Promise<void>): Promise<void> {
    const { applier } = this.#handlers;
    if (this.#entryEnded !== undefined)
      throw new Error("the member is about to stand still already");
    if (applier.isInEntry && !this.#installing && !this.#stopped) {
      applier.isHeld = true;
      await new Promise<void>((resolve) => {
        this.#entryEnded = resolve;
      });
      this.#entryEnded = undefined;
      applier.isHeld = false;
    }
    if (this.#installing || this.#stopped)
      throw new Error("the member is installing a snapshot, saving a commit, or ending");
    this.#installing = true;
    try {
      await task();
    } finally {
      this.#installing = false;
      this.wake();
    }
  }

  /** Sees to it that a turn follows. */
  wake(): void {
    if (this.#turnIsSet || this.#stopped) return;
    this.#turnIsSet = true;
    this.#parts.clock.endOfTurn(() => {
      this.#turnIsSet = false;
      if (!this.#stopped) this.#guard(() => this.#turn());
    });
  }

  #tick(): void {
    const { raft, proposals, reads } = this.#parts;
    raft.tick();
    proposals.expire();
    reads.expire((context) => this.#askReadIndex(context));
    this.wake();
  }

  #turn(): void {
    const { proposals, raft } = this.#parts;
    this.#sliceStartMs = undefined;
    if (handProposals(proposals, raft)) this.wake();
    this.#parts.reads.startRound((context) => this.#askReadIndex(context));
    for (let i = 0; this.#canProceed(); i++) {
      if (i === MAX_READYS_PER_TURN) {
        this.wake();
        return;
      }
      this.#process(this.#parts.raft.ready());
    }
    if (this.#installing || this.#stopped || !this.#handlers.applier.canRun) return;
    this.#apply();
    if (this.#canProceed() || this.#handlers.applier.canRun) this.wake();
  }

  /**
   * While a snapshot is being installed, Raft goes on hearing its peers, but nothing new is written
   * or applied.
   */
  #canProceed(): boolean {
    return !this.#installing && !this.#stopped && this.#parts.raft.hasReady();
  }

  #askReadIndex(context: Uint8Array): boolean {
    return this.#parts.raft.readIndex(context) === "accepted";
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
    if (ready.committed.length > 0) {
      const { index, term } = ready.committed.at(-1)!;
      if (term > this.#newest.term) this.#newest = { index, term };
      this.#handlers.applier.push(ready.committed);
      this.#apply();
    }
    for (const read of ready.readStates) this.#parts.reads.answered(read.context, read.index);
    this.#parts.reads.release(this.#appliedIndex);
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
    const { wal, faults } = this.#parts;
    this.#installing = true;
    this.#lazyHardState = undefined;
    faults("before-wal-append");
    wal.append(hardState, ready.entries);
    faults("after-wal-append");
    wal.sync().then(
      () =>
        this.#guard(() => {
          if (this.#stopped) return;
          this.#installing = false;
          this.#lastVoter.saved(hardState.commit);
          this.#send(ready.messages);
          this.#synced(this.#unsynced.push(ready));
          this.#handOn(ready);
          this.wake();
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
    const { wal, faults } = this.#parts;
    const hardState = ready.hardState ?? this.#lazyHardState;
    const step = this.#unsynced.push(ready);
    if (ready.mustSync || ready.entries.length > 0) {
      this.#lazyHardState = undefined;
      faults("before-wal-append");
      wal.append(hardState, ready.entries);
      faults("after-wal-append");
      if (this.#isAlone(ready)) return step;
      wal.sync().then(
        () =>
          this.#guard(() => {
            this.#synced(step);
            this.wake();
          }),
        (error: unknown) => this.#fail(error),
      );
      return undefined;
    }
    this.#lazyHardState = hardState;
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
    if (this.#stopped) return;
    step.durable = true;
    for (;;) {
      const first = this.#unsynced.takeDurable();
      if (first === undefined) return;
      this.#parts.faults("after-wal-sync");
      this.#send(first.messages);
      this.#parts.raft.persisted(first.number);
    }
  }

  #send(messages: readonly raftpb.Message[]): void {
    if (messages.length === 0) return;
    this.#parts.faults("before-send");
    this.#noteHeartbeats(messages);
    let toPeers = messages;
    if (messages.some((message) => message.type === raftpb.MessageType.MsgSnap)) {
      toPeers = messages.filter((message) => message.type !== raftpb.MessageType.MsgSnap);
      for (const message of messages) {
        if (message.type === raftpb.MessageType.MsgSnap) this.#handlers.sendSnapshot(message);
      }
    }
    this.#parts.transport.send(toPeers);
  }

  #noteHeartbeats(messages: readonly raftpb.Message[]): void {
    const { clock, logger, metrics } = this.#parts;
    for (const { type, to } of messages) {
      if (type !== raftpb.MessageType.MsgHeartbeat) continue;
      const lateMs = this.#heartbeats.sent(to, clock.monotonicMs());
      if (lateMs === undefined) continue;
      metrics.heartbeatSendFailures.add();
      logger.warn(
        "leader failed to send out heartbeat on time; took too long, leader is overloaded likely from slow disk",
        {
          to: to.toString(16),
          "heartbeat-interval": `${this.#tickMs}ms`,
          "expected-duration": `${2 * this.#tickMs}ms`,
          "exceeded-duration": `${Math.round(lateMs)}ms`,
        },
      );
    }
  }

  /** Applies what is queued, until this turn has used up its time for that. */
  #apply(): void {
    const { raft, clock, faults, reads, proposals } = this.#parts;
    const { applier } = this.#handlers;
    if (this.#sliceStartMs === undefined) this.#sliceStartMs = clock.monotonicMs();
    else if (applier.isSliceOver(this.#sliceStartMs)) return;
    faults("before-apply");
    const index = applier.run(this.#sliceStartMs);
    if (index !== undefined) {
      this.#appliedIndex = index;
      raft.applied(index);
      reads.release(index);
      if (index >= this.#newest.index) proposals.succeeded(this.#newest.term);
    }
    faults("after-apply");
    if (!applier.isInEntry) this.#entryEnded?.();
  }

  #install(ready: Ready, snapshot: raftpb.Snapshot): void {
    const { wal, raft, reads, proposals } = this.#parts;
    this.#installing = true;
    // The snapshot holds what these would have done.
    this.#handlers.applier.clear();
    proposals.abandons();
    this.#entryEnded?.();
    this.#send(ready.messages);
    for (const read of ready.readStates) reads.answered(read.context, read.index);
    const hardState = ready.hardState ?? this.#lazyHardState;
    // The log knows of the snapshot, and that it is committed, before the store changes: a crash in
    // between finds both or neither.
    const install = async () => {
      await this.#handlers.saveSnapshot(snapshot);
      wal.append(hardState, ready.entries);
      this.#lazyHardState = undefined;
      await wal.sync();
      this.#lastVoter.wrote(ready.entries);
      this.#lastVoter.saved(hardState?.commit ?? 0);
      await this.#handlers.install(snapshot);
    };
    install().then(
      () =>
        this.#guard(() => {
          if (this.#stopped) return;
          this.#installing = false;
          this.#appliedIndex = snapshot.metadata.index;
          raft.applied(this.#appliedIndex);
          proposals.succeeded(snapshot.metadata.term);
          this.#synced(this.#unsynced.push(ready));
          reads.release(this.#appliedIndex);
          this.wake();
        }),
      (error: unknown) => this.#fail(error),
    );
  }

  #noteLeader(id: bigint): void {
    const { leader, reads } = this.#parts;
    if (id === leader.leader) return;
    leader.leader = id;
    this.#heartbeats.reset();
    this.#handlers.leaderChanged();
    if (id !== 0n) reads.leaderChanged((context) => this.#askReadIndex(context));
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
    if (this.#stopped) return;
    this.stop();
    this.#parts.fatal(error);
  }
}

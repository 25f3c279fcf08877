/**
 * Linearizable reads without the log (Raft thesis, section 6.4).
 *
 *     read --> held until the leader's first commit --> its lease holds ----------> confirmed
 *                                                   \-> waits for a round of heartbeats --^
 *
 * Reads that arrive in one turn share a round: one heartbeat to every voter, with the round's
 * number as its context. A quorum that responds to this or a later round had seen no newer leader
 * by then, so the commit index recorded when the read arrived was the cluster's. The context is the
 * round's number and the leader's tick when it was sent, 8 bytes each; leases are computed from the
 * ticks.
 */
import { alloc, raftpb, readU64BE, writeU64BE } from "@quorate/proto";
import type { Replica } from "./replica.ts";
import type { Progress, Tracker } from "./tracker.ts";

/** A read that waits at a leader. */
export interface PendingRead {
  /** The member that sent it; 0n for this machine's own driver. */
  readonly from: bigint;
  readonly context: Uint8Array;
}

interface WaitingRead extends PendingRead {
  readonly index: number;
  readonly round: number;
}

/** A confirmed read, with the index up to which the reader must have applied. */
export interface ConfirmedRead extends PendingRead {
  readonly index: number;
}

const CONTEXT_BYTES = 16;

/** The queue of a term's reads, and the number of its rounds. */
export class ReadOnly {
  readonly #maxPendingReads: number;
  /**
   * Held until the leader has committed in its own term: before, it does not know the commit index.
   */
  #held: PendingRead[] = [];
  /** By round, oldest first. */
  #waiting: WaitingRead[] = [];
  #round = 0;

  constructor(maxPendingReads: number) {
    this.#maxPendingReads = maxPendingReads;
  }

  /** The last round that was started, 0 before the first of a term. */
  get round(): number {
    return this.#round;
  }

  get full(): boolean {
    return this.#held.length + this.#waiting.length >= this.#maxPendingReads;
  }

  /** Keeps a read until the first commit of the term. */
  hold(read: PendingRead): void {
    this.#held.push(read);
  }

  /** Returns the held reads and releases them. */
  takeHeld(): PendingRead[] {
    const held = this.#held;
    if (held.length > 0) this.#held = [];
    return held;
  }

  /** Adds a read to the next round. @param index the current commit index */
  add(read: PendingRead, index: number): void {
    this.#waiting.push({ from: read.from, context: read.context, index, round: this.#round + 1 });
  }

  /** True if a read waits for a round that was not started. */
  get roundDue(): boolean {
    const last = this.#waiting.at(-1);
    return last !== undefined && last.round > this.#round;
  }

  /** True if a read waits for any round. */
  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  startRound(): void {
    this.#round++;
  }

  /** Takes out the reads whose round is confirmed. */
  takeConfirmed(round: number): ConfirmedRead[] {
    let count = 0;
    for (const read of this.#waiting) {
      if (read.round > round) break;
      count++;
    }
    return count === 0 ? [] : this.#waiting.splice(0, count);
  }
}

/** The context of a heartbeat in the current round. */
export function encodeRound(round: number, tick: number): Uint8Array {
  const context = alloc(CONTEXT_BYTES);
  writeU64BE(context, round, 0);
  writeU64BE(context, tick, 8);
  return context;
}

/** True if the uint64 at offset is below 2^53. */
function isSafe(context: Uint8Array, offset: number): boolean {
  return context[offset] === 0 && (context[offset + 1] ?? 0) < 0x20;
}

/** The round and tick in a heartbeat response; undefined if it has none. */
export function decodeRound(context: Uint8Array): { round: number; tick: number } | undefined {
  if (context.length !== CONTEXT_BYTES || !isSafe(context, 0) || !isSafe(context, 8))
    return undefined;
  return { round: readU64BE(context, 0), tick: readU64BE(context, 8) };
}

/** The reads of a leader, and its lease. A read that is dropped with them is asked for again. */
export class Reads {
  readonly #replica: Replica;
  readonly #tracker: Tracker;
  readonly #queue: ReadOnly;
  /**
   * A transfer of leadership was started in this term: its target may campaign at any time, so the
   * lease is no proof of leadership.
   */
  leaseWaived = false;

  /** @param tracker the members of the leader */
  constructor(replica: Replica, tracker: Tracker) {
    this.#replica = replica;
    this.#tracker = tracker;
    this.#queue = new ReadOnly(replica.config.maxPendingReads);
  }

  /** Accepts a read; false if too many are waiting. */
  accept(read: PendingRead): boolean {
    if (this.#queue.full) return false;
    if (!this.#replica.committedInTerm) this.#queue.hold(read);
    else this.#begin(read);
    return true;
  }

  /**
   * After the first commit of the term the leader knows the cluster's commit index: releases the
   * reads that waited for it.
   */
  release(): void {
    if (!this.#replica.committedInTerm) return;
    for (const read of this.#queue.takeHeld()) this.#begin(read);
  }

  #begin(read: PendingRead): void {
    const index = this.#replica.log.committed;
    if (this.#leased && this.#leaseHolds()) this.#respond(read, index);
    else this.#queue.add(read, index);
  }

  get #leased(): boolean {
    return this.#replica.config.readOnly === "lease";
  }

  /**
   * True while no other machine can have been elected, provided all clocks tick alike: a quorum has
   * responded to heartbeats sent at quorumTick or later, and each of those members grants no vote
   * for electionTicks of its own ticks. One tick is deducted for rounding on either side, and a
   * tenth for clocks that differ.
   */
  #leaseHolds(): boolean {
    if (this.leaseWaived) return false;
    const { id, ticks, config } = this.#replica;
    const self = this.#tracker.get(id);
    if (self !== undefined) self.ackedTick = ticks;
    const { electionTicks } = config;
    const leaseTicks = electionTicks - 2 - Math.floor(electionTicks / 10);
    const since = this.#tracker.quorumTick();
    return since >= 0 && ticks - since <= leaseTicks;
  }

  /** True if a read waits for a round that was not started. */
  get roundDue(): boolean {
    return this.#queue.roundDue;
  }

  /**
   * The context of a broadcast of heartbeats, undefined if they confirm nothing. Starts a round if
   * one is due, and for a lease in any case.
   */
  heartbeatContext(): Uint8Array | undefined {
    const queue = this.#queue;
    if (queue.roundDue || this.#leased) queue.startRound();
    const self = this.#tracker.get(this.#replica.id);
    if (self !== undefined) self.ackedRound = queue.round;
    return this.#leased || queue.isWaiting
      ? encodeRound(queue.round, this.#replica.ticks)
      : undefined;
  }

  /** A member has responded to a heartbeat with this context. */
  acknowledge(progress: Progress, context: Uint8Array): void {
    const confirmed = decodeRound(context);
    if (
      confirmed === undefined ||
      confirmed.round > this.#queue.round ||
      confirmed.tick > this.#replica.ticks
    )
      return;
    progress.ackedRound = Math.max(progress.ackedRound, confirmed.round);
    progress.ackedTick = Math.max(progress.ackedTick, confirmed.tick);
    this.advance();
  }

  /** Completes the reads whose round a quorum has confirmed. */
  advance(): void {
    if (!this.#queue.isWaiting) return;
    for (const read of this.#queue.takeConfirmed(this.#tracker.quorumRound()))
      this.#respond(read, read.index);
  }

  #respond(read: PendingRead, index: number): void {
    const replica = this.#replica;
    if (read.from === 0n || read.from === replica.id) {
      replica.readStates.push({ context: read.context, index });
      return;
    }
    const response = replica.message(raftpb.MessageType.MsgReadIndexResp, read.from);
    response.index = index;
    response.entries = [raftpb.Entry.create({ data: read.context })];
    replica.send(response);
  }
}

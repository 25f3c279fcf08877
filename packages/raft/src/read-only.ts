/**
 * Linearizable reads without the log (Raft thesis, section 6.4).
 *
 * Reads that arrive in one turn share a round: one heartbeat to every voter, with the round's
 * number as its context. A quorum that responds to this or a later round had seen no newer leader
 * by then, so the commit index recorded when the read arrived was the cluster's. The context is the
 * round's number and the leader's tick when it was sent, 8 bytes each; leases are computed from the
 * ticks.
 */
import { alloc, readU64BE, writeU64BE } from "@quorate/proto";

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

  /** Drops all reads and rounds, as at the start of a term: the callers retry. */
  reset(): void {
    this.#held = [];
    this.#waiting = [];
    this.#round = 0;
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
    return this.#waiting.length > 0 && this.#waiting[this.#waiting.length - 1].round > this.#round;
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
    while (count < this.#waiting.length && this.#waiting[count].round <= round) count++;
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
  return context[offset] === 0 && context[offset + 1] < 0x20;
}

/** The round and tick in a heartbeat response; undefined if it has none. */
export function decodeRound(context: Uint8Array): { round: number; tick: number } | undefined {
  if (context.length !== CONTEXT_BYTES || !isSafe(context, 0) || !isSafe(context, 8))
    return undefined;
  return { round: readU64BE(context, 0), tick: readU64BE(context, 8) };
}

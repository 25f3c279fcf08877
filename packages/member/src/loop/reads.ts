/**
 * Linearizable reads (Raft dissertation, section 6.4). All reads that wait when a turn ends share
 * one ReadIndex round; a read is let go once a quorum has confirmed the leader after the read
 * arrived and this member has applied everything up to that index.
 */
import { BriefMap, type Clock, type Random } from "@quorate/host";
import { errorOf } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import type { Deliveries, Reader } from "./deliveries.ts";
import type { LoopTurns } from "./turns.ts";

/** Round numbers have as many bits less than 64. */
const ROUND_SHIFT = 16n;

/**
 * Where a run's round numbers start: at random in a wide space, so that rounds of an earlier run do
 * not answer those of this one.
 */
export function firstRound(random: Random): number {
  return Number(random.fork("read-rounds").uint64() >> ROUND_SHIFT);
}

/** A round's number in eight bytes, big-endian. Without a view, which costs a buffer. */
function contextOf(number: number): Uint8Array {
  const context = new Uint8Array(8);
  for (let i = 7, left = number; left > 0; i--, left = Math.floor(left / 256))
    context[i] = left % 256;
  return context;
}

function numberOf(context: Uint8Array): number {
  let number = 0;
  for (const byte of context) number = number * 256 + byte;
  return number;
}

/** Reads that arrived in one turn: they have one deadline. */
interface Waiting {
  readonly deadlineMs: number;
  readonly readers: Reader[];
  /** What those share that wait with a promise. */
  shared: PromiseWithResolvers<void> | undefined;
  count: number;
}

/** One ReadIndex round and the reads that share it. */
interface Round {
  readonly context: Uint8Array;
  readonly waiting: Waiting;
  /** When the request was last given to Raft. */
  askedMs: number;
  /** The index to wait for, once a quorum has answered. */
  index: number | undefined;
}

export interface ReadLimits {
  readonly maxWaiting: number;
  readonly timeoutMs: number;
  /**
   * After this long without an answer a round is retried: messages may be lost (etcd:
   * readIndexRetryTime, 500 ms).
   */
  readonly retryMs: number;
}

/** Raft, as far as a round needs it: it may refuse one, which is retried later. */
export type ReadIndexer = Pick<Raft, "readIndex">;

export class Reads {
  readonly #limits: ReadLimits;
  readonly #clock: Clock;
  readonly #turns: Pick<LoopTurns, "wake">;
  readonly #deliveries: Deliveries;
  #arrived: Waiting | undefined;
  /** Rounds in the order they were started; their indexes grow in the same order. */
  readonly #rounds = new BriefMap<number, Round>();
  #nextRound: number;
  #waitingCount = 0;
  /** Why nothing is taken any more. */
  #closed: Error | undefined;
  /** Rounds that were retried; reads that failed. */
  slowRounds = 0;
  failed = 0;

  /**
   * @param firstRound where this run's round numbers start; two runs of a member must not share
   * numbers.
   */
  constructor(
    limits: ReadLimits,
    deps: {
      clock: Clock;
      turns: Pick<LoopTurns, "wake">;
      deliveries: Deliveries;
      firstRound: number;
    },
  ) {
    this.#limits = limits;
    this.#clock = deps.clock;
    this.#turns = deps.turns;
    this.#deliveries = deps.deliveries;
    this.#nextRound = deps.firstRound;
  }

  /** Resolves when a read of the local store is linearizable; rejects with an EtcdError. */
  wait(): Promise<void> {
    const refusal = this.#refusal();
    if (refusal !== undefined) return Promise.reject(refusal);
    const waiting = this.#join();
    waiting.shared ??= Promise.withResolvers();
    return waiting.shared.promise;
  }

  /** As `wait`, for a reader that is told. */
  add(reader: Reader): void {
    const refusal = this.#refusal();
    if (refusal === undefined) this.#join().readers.push(reader);
    else this.#deliveries.refused(reader, refusal);
  }

  #refusal(): Error | undefined {
    if (this.#closed !== undefined) return this.#closed;
    return this.#waitingCount < this.#limits.maxWaiting ? undefined : errorOf("TooManyRequests");
  }

  #join(): Waiting {
    this.#waitingCount++;
    const waiting = (this.#arrived ??= this.#begin());
    waiting.count++;
    return waiting;
  }

  #begin(): Waiting {
    this.#turns.wake();
    const deadlineMs = this.#clock.monotonicMs() + this.#limits.timeoutMs;
    return { deadlineMs, readers: [], shared: undefined, count: 0 };
  }

  get waitingCount(): number {
    return this.#waitingCount;
  }

  /**
   * Starts one round for all reads that arrived since the last. Where Raft does not take
   * it, it is retried later.
   */
  startRound(raft: ReadIndexer): void {
    const waiting = this.#arrived;
    if (waiting === undefined) return;
    const number = this.#nextRound++;
    const context = contextOf(number);
    const round: Round = {
      context,
      waiting,
      askedMs: this.#clock.monotonicMs(),
      index: undefined,
    };
    this.#arrived = undefined;
    this.#rounds.set(number, round);
    raft.readIndex(context);
  }

  /** A quorum has answered the round of this context. */
  answered(context: Uint8Array, index: number): void {
    if (context.length !== 8) return;
    const round = this.#rounds.get(numberOf(context));
    if (round !== undefined) round.index ??= index;
  }

  /** Lets go every round whose index has been applied. */
  release(appliedIndex: number): void {
    for (const [number, round] of this.#rounds) {
      if (round.index === undefined || round.index > appliedIndex) continue;
      this.#rounds.delete(number);
      this.#waitingCount -= round.waiting.count;
      const { readers, shared } = round.waiting;
      if (readers.length > 0) this.#deliveries.granted(readers);
      shared?.resolve();
    }
  }

  /** Asks late rounds again and ends reads whose time is up. Call it about every tick. */
  expire(raft: ReadIndexer): void {
    const now = this.#clock.monotonicMs();
    for (const [number, round] of this.#rounds) {
      if (round.waiting.deadlineMs <= now) {
        this.#rounds.delete(number);
        this.#fail(round.waiting, errorOf("Timeout"));
        continue;
      }
      if (round.index === undefined && now - round.askedMs >= this.#limits.retryMs) {
        this.slowRounds++;
        round.askedMs = now;
        raft.readIndex(round.context);
      }
    }
  }

  /**
   * Asks the new leader what the old one has not answered. An answer of either is good: a round is
   * younger than all reads that share it. (etcd ends these reads with ErrLeaderChanged and leaves
   * the repetition to the client.)
   */
  leaderChanged(raft: ReadIndexer): void {
    for (const round of this.#rounds.values()) {
      if (round.index !== undefined) continue;
      round.askedMs = this.#clock.monotonicMs();
      raft.readIndex(round.context);
    }
  }

  /** Ends all reads with `error`, and those that come later, when the member stops. */
  failAll(error: Error): void {
    this.#closed = error;
    const arrived = this.#arrived;
    this.#arrived = undefined;
    if (arrived !== undefined) this.#fail(arrived, error);
    for (const round of this.#rounds.values()) this.#fail(round.waiting, error);
    this.#rounds.clear();
  }

  #fail({ count, readers, shared }: Waiting, error: Error): void {
    this.#waitingCount -= count;
    this.failed += count;
    shared?.reject(error);
    for (const reader of readers) this.#deliveries.refused(reader, error);
  }
}

/**
 * Requests on their way through Raft: each waits under its id until the entry that carries it has
 * been applied here, or its time is up. Once that entry is being applied, its result is certain and
 * bounded by the work that an entry may have: then it is waited for.
 *
 * Bounds: `maxWaiting` requests and `maxQueuedBytes` of payload that Raft has not taken yet (no
 * leader). Beyond, TooManyRequests.
 */
import type { Clock } from "@quorate/host";
import { errorOf } from "@quorate/proto";

/** One request that waits for its result. */
interface Waiter<R> {
  readonly resolve: (result: R) => void;
  readonly reject: (error: Error) => void;
  readonly startedMs: number;
  readonly deadlineMs: number;
}

export interface ProposalLimits {
  readonly maxWaiting: number;
  readonly maxQueuedBytes: number;
  readonly timeoutMs: number;
}

/**
 * Why a waiter's time ran out, from the component that knows the cluster's state: maps the time
 * when the wait began to the error that it ends with.
 */
export type TimeoutReason = (startedMs: number) => Error;

export class Proposals<R> {
  readonly #clock: Clock;
  readonly #limits: ProposalLimits;
  readonly #timeoutReason: TimeoutReason;
  /** In the order they began, which is the order of their deadlines: all have the same time. */
  readonly #waiting = new Map<bigint, Waiter<R>>();
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  /** The request whose entry is being applied, where a caller waits for it; 0n for none. */
  #applying = 0n;
  /** Why nothing is taken any more. */
  #closed: Error | undefined;
  /** Called when the queue gets its first payload. */
  readonly #wake: () => void;
  /** How many ended by time-out. */
  failed = 0;

  constructor(
    limits: ProposalLimits,
    deps: { clock: Clock; wake: () => void; timeoutReason: TimeoutReason },
  ) {
    this.#limits = limits;
    this.#clock = deps.clock;
    this.#wake = deps.wake;
    this.#timeoutReason = deps.timeoutReason;
  }

  get waitingCount(): number {
    return this.#waiting.size;
  }

  get queuedCount(): number {
    return this.#queue.length;
  }

  /**
   * Queues `payload` for the next turn. Resolves with the result of the entry whose request id is
   * `id`; rejects with an EtcdError.
   */
  propose(id: bigint, payload: Uint8Array): Promise<R> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    if (
      this.#waiting.size >= this.#limits.maxWaiting ||
      this.#queuedBytes + payload.length > this.#limits.maxQueuedBytes
    ) {
      return Promise.reject(errorOf("TooManyRequests"));
    }
    this.#queue.push(payload);
    this.#queuedBytes += payload.length;
    if (this.#queue.length === 1) this.#wake();
    return this.wait(id);
  }

  /**
   * Waits for the result of a request that Raft has already; its proposer bounds how many there
   * are. Settles as `propose` does.
   */
  wait(id: bigint): Promise<R> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    const startedMs = this.#clock.monotonicMs();
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, {
        resolve,
        reject,
        startedMs,
        deadlineMs: startedMs + this.#limits.timeoutMs,
      });
    });
  }

  /** Takes all queued payloads, in order; `putBack` returns what Raft did not take. */
  takeQueue(): Uint8Array[] {
    const taken = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    return taken;
  }

  /** Puts payloads back in front of the queue, to be tried again when Raft's state has changed. */
  putBack(payloads: readonly Uint8Array[]): void {
    this.#queue = payloads.concat(this.#queue);
    for (const payload of payloads) this.#queuedBytes += payload.length;
  }

  /**
   * Hands the result of a request to the caller that waits for it here; there is none on the
   * members that did not propose it. Returns when the wait began, or undefined where no caller
   * waited.
   */
  settle(id: bigint, result: R): number | undefined {
    const waiter = this.#waiting.get(id);
    if (waiter === undefined) return undefined;
    this.#waiting.delete(id);
    this.#applying = 0n;
    waiter.resolve(result);
    return waiter.startedMs;
  }

  /**
   * The entry with the request `id` begins to be applied, after the one before. Returns whether a
   * caller on this member waits for it.
   */
  applies(id: bigint): boolean {
    const isAwaited = this.#waiting.has(id);
    this.#applying = isAwaited ? id : 0n;
    return isAwaited;
  }

  /** The entry that is being applied is given up: its result will not come. */
  abandons(): void {
    this.#applying = 0n;
  }

  /** Ends the waiters whose time is up. Call it about every tick. */
  expire(): void {
    const now = this.#clock.monotonicMs();
    for (const [id, waiter] of this.#waiting) {
      if (waiter.deadlineMs > now) return;
      if (id === this.#applying) continue;
      this.#waiting.delete(id);
      this.failed++;
      waiter.reject(this.#timeoutReason(waiter.startedMs));
    }
    // No caller waits: payloads that found no leader in all that time must not be proposed out of
    // the blue later.
    if (this.#waiting.size === 0) this.takeQueue();
  }

  /** Ends all waiters with `error`, and those that come later, when the member stops. */
  failAll(error: Error): void {
    this.#closed = error;
    const waiters = [...this.#waiting.values()];
    this.#waiting.clear();
    this.takeQueue();
    for (const waiter of waiters) waiter.reject(error);
  }
}

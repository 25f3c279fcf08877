/**
 * Requests on their way through Raft: each waits under its id until the entry that carries it has
 * been applied here, or its time is up. Once that entry is being applied, its result is certain and
 * bounded by the work that an entry may have: then it is waited for.
 *
 * A leader that dies leaves requests that nobody will commit. Once an entry of a later term is
 * applied here, all entries of the earlier terms that ever will be are applied: the log's terms
 * only grow. A request that was handed to Raft in an earlier term and has no result then is in no
 * log that counts, or still on a way round, such as through a former leader that passes it on. So
 * it is waited for an election timeout more, and ends with an error that leaves its outcome open.
 * It is not proposed again: then it could be applied twice.
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
  /** The term in which Raft took it; undefined: it has not. */
  term: number | undefined;
}

/** From `dueMs` on, no request that was handed to Raft before `term` is waited for. */
interface Succession {
  readonly term: number;
  readonly dueMs: number;
}

/** Successions that wait for their time; a request of one more waits for its own. */
export const MAX_SUCCESSIONS = 16;

export interface ProposalLimits {
  readonly maxWaiting: number;
  readonly maxQueuedBytes: number;
  readonly timeoutMs: number;
  /**
   * How long a request of an earlier leader is waited for once its successor's entries are applied.
   */
  readonly successionMs: number;
}

/**
 * Why a waiter's time ran out, from the component that knows the cluster's state: maps the time
 * when the wait began, and whether its leader has been succeeded, to the error that it ends with.
 */
export type TimeoutReason = (startedMs: number, isSucceeded: boolean) => Error;

export class Proposals<R> {
  readonly #clock: Clock;
  readonly #limits: ProposalLimits;
  readonly #timeoutReason: TimeoutReason;
  /** In the order they began, which is the order of their deadlines: all have the same time. */
  readonly #waiting = new Map<bigint, Waiter<R>>();
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  /** The requests of the queue, and those that `takeQueue` took last. */
  #queuedIds: bigint[] = [];
  #takenIds: bigint[] = [];
  readonly #successions: Succession[] = [];
  /** The highest term of an applied entry. */
  #appliedTerm = 0;
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
    this.#queuedIds.push(id);
    this.#queuedBytes += payload.length;
    if (this.#queue.length === 1) this.#wake();
    return this.wait(id);
  }

  /**
   * Waits for the result of a request that Raft has already; its proposer bounds how many there
   * are. Settles as `propose` does.
   * @param term in which Raft took it, if it is to end when that term's leader is succeeded
   */
  wait(id: bigint, term?: number): Promise<R> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    const startedMs = this.#clock.monotonicMs();
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, {
        resolve,
        reject,
        startedMs,
        deadlineMs: startedMs + this.#limits.timeoutMs,
        term,
      });
    });
  }

  /**
   * Takes all queued payloads, in order; `putBack` returns what Raft did not take.
   * @param term Raft's present one
   */
  takeQueue(term: number): Uint8Array[] {
    const taken = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#takenIds = this.#queuedIds;
    this.#queuedIds = [];
    this.#handedIn(term, this.#takenIds);
    return taken;
  }

  /**
   * Puts the last payloads of those taken back in front of the queue, to be tried again when Raft's
   * state has changed.
   */
  putBack(payloads: readonly Uint8Array[]): void {
    this.#queue = payloads.concat(this.#queue);
    for (const payload of payloads) this.#queuedBytes += payload.length;
    const ids = this.#takenIds.slice(this.#takenIds.length - payloads.length);
    this.#handedIn(undefined, ids);
    this.#queuedIds = ids.concat(this.#queuedIds);
  }

  #handedIn(term: number | undefined, ids: readonly bigint[]): void {
    for (const id of ids) {
      const waiter = this.#waiting.get(id);
      if (waiter !== undefined) waiter.term = term;
    }
  }

  /** An entry of `term` has been applied: the results of all entries of earlier terms are known. */
  succeeded(term: number): void {
    if (term <= this.#appliedTerm) return;
    this.#appliedTerm = term;
    if (this.#waiting.size === 0 || this.#successions.length === MAX_SUCCESSIONS) return;
    const dueMs = this.#clock.monotonicMs() + this.#limits.successionMs;
    this.#successions.push({ term, dueMs });
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
    while (this.#successions.length > 0 && this.#successions[0].dueMs <= now)
      this.#endBefore(this.#successions.shift()!.term);
    for (const [id, waiter] of this.#waiting) {
      if (waiter.deadlineMs > now) return;
      if (id === this.#applying) continue;
      this.#end(id, waiter, false);
    }
    // No caller waits: payloads that found no leader in all that time must not be proposed out of
    // the blue later.
    if (this.#waiting.size === 0) this.#clearQueue();
  }

  /** Ends the waiters whose requests were handed to Raft before `term`. */
  #endBefore(term: number): void {
    for (const [id, waiter] of this.#waiting) {
      if (waiter.term === undefined || waiter.term >= term || id === this.#applying) continue;
      this.#end(id, waiter, true);
    }
  }

  #end(id: bigint, waiter: Waiter<R>, isSucceeded: boolean): void {
    this.#waiting.delete(id);
    this.failed++;
    waiter.reject(this.#timeoutReason(waiter.startedMs, isSucceeded));
  }

  #clearQueue(): void {
    this.#queue = [];
    this.#queuedIds = [];
    this.#queuedBytes = 0;
  }

  /** Ends all waiters with `error`, and those that come later, when the member stops. */
  failAll(error: Error): void {
    this.#closed = error;
    const waiters = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#clearQueue();
    for (const waiter of waiters) waiter.reject(error);
  }
}

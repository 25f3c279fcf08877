/**
 * Compressed messages (grpc-encoding): the queue of requests that are decompressed.
 * packages/rpc/node provides the algorithm; which encodings there are is in protocol.ts.
 */

import type { Clock } from "@quorate/host";
import type { UnaryResponse } from "../service.ts";

/** The gzip of the platform. */
export interface Compressor {
  /**
   * Decompresses the message at once, unless the result has more than `mostBytes`: then returns
   * undefined, after decompressing no more than that. Throws StatusError if the result has more
   * than `maxBytes`, or if the message is not gzip.
   */
  decompressNow(message: Uint8Array, maxBytes: number, mostBytes: number): Uint8Array | undefined;
  /**
   * Decompresses the message on another thread. Never produces more than `maxBytes`; rejects with
   * the same errors.
   */
  decompressLater(message: Uint8Array, maxBytes: number): Promise<Uint8Array>;
  /** Compresses the message at once; for up to MAX_COMPRESSED_NOW_BYTES. */
  compressNow(message: UnaryResponse): Uint8Array;
  /** Compresses the message on another thread. */
  compressLater(message: UnaryResponse): Promise<Uint8Array>;
}

/** Larger messages take too long to compress on the event loop. */
export const MAX_COMPRESSED_NOW_BYTES = 128 * 1024;

/** Decompressed at once up to this size, compressed and not. */
const MAX_NOW_BYTES = 16 * 1024;
/**
 * Maximum number of messages being decompressed on other threads, over all connections; one for
 * each connection.
 */
export const MAX_INFLATING = 2;
/**
 * A connection's allowance for decompression on other threads: a burst, and then a rate per second.
 */
export const INFLATE_BURST_BYTES = 16 * 1024 * 1024;
export const INFLATE_BYTES_PER_SECOND = 64 * 1024 * 1024;

interface Job {
  readonly message: Uint8Array;
  readonly maxBytes: number;
  readonly isWanted: () => boolean;
  readonly done: (plain: Uint8Array | undefined, error: unknown) => void;
}

/** The waiting messages of one connection. */
interface InflateQueue {
  readonly jobs: Job[];
  /** The time until which its rate is used up. */
  paidUntilMs: number;
  /** In the queue of connections, or being processed. */
  isQueued: boolean;
}

/**
 * Decompresses requests. Two kilobytes of gzip can become two megabytes, so messages that are large
 * when decompressed go to another thread through a queue per connection, and connections take
 * turns:
 *
 *   small, or still small when decompressed -> at once
 *   else -> queue of the connection -> (its turn, and its allowance of bytes a second) -> one of
 *           two threads -> the call continues
 *
 * The threads are those that sync the log, of which there are few, so only two are used at a time
 * for all connections.
 */
export class Inflater {
  readonly #compressor: Compressor;
  readonly #clock: Clock;
  readonly #byConnection = new WeakMap<object, InflateQueue>();
  #queues: InflateQueue[] = [];
  #running = 0;
  /** The time until which connections wait for their allowance. */
  #waitsUntilMs = Number.POSITIVE_INFINITY;
  /**
   * Messages that were decompressed on other threads, and times that a connection waited for its
   * allowance.
   */
  inflated = 0;
  throttled = 0;

  constructor(compressor: Compressor, clock: Clock) {
    this.#compressor = compressor;
    this.#clock = clock;
  }

  /**
   * Decompresses the message at once if that is little work; returns undefined if it must be
   * queued. Throws StatusError as Compressor does.
   */
  now(message: Uint8Array, maxBytes: number): Uint8Array | undefined {
    return message.length > MAX_NOW_BYTES
      ? undefined
      : this.#compressor.decompressNow(message, maxBytes, MAX_NOW_BYTES);
  }

  /**
   * Queues a message for decompression. Those of one connection start in order. @param isWanted
   * false once the call has ended: the message is then dropped. @param done called once, unless the
   * message was dropped
   */
  later(
    connection: object,
    message: Uint8Array,
    maxBytes: number,
    isWanted: Job["isWanted"],
    done: Job["done"],
  ): void {
    let queue = this.#byConnection.get(connection);
    if (queue === undefined) {
      queue = { jobs: [], paidUntilMs: 0, isQueued: false };
      this.#byConnection.set(connection, queue);
    }
    queue.jobs.push({ message, maxBytes, isWanted, done });
    if (!queue.isQueued) {
      queue.isQueued = true;
      this.#queues.push(queue);
    }
    this.#run();
  }

  #run(): void {
    const nowMs = this.#clock.monotonicMs();
    let earliestMs = Number.POSITIVE_INFINITY;
    const waiting: InflateQueue[] = [];
    while (this.#running < MAX_INFLATING) {
      const queue = this.#queues.shift();
      if (queue === undefined) break;
      while (queue.jobs[0]?.isWanted() === false) queue.jobs.shift();
      const job = queue.jobs[0];
      const dueMs = queue.paidUntilMs - (INFLATE_BURST_BYTES / INFLATE_BYTES_PER_SECOND) * 1000;
      if (job === undefined) queue.isQueued = false;
      else if (dueMs > nowMs) {
        waiting.push(queue);
        earliestMs = Math.min(earliestMs, dueMs);
      } else {
        queue.jobs.shift();
        void this.#inflate(queue, job);
      }
    }
    this.#queues = waiting.concat(this.#queues);
    this.#waitUntil(earliestMs, nowMs);
  }

  async #inflate(queue: InflateQueue, job: Job): Promise<void> {
    this.#running++;
    this.inflated++;
    let plain: Uint8Array | undefined;
    let failure: unknown;
    try {
      plain = await this.#compressor.decompressLater(job.message, job.maxBytes);
    } catch (error) {
      failure = error;
    }
    this.#running--;
    const nowMs = this.#clock.monotonicMs();
    // A message that is refused as too long has cost as much as the longest one.
    const costBytes = plain?.length ?? job.maxBytes;
    queue.paidUntilMs =
      Math.max(queue.paidUntilMs, nowMs) + (costBytes / INFLATE_BYTES_PER_SECOND) * 1000;
    this.#queues.push(queue);
    if (job.isWanted()) job.done(plain, failure);
    this.#run();
  }

  #waitUntil(dueMs: number, nowMs: number): void {
    if (dueMs >= this.#waitsUntilMs) return;
    this.throttled++;
    this.#waitsUntilMs = dueMs;
    this.#clock.after(dueMs - nowMs, () => {
      this.#waitsUntilMs = Number.POSITIVE_INFINITY;
      this.#run();
    });
  }
}

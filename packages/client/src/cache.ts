/**
 * A copy of a range in this process, kept in step by a watch: reads cost no call, and are of one
 * known revision.
 *
 *   await using cache = await Cache.open(client, "config/", { prefix: true });
 *   const { header } = await client.put("config/color", "red");
 *   await cache.reached(header.revision);
 *   cache.get("config/color");
 */
import { BOUND, check, checkOptions, INTEGER } from "@quorate/host";
import { CodedError, fromLatin1, type KeyValue, toLatin1 } from "@quorate/proto";
import { WAIT_SHAPE, type WaitOptions } from "./call-options.ts";
import { type Caller, unlessAborted } from "./caller.ts";
import type { Change } from "./changes.ts";
import { type FollowOptions, followResponses } from "./follow.ts";
import { type Bytes, toBytes } from "./requests.ts";
import { Wait } from "./wait.ts";

/** The range of a cache, and its bounds. The signal ends the cache, too. */
export interface CacheOptions
  extends Omit<FollowOptions, "snapshot" | "onCompacted" | "prevKv" | "timeoutMs"> {
  /** The time until it has the whole range; default no limit. */
  readonly timeoutMs?: number | undefined;
  /** The most bytes of keys and values; default 64 MiB. */
  readonly maxBytes?: number;
}

/** The range is larger than the cache may be. */
export class CacheFullError extends CodedError<"CacheFull"> {
  constructor(maxBytes: number) {
    super("CacheFullError", "CacheFull", `the range has more than ${maxBytes} bytes`);
  }
}

/** The cache was closed. */
export class CacheClosedError extends CodedError<"CacheClosed"> {
  constructor() {
    super("CacheClosedError", "CacheClosed", "the cache is closed");
  }
}

const MAX_BYTES: number = 64 << 20;

/** A range of keys in memory, kept in step by a watch. */
export class Cache implements AsyncDisposable {
  /** Aborted when the cache is in step no more: closed, or with what follow() threw. */
  readonly signal: AbortSignal;
  readonly #caller: Caller;
  readonly #maxBytes: number;
  readonly #stop = new AbortController();
  readonly #lost = new AbortController();
  readonly #records = new Map<string, KeyValue>();
  #sizeBytes = 0;
  #revision = 0;
  readonly #waiting = new Set<{ readonly revision: number; readonly go: () => void }>();
  readonly #ended: Promise<void>;

  private constructor(caller: Caller, key: Bytes, options: Omit<CacheOptions, "timeoutMs">) {
    const { maxBytes = MAX_BYTES, signal, ...followed } = options;
    check("cache", "maxBytes", maxBytes, BOUND);
    this.#caller = caller;
    this.#maxBytes = maxBytes;
    this.signal = this.#lost.signal;
    const close = (): void => this.#stop.abort();
    if (signal?.aborted) close();
    else signal?.addEventListener("abort", close);
    this.#ended = this.#run(key, { ...followed, signal: this.#stop.signal })
      .then(
        () => this.#lost.abort(new CacheClosedError()),
        (error: unknown) => this.#lost.abort(error),
      )
      .finally(() => signal?.removeEventListener("abort", close));
  }

  /**
   * Resolves when it has the whole range. Rejects as follow() throws, with CacheFullError, with the
   * signal's reason, and with ClientError DeadlineExceeded; then nothing of it is left.
   */
  static async open(caller: Caller, key: Bytes, options: CacheOptions = {}): Promise<Cache> {
    const { timeoutMs, ...kept } = options;
    const cache = new Cache(caller, key, kept);
    try {
      await cache.reached(1, { signal: kept.signal, timeoutMs });
    } catch (error) {
      await cache[Symbol.asyncDispose]();
      throw error;
    }
    return cache;
  }

  /** The revision of what get() returns. */
  get revision(): number {
    return this.#revision;
  }

  /** The number of keys. */
  get size(): number {
    return this.#records.size;
  }

  /** The record of a key, or undefined. Throws the signal's reason where it is out of step. */
  get(key: Bytes): KeyValue | undefined {
    this.signal.throwIfAborted();
    return this.#records.get(toLatin1(toBytes("get", "key", key)));
  }

  /** The records, in no order. Throws the signal's reason where the cache is out of step. */
  records(): Iterable<KeyValue> {
    this.signal.throwIfAborted();
    return this.#records.values();
  }

  /**
   * Resolves when the cache has all changes up to a revision at which the range changed, such as
   * that of an own put. Rejects with the signals' reasons, and with ClientError DeadlineExceeded.
   */
  async reached(revision: number, options: WaitOptions = {}): Promise<void> {
    check("reached", "revision", revision, INTEGER);
    checkOptions("reached", options, WAIT_SHAPE);
    this.signal.throwIfAborted();
    if (this.#revision >= revision) return;
    using wait = new Wait(this.#caller.timer, options);
    let leave = (): void => {};
    const reached = new Promise<void>((go) => {
      const one = { revision, go };
      this.#waiting.add(one);
      leave = () => this.#waiting.delete(one);
    });
    try {
      await unlessAborted(unlessAborted(reached, wait.signal), this.signal);
    } finally {
      leave();
    }
  }

  /** Ends the watch; reads throw CacheClosedError from now on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async #run(key: Bytes, options: FollowOptions): Promise<void> {
    let pending: Change[] = [];
    for await (const change of followResponses(this.#caller, key, options)) {
      if (change.kind !== "synced") {
        pending.push(change);
        continue;
      }
      // All changes of a revision at once: no reader sees half a transaction.
      for (const one of pending) this.#apply(one);
      pending = [];
      this.#revision = Math.max(this.#revision, change.revision);
      for (const { revision, go } of this.#waiting) if (revision <= this.#revision) go();
    }
  }

  #apply({ kind, kv }: Change): void {
    const name = toLatin1(kv.key);
    const before = this.#records.get(name);
    if (before !== undefined) this.#sizeBytes -= sizeOf(before);
    if (kind === "delete") {
      this.#records.delete(name);
      return;
    }
    // A copy: the record's bytes are a view of a whole response.
    const held = { ...kv, key: fromLatin1(name), value: kv.value.slice() };
    this.#records.set(name, held);
    this.#sizeBytes += sizeOf(held);
    if (this.#sizeBytes > this.#maxBytes) throw new CacheFullError(this.#maxBytes);
  }
}

function sizeOf({ key, value }: KeyValue): number {
  return key.length + value.length;
}

/** Requests that wait until the cache has reached a revision. */
import type { Clock, Timer } from "@quorate/host";
import type { Cancellation } from "../meta/cancellation.ts";
import { ApiError } from "../meta/status.ts";
import { throwIfAborted } from "../storage/abandoned.ts";
import { tooLarge } from "../storage/errors.ts";
import type { ProgressRequester } from "./progress-requester.ts";

/** A request waits so long; then the client retries (apiserver: blockTimeout). */
export const FRESH_TIMEOUT_MS = 3000;
/** Requests that wait at a time. */
export const MAX_FRESH_WAITERS = 16_384;

interface Waiter {
  readonly revision: number;
  readonly settle: (error: unknown) => void;
}

export class Freshness {
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  readonly #progress: ProgressRequester;
  readonly #observe: (waitedMs: number) => void;
  readonly #waiters = new Set<Waiter>();
  #revision = 0;
  /** The least revision that a waiter waits for. */
  #least = Number.POSITIVE_INFINITY;

  /** @param observe receives how long each request waited */
  constructor(
    clock: Pick<Clock, "monotonicMs" | "after">,
    progress: ProgressRequester,
    observe: (waitedMs: number) => void,
  ) {
    this.#clock = clock;
    this.#progress = progress;
    this.#observe = observe;
  }

  get revision(): number {
    return this.#revision;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /** The cache has reached `revision`; it may go back when the cache is filled again. */
  reached(revision: number): void {
    this.#revision = revision;
    if (revision < this.#least) return;
    this.#least = Number.POSITIVE_INFINITY;
    for (const waiter of this.#waiters) {
      if (waiter.revision <= revision) waiter.settle(undefined);
      else this.#least = Math.min(this.#least, waiter.revision);
    }
  }

  /**
   * Resolves when the cache has reached `revision`. Rejects with StorageError
   * "TooLargeResourceVersion" after FRESH_TIMEOUT_MS, with ApiError 429 if too many wait, with the
   * signal's reason.
   */
  async wait(revision: number, signal: Cancellation | undefined): Promise<void> {
    throwIfAborted(signal);
    if (revision === 0) return;
    if (revision <= this.#revision) return this.#observe(0);
    if (this.#waiters.size >= MAX_FRESH_WAITERS)
      throw new ApiError(429, "TooManyRequests", "too many requests wait for the watch cache", {
        retryAfterSeconds: 1,
      });
    const startMs = this.#clock.monotonicMs();
    try {
      await this.#waitFor(revision, signal);
    } finally {
      this.#observe(this.#clock.monotonicMs() - startMs);
    }
  }

  #waitFor(revision: number, signal: Cancellation | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const abort = () => waiter.settle(signal?.reason);
      const waiter: Waiter = {
        revision,
        settle: (error) => {
          this.#waiters.delete(waiter);
          timer?.cancel();
          signal?.removeEventListener("abort", abort);
          this.#progress.remove();
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      timer = this.#clock.after(FRESH_TIMEOUT_MS, () =>
        waiter.settle(tooLarge("", revision, this.#revision)),
      );
      signal?.addEventListener("abort", abort);
      this.#waiters.add(waiter);
      this.#least = Math.min(this.#least, revision);
      this.#progress.add();
    });
  }
}

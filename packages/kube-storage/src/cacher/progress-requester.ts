/**
 * Asks the store for progress while requests wait for the cache to be fresh (apiserver:
 * pkg/storage/cacher/progress): soon after each request that begins to wait, then ten times a
 * second. Kubernetes asks ten times a second in all, so that a list of an idle resource takes 50 ms
 * on average where others change.
 */
import type { Clock, Timer } from "@quorate/host";

/** Between two requests for progress while the same requests wait. */
export const PROGRESS_REPEAT_MS = 100;
/** Between two requests for progress at the least. */
export const PROGRESS_GAP_MS = 2;

export class ProgressRequester {
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  readonly #request: () => Promise<void>;
  #waiting = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  /** When the timer is due. */
  #dueMs = Number.POSITIVE_INFINITY;

  /** @param request its rejections are dropped: the next request is the retry */
  constructor(clock: Pick<Clock, "monotonicMs" | "after">, request: () => Promise<void>) {
    this.#clock = clock;
    this.#request = request;
  }

  /** A request begins to wait. */
  add(): void {
    this.#waiting++;
    this.#plan(this.#lastMs + PROGRESS_GAP_MS);
  }

  /** A request waits no more. */
  remove(): void {
    this.#waiting--;
    if (this.#waiting === 0) this.#cancel();
  }

  #plan(dueMs: number): void {
    if (dueMs >= this.#dueMs) return;
    this.#cancel();
    const delayMs = dueMs - this.#clock.monotonicMs();
    if (delayMs <= 0) {
      this.#ask();
      return;
    }
    this.#dueMs = dueMs;
    this.#timer = this.#clock.after(delayMs, () => {
      this.#cancel();
      this.#ask();
    });
  }

  #ask(): void {
    this.#lastMs = this.#clock.monotonicMs();
    this.#request().catch(() => {});
    this.#plan(this.#lastMs + PROGRESS_REPEAT_MS);
  }

  #cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#dueMs = Number.POSITIVE_INFINITY;
  }
}

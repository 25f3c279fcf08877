/**
 * Asks the store for progress while a request waits for the cache to be fresh (apiserver:
 * pkg/storage/cacher/progress): at once, then ten times a second.
 */
import type { Clock, Timer } from "@quorate/host";

/** Between two requests for progress. */
export const PROGRESS_REQUEST_PERIOD_MS = 100;

export class ProgressRequester {
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  readonly #request: () => Promise<void>;
  #waiting = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;

  /** @param request its rejections are dropped: the next request is the retry */
  constructor(clock: Pick<Clock, "monotonicMs" | "after">, request: () => Promise<void>) {
    this.#clock = clock;
    this.#request = request;
  }

  add(): void {
    this.#waiting++;
    this.#plan();
  }

  remove(): void {
    this.#waiting--;
    if (this.#waiting > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #plan(): void {
    if (this.#timer !== undefined || this.#waiting === 0) return;
    const delayMs = this.#lastMs + PROGRESS_REQUEST_PERIOD_MS - this.#clock.monotonicMs();
    if (delayMs <= 0) {
      this.#lastMs = this.#clock.monotonicMs();
      this.#request().catch(() => {});
    }
    this.#timer = this.#clock.after(Math.max(delayMs, PROGRESS_REQUEST_PERIOD_MS), () => {
      this.#timer = undefined;
      this.#plan();
    });
  }
}

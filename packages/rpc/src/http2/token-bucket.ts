/**
 * An allowance that fills up with time: so many at once, and then so many a second. Time is only
 * looked at when it has run out.
 */
export class TokenBucket {
  readonly #burst: number;
  readonly #perMs: number;
  #tokens: number;
  #filledMs: number;

  constructor(burst: number, perSecond: number, nowMs: number) {
    this.#burst = burst;
    this.#perMs = perSecond / 1000;
    this.#tokens = burst;
    this.#filledMs = nowMs;
  }

  /** Takes `count`; false if there are fewer. */
  take(count: number, nowMs: number): boolean {
    if (this.#tokens < count) {
      this.#tokens = Math.min(this.#burst, this.#tokens + (nowMs - this.#filledMs) * this.#perMs);
      this.#filledMs = nowMs;
      if (this.#tokens < count) return false;
    }
    this.#tokens -= count;
    return true;
  }

  /** Gives some back, up to the burst. */
  give(count: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + count);
  }
}

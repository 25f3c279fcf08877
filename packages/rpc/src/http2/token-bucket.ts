/** An allowance that fills up with time: so many at once, and then so many a second. Time is only looked at when it has run out. */
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
    this.#tokens -= count;
    if (this.#tokens >= 0) return true;
    this.#tokens = Math.min(this.#burst, this.#tokens + (nowMs - this.#filledMs) * this.#perMs);
    this.#filledMs = nowMs;
    return this.#tokens >= 0;
  }

  /** Gives some back, up to the burst. */
  give(count: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + count);
  }
}

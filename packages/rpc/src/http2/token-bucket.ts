/** A token bucket: a burst, and then a rate per second. It is refilled only when it runs out. */
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

  /** Takes `count` tokens; false if there are fewer. */
  take(count: number, nowMs: number): boolean {
    if (this.#tokens < count) {
      this.#tokens = Math.min(this.#burst, this.#tokens + (nowMs - this.#filledMs) * this.#perMs);
      this.#filledMs = nowMs;
      if (this.#tokens < count) return false;
    }
    this.#tokens -= count;
    return true;
  }

  /** Returns tokens, up to the burst. */
  give(count: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + count);
  }
}

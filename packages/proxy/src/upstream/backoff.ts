/** Pauses between attempts to open a stream again: each twice as long, up to a bound. */
const FIRST_MS = 25;
const LONGEST_MS = 1000;

export class Backoff {
  #nextMs = FIRST_MS;

  /** The pause before the next attempt, in milliseconds. */
  next(): number {
    const pauseMs = this.#nextMs;
    this.#nextMs = Math.min(2 * pauseMs, LONGEST_MS);
    return pauseMs;
  }

  /** An attempt has succeeded. */
  reset(): void {
    this.#nextMs = FIRST_MS;
  }
}

/**
 * How long to wait before the next attempt: at first hardly at all, then twice as long each time,
 * never always the same.
 *
 *   attempts after a success:    1      2      3      4      5 ...
 *   longest wait:              quick  least  2x     4x     8x ... most
 */
import type { Random } from "@quorate/host";

export interface BackoffOptions {
  /** The longest wait before the first new attempt, in milliseconds. */
  readonly quickMs: number;
  readonly leastMs: number;
  readonly mostMs: number;
}

export class Backoff {
  readonly #options: BackoffOptions;
  readonly #random: Random;
  #failures = 0;

  constructor(options: BackoffOptions, random: Random) {
    this.#options = options;
    this.#random = random;
  }

  /** How long to wait now, in milliseconds: from half of the longest wait to all of it. */
  nextMs(): number {
    const { quickMs, leastMs, mostMs } = this.#options;
    const longestMs =
      this.#failures === 0
        ? quickMs
        : Math.min(mostMs, leastMs * 2 ** Math.min(30, this.#failures - 1));
    this.#failures++;
    return longestMs * (0.5 + this.#random.unit() / 2);
  }

  /** It worked: the next wait is a quick one again. */
  reset(): void {
    this.#failures = 0;
  }
}

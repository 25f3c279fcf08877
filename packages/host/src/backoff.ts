/**
 * Pauses between attempts: each twice as long as the one before, up to a bound.
 *
 *     attempts after a success:       1      2      3      4 ...
 *     longest pause:                first    2x     4x     8x ... most
 *     with a quick first attempt:   quick  first    2x     4x ... most
 */
import type { Random } from "./random.ts";

export interface BackoffOptions {
  /** The longest pause before the first attempt, instead of `firstMs`. */
  readonly quickMs?: number;
  readonly firstMs: number;
  readonly mostMs: number;
}

export class Backoff {
  readonly #options: BackoffOptions;
  readonly #random: Random | undefined;
  #failures = 0;

  /**
   * @param random draws each pause between half of the longest and all of it, so that many who
   * failed together do not come back together; without it the pause is the longest
   */
  constructor(options: BackoffOptions, random?: Random) {
    this.#options = options;
    this.#random = random;
  }

  /** The length of the next pause. */
  nextMs(): number {
    const { quickMs, firstMs, mostMs } = this.#options;
    const isQuick = quickMs !== undefined && this.#failures === 0;
    const doublings = quickMs === undefined ? this.#failures : this.#failures - 1;
    // A shift of 2 ** 30 is beyond every bound.
    const longestMs = isQuick ? quickMs : Math.min(mostMs, firstMs * 2 ** Math.min(30, doublings));
    this.#failures++;
    return this.#random === undefined ? longestMs : longestMs * (0.5 + this.#random.unit() / 2);
  }

  /** An attempt has succeeded: the next pause is the shortest again. */
  reset(): void {
    this.#failures = 0;
  }
}

/** Random choices that a seed repeats. */

/** A source of random numbers; the same seed yields the same ones. */
export class SeededRandom {
  #state: number;

  /** `seed` is a 32-bit integer other than 0. */
  constructor(seed: number) {
    this.#state = seed | 0 || 1;
  }

  /** An integer from 0 to n - 1. */
  below(n: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % n;
  }

  /** True about once in n times. */
  oneIn(n: number): boolean {
    return this.below(n) === 0;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)];
  }
}

/** The seed of a run: `fallback`, or QUORATE_SEED where that is set, to repeat what failed. */
export function seedOf(fallback: number): number {
  return Number(process.env["QUORATE_SEED"] ?? fallback);
}

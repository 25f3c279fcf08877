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

/** One of `from`. */
export function pick<T>(random: { below(limit: number): number }, from: readonly T[]): T {
  return from[random.below(from.length)];
}

/** Choices of a test, from a seed (mulberry32). Recorded cases depend on what it yields. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** An integer from 0 to below `limit` (at most 2^32). */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  pick<T>(list: readonly T[]): T {
    return pick(this, list);
  }

  /** Some of the list, in random order, each once. */
  some<T>(list: readonly T[]): T[] {
    const left = [...list];
    const taken: T[] = [];
    for (let count = this.below(list.length + 1); count > 0; count--) {
      taken.push(...left.splice(this.below(left.length), 1));
    }
    return taken;
  }

  bytes(maxLength: number): Uint8Array {
    return Uint8Array.from({ length: this.below(maxLength + 1) }, () => this.below(256));
  }
}

/** The seed of a run: `fallback`, or QUORATE_SEED where that is set, to repeat what failed. */
export function seedOf(fallback: number): number {
  return Number(process.env["QUORATE_SEED"] ?? fallback);
}

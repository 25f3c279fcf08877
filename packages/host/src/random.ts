/**
 * Random numbers from one seed, forked into named streams, so that runs are repeatable and a new
 * consumer does not shift the others.
 */

/** A stream of pseudo-random numbers. Not for secrets. */
export interface Random {
  /** An integer in [0, 2^32). */
  uint32(): number;
  /** An unsigned 64-bit integer. */
  uint64(): bigint;
  /** An integer in [0, bound); `bound` is a whole number from 1 to 2^32. */
  below(bound: number): number;
  /** A number in [0, 1). */
  unit(): number;
  /**
   * An independent stream that depends only on this stream's seed and `name`, not on the numbers
   * drawn.
   */
  fork(name: string): Random;
}

const MASK = (1n << 64n) - 1n;

/** FNV-1a over the UTF-16 units of `name`, mixed into `seed`. */
function mix(seed: bigint, name: string): bigint {
  let hash = 0xcbf29ce484222325n ^ seed;
  for (let i = 0; i < name.length; i++) {
    hash = ((hash ^ BigInt(name.charCodeAt(i))) * 0x100000001b3n) & MASK;
  }
  return hash;
}

/** Steele, Lea and Flood's SplitMix64: one step, used to fill the state from a seed. */
function splitMix64(state: bigint): bigint {
  let z = (state + 0x9e3779b97f4a7c15n) & MASK;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

/**
 * Blackman and Vigna's xoshiro128**, seeded by SplitMix64. The same seed yields the same numbers on
 * every machine.
 */
export class SeededRandom implements Random {
  readonly #seed: bigint;
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  /** @param seed any 64-bit number; only its low 64 bits count. */
  constructor(seed: bigint) {
    this.#seed = seed & MASK;
    const low = splitMix64(this.#seed);
    const high = splitMix64(low);
    this.#a = Number(low & 0xffffffffn) | 0;
    this.#b = Number(low >> 32n) | 0;
    this.#c = Number(high & 0xffffffffn) | 0;
    this.#d = Number(high >> 32n) | 1;
  }

  uint32(): number {
    const scrambled = Math.imul(this.#b, 5);
    const result = Math.imul((scrambled << 7) | (scrambled >>> 25), 9) >>> 0;
    const shifted = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= shifted;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result;
  }

  uint64(): bigint {
    return (BigInt(this.uint32()) << 32n) | BigInt(this.uint32());
  }

  below(bound: number): number {
    if (!Number.isInteger(bound) || bound < 1 || bound > 2 ** 32) {
      throw new RangeError(`bound must be a whole number from 1 to 2^32, got ${bound}`);
    }
    // Redraws within the last, incomplete multiple of the bound, so that all results are equally
    // likely.
    const limit = 2 ** 32 - (2 ** 32 % bound);
    let drawn = this.uint32();
    while (drawn >= limit) drawn = this.uint32();
    return drawn % bound;
  }

  unit(): number {
    return this.uint32() / 2 ** 32;
  }

  fork(name: string): Random {
    return new SeededRandom(splitMix64(mix(this.#seed, name)));
  }
}

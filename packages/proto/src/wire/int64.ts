/**
 * Scratch memory that converts 64-bit integers between two 32-bit words and a bigint, without
 * bigint arithmetic.
 */
export const U64: BigUint64Array = new BigUint64Array(1);
/** The same 8 bytes, signed. */
export const I64: BigInt64Array = new BigInt64Array(U64.buffer);
/** The same 8 bytes as two words. */
export const WORDS: Uint32Array = new Uint32Array(U64.buffer);

U64[0] = 1n;
/** Index in WORDS of the low word: 0 on a little-endian machine. */
export const LO: number = WORDS[0] === 1 ? 0 : 1;
/** Index in WORDS of the high word. */
export const HI: number = 1 - LO;

/** The unsigned 64-bit integer of two words, each of 32 bits without a sign. */
export function uint64Of(high: number, low: number): bigint {
  WORDS[LO] = low;
  WORDS[HI] = high;
  return U64[0];
}

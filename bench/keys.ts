/**
 * Keys of 8 bytes, values that do not compress, and an order of use that is the same in every run.
 */

export const keyBytes = 8;

/** First letters of the keys that are loaded before a run, and of those that are listed. */
export const loadedLetter = "k";
export const listedLetter = "r";

/**
 * "00000012" with a first letter in place of the first digit, so that the rows' keys keep apart.
 */
export function keyOf(letter: string, number: number): Buffer {
  return Buffer.from(letter + String(number).padStart(keyBytes - 1, "0"), "latin1");
}

/** `count` keys, in order. */
export function keysOf(letter: string, count: number): readonly Buffer[] {
  return Array.from({ length: count }, (_, number) => keyOf(letter, number));
}

/** Marsaglia's xorshift32. */
export function randomUint32(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

/** Bytes that do not compress. */
export function randomValue(sizeBytes: number): Buffer {
  const next = randomUint32(7);
  return Buffer.from(Array.from({ length: sizeBytes }, () => next() & 0xff));
}

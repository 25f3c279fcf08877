/** Decimal digits of 64-bit integers, without strings. */

const LIMB = 10_000;
const DIGITS_A_LIMB = 4;
const ZERO = 0x30;
/** Digits of 2^64, and a sign. */
export const MAX_DECIMAL_BYTES = 21;

/** Writes an integer from 0 to 2^53 at `at`; returns the offset behind it. */
export function putDecimal(out: Uint8Array, at: number, value: number): number {
  if (value < 10) {
    out[at] = ZERO + value;
    return at + 1;
  }
  let end = at;
  for (let rest = value; rest >= 1; rest = Math.floor(rest / 10)) end++;
  let rest = value;
  let to = end;
  // Division by a constant is fast for 32-bit integers only.
  for (; rest > 0xffff_ffff; rest = Math.floor(rest / 10)) out[--to] = ZERO + (rest % 10);
  for (let low = rest >>> 0; to > at; low = (low / 10) >>> 0) out[--to] = ZERO + (low % 10);
  return end;
}

/** Writes the unsigned integer of two 32-bit words; returns the offset behind it. */
export function putDecimalWords(out: Uint8Array, at: number, lo: number, hi: number): number {
  if (hi <= 0x1f_ffff) return putDecimal(out, at, hi * 0x1_0000_0000 + lo);
  // Long division of four 16-bit parts, four digits at a time; the value has 16 to 20 digits.
  let a = hi >>> 16;
  let b = hi & 0xffff;
  let c = lo >>> 16;
  let d = lo & 0xffff;
  let end = at + MAX_DECIMAL_BYTES;
  let to = end;
  while ((a | b | c | d) !== 0) {
    let rest = a;
    a = (rest / LIMB) | 0;
    rest = ((rest % LIMB) << 16) | b;
    b = (rest / LIMB) | 0;
    rest = ((rest % LIMB) << 16) | c;
    c = (rest / LIMB) | 0;
    rest = ((rest % LIMB) << 16) | d;
    d = (rest / LIMB) | 0;
    rest %= LIMB;
    for (let i = 0; i < DIGITS_A_LIMB; i++, rest = (rest / 10) | 0) out[--to] = ZERO + (rest % 10);
  }
  while (out[to] === ZERO) to++;
  out.copyWithin(at, to, end);
  end -= to - at;
  return end;
}

/** Writes the signed integer of two 32-bit words; returns the offset behind it. */
export function putSignedWords(out: Uint8Array, at: number, lo: number, hi: number): number {
  if (hi <= 0x7fff_ffff) return putDecimalWords(out, at, lo, hi);
  out[at] = 0x2d;
  const low = (~lo + 1) >>> 0;
  return putDecimalWords(out, at + 1, low, (~hi + (low === 0 ? 1 : 0)) >>> 0);
}

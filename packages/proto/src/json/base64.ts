/**
 * Base64 as protojson reads and writes it: written in the standard alphabet with padding, read in
 * either alphabet, with complete padding or none.
 */
import { toBase64, toLatin1, writeFromBase64, writeLatin1 } from "../wire/bytes.ts";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/** Shorter texts are converted here, longer ones by native code, whose calls cost more. */
const MIN_NATIVE_BYTES = 96;
/** Bits beside a character's value: it is in one alphabet only, or in none. */
const STANDARD = 0x40;
const URL = 0x80;
const INVALID = 0x100;
const PAD = 0x3d;

const CHARS = Uint8Array.from(ALPHABET, (char) => char.charCodeAt(0));
const VALUES = new Uint16Array(256).fill(INVALID);
CHARS.forEach((code, value) => {
  VALUES[code] = value;
});
VALUES[0x2b] |= STANDARD;
VALUES[0x2f] |= STANDARD;
VALUES[0x2d] = 62 | URL;
VALUES[0x5f] = 63 | URL;

/** Characters of `size` bytes in base64 with padding. */
export function base64Length(size: number): number {
  return Math.ceil(size / 3) * 4;
}

/** Writes bytes[start, end) in base64 to `out` at `at`; returns the offset behind it. */
export function putBase64(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  if (end - start >= MIN_NATIVE_BYTES) {
    const text = toBase64(bytes, start, end);
    writeLatin1(out, text, at);
    return at + text.length;
  }
  let to = at;
  let from = start;
  for (; from + 2 < end; from += 3, to += 4) {
    const group = (bytes[from] << 16) | (bytes[from + 1] << 8) | bytes[from + 2];
    out[to] = CHARS[group >> 18];
    out[to + 1] = CHARS[(group >> 12) & 63];
    out[to + 2] = CHARS[(group >> 6) & 63];
    out[to + 3] = CHARS[group & 63];
  }
  if (from === end) return to;
  const two = from + 1 < end;
  const group = (bytes[from] << 16) | (two ? bytes[from + 1] << 8 : 0);
  out[to] = CHARS[group >> 18];
  out[to + 1] = CHARS[(group >> 12) & 63];
  out[to + 2] = two ? CHARS[(group >> 6) & 63] : PAD;
  out[to + 3] = PAD;
  return to + 4;
}

/**
 * How many bytes the base64 text [start, end) decodes to, or -1 if its padding does not fit. The
 * characters are not checked.
 */
export function decodedLength(text: Uint8Array, start: number, end: number): number {
  const length = end - start;
  const rest = length % 4;
  if (rest === 1) return -1;
  if (rest !== 0 || length === 0) return (length >> 2) * 3 + Math.max(0, rest - 1);
  const pads = text[end - 1] !== PAD ? 0 : text[end - 2] !== PAD ? 1 : 2;
  return (length >> 2) * 3 - pads;
}

/**
 * Decodes the base64 text [start, end), which is `size` bytes by decodedLength, into `out` at `at`.
 * Returns false if it is not base64, or mixes the alphabets. Bits behind the last byte are ignored,
 * as in Go.
 */
export function readBase64(
  text: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  at: number,
  size: number,
): boolean {
  if (size >= MIN_NATIVE_BYTES) return readNative(text, start, end, out, at, size);
  let seen = 0;
  let to = at;
  let from = start;
  const whole = at + size - (size % 3);
  for (; to < whole; from += 4, to += 3) {
    const a = VALUES[text[from]];
    const b = VALUES[text[from + 1]];
    const c = VALUES[text[from + 2]];
    const d = VALUES[text[from + 3]];
    seen |= a | b | c | d;
    out[to] = (a << 2) | ((b & 63) >> 4);
    out[to + 1] = (b << 4) | ((c & 63) >> 2);
    out[to + 2] = (c << 6) | (d & 63);
  }
  const left = at + size - to;
  if (left > 0) {
    const a = VALUES[text[from]];
    const b = VALUES[text[from + 1]];
    const c = left > 1 ? VALUES[text[from + 2]] : 0;
    seen |= a | b | c;
    out[to] = (a << 2) | ((b & 63) >> 4);
    if (left > 1) out[to + 1] = (b << 4) | ((c & 63) >> 2);
  }
  return seen < INVALID && (seen & (STANDARD | URL)) !== (STANDARD | URL);
}

function readNative(
  text: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  at: number,
  size: number,
): boolean {
  const chars = toLatin1(text, start, end);
  // The native code takes long over what is not base64; an escape is the usual case.
  if (chars.includes("\\")) return false;
  if (writeFromBase64(out, chars, at) !== size) return false;
  const url = chars.includes("-") || chars.includes("_");
  return !url || !(chars.includes("+") || chars.includes("/"));
}

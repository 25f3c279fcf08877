/** JSON strings with escapes or characters beyond ASCII; plain ones are read where they are needed. */
import { alloc } from "../bytes.ts";
import { ESCAPE_BYTES, Refusal } from "./refusal.ts";
import { isHex } from "./scanner.ts";
import { putCodePoint, sequenceLength } from "./utf8.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Values of the escapes of one letter. */
const ESCAPES: { readonly [letter: number]: number } = {
  34: 0x22,
  92: 0x5c,
  47: 0x2f,
  98: 0x08,
  102: 0x0c,
  110: 0x0a,
  114: 0x0d,
  116: 0x09,
};

/**
 * The offset of the closing quote if all bytes from `from` to it are plain ASCII, else -1.
 * @param end where the search ends
 */
export function plainEnd(json: Uint8Array, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const byte = json[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH || byte >= 0x80 || byte < 0x20) return -1;
  }
  return -1;
}

/** The offset of the closing quote of the string whose opening quote is at `open`; -1 without one. */
export function closingQuote(json: Uint8Array, open: number): number {
  for (let at = open + 1; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
  }
  return -1;
}

/**
 * The text, as UTF-8, of the string whose quotes are at `open` and `close`. Throws Refusal for
 * malformed UTF-8, a bad escape or a control character.
 */
export function decodeString(json: Uint8Array, open: number, close: number): Uint8Array {
  const out = alloc(close - open - 1);
  let size = 0;
  for (let at = open + 1; at < close; ) {
    const byte = json[at];
    if (byte >= 0x80) {
      const length = sequenceLength(json, at, close);
      if (length === 0) throw Refusal.invalidUtf8(open);
      for (const last = at + length; at < last; at++) out[size++] = json[at];
    } else if (byte < 0x20) throw Refusal.grammar;
    else if (byte !== BACKSLASH) {
      out[size++] = byte;
      at++;
    } else if (json[at + 1] !== 0x75) {
      const value = ESCAPES[json[at + 1]];
      if (value === undefined) throw Refusal.grammar;
      out[size++] = value;
      at += 2;
    } else {
      const code = codePoint(json, at, open);
      size = putCodePoint(out, size, code);
      at += code > 0xffff ? 2 * ESCAPE_BYTES : ESCAPE_BYTES;
    }
  }
  return out.subarray(0, size);
}

/** The code point of the escape, or pair of escapes, at `at`. */
function codePoint(json: Uint8Array, at: number, open: number): number {
  const first = hex4(json, at + 2);
  if (first < 0) throw Refusal.grammar;
  if (first < 0xd800 || first > 0xdfff) return first;
  const next = at + ESCAPE_BYTES;
  const second = json[next] === BACKSLASH && json[next + 1] === 0x75 ? hex4(json, next + 2) : -1;
  if (first > 0xdbff || second < 0xdc00 || second > 0xdfff) throw Refusal.halfPair(open, next);
  return 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
}

/** Four hexadecimal digits, or -1. */
function hex4(json: Uint8Array, at: number): number {
  let value = 0;
  for (let i = at; i < at + 4; i++) {
    const byte = json[i];
    if (!isHex(byte)) return -1;
    value = (value << 4) | (byte <= 0x39 ? byte & 15 : (byte & 7) + 9);
  }
  return value;
}

/** Checks the strings of a skipped value, as protojson does. Throws Refusal. */
export function checkStrings(json: Uint8Array, start: number, end: number): void {
  for (let at = start; at < end; at++) {
    if (json[at] !== QUOTE) continue;
    const close = closingQuote(json, at);
    if (plainEnd(json, at + 1, close + 1) < 0) decodeString(json, at, close);
    at = close;
  }
}

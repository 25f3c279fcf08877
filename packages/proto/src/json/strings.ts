/** JSON strings with escapes or characters beyond ASCII; plain ones are read in place. */
import { alloc, fromUtf8, toUtf8 } from "../wire/bytes.ts";
import { ESCAPE_BYTES, Refusal } from "./refusal.ts";
import { hexValue } from "./scanner.ts";
import { putCodePoint, sequenceLength } from "./utf8.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Shorter strings are decoded here. */
const MIN_NATIVE_BYTES = 1024;
/** A string up to it is decoded in one step: 0.3 ms. */
export const MAX_STEP_BYTES: number = 64 << 10;
/** What a step may write beyond its end: the last character. */
const MAX_CHARACTER_BYTES = 4;

/** Values of the escapes of one letter, 0 for no escape. */
const ESCAPES = new Uint8Array(256);
for (const [letter, value] of ['""', "\\\\", "//", "b\b", "f\f", "n\n", "r\r", "t\t"])
  ESCAPES[letter.charCodeAt(0)] = value.charCodeAt(0);

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

/**
 * The offset of the closing quote of the string whose opening quote is at `open`; -1 if there is
 * none before `end`.
 */
export function closingQuote(json: Uint8Array, open: number, end: number): number {
  for (let at = open + 1; at < end; at++) {
    const byte = json[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at++;
  }
  return -1;
}

/**
 * Whether the string at `open` is to be decoded in steps: it is longer than one, or only its end
 * would show that it is not.
 */
export function takesSteps(json: Uint8Array, open: number, stepBytes: number): boolean {
  if (json.length - open <= stepBytes) return false;
  const quote = json.indexOf(QUOTE, open + 1);
  return quote < 0 || quote - open > stepBytes || json[quote - 1] === BACKSLASH;
}

/**
 * As decodeString, by native code, which takes a third of the time. Undefined for a string that has
 * to be looked at byte by byte.
 */
function decodeNative(json: Uint8Array, open: number, close: number): Uint8Array | undefined {
  const text = toUtf8(json, open, close + 1);
  if (text.includes("\ufffd")) return undefined;
  try {
    const value = JSON.parse(text) as string;
    return value.isWellFormed() ? fromUtf8(value) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The text, as UTF-8, of the string whose quotes are at `open` and `close`. Throws Refusal for
 * malformed UTF-8, a bad escape or a control character.
 */
export function decodeString(json: Uint8Array, open: number, close: number): Uint8Array {
  const native = close - open > MIN_NATIVE_BYTES ? decodeNative(json, open, close) : undefined;
  if (native !== undefined) return native;
  const decoding = new StringDecoding(json, open, alloc(close - open - 1));
  decoding.run(close + 1);
  return decoding.text;
}

/** A string whose end is not known is decoded in steps. */
export class StringDecoding {
  readonly #json: Uint8Array;
  /** The offset of the opening quote. */
  readonly open: number;
  /** The next byte; behind `run` with true the closing quote. */
  at: number;
  #out: Uint8Array;
  #size = 0;

  /** @param out space for the text; it is replaced where it is too small */
  constructor(json: Uint8Array, open: number, out: Uint8Array) {
    this.#json = json;
    this.open = open;
    this.at = open + 1;
    this.#out = out;
  }

  /** What was decoded. */
  get text(): Uint8Array {
    return this.#out.subarray(0, this.#size);
  }

  /**
   * Decodes up to about `stop`. Throws Refusal, also for a string without an end.
   * @returns whether the closing quote is reached
   */
  run(stop: number): boolean {
    const json = this.#json;
    const end = Math.min(stop, json.length);
    this.#reserve(end - this.at + MAX_CHARACTER_BYTES);
    const { open } = this;
    const out = this.#out;
    let { at } = this;
    let size = this.#size;
    while (at < end) {
      const byte = json[at];
      if (byte < 0x80 && byte >= 0x20 && byte !== BACKSLASH) {
        if (byte === QUOTE) {
          this.at = at;
          this.#size = size;
          return true;
        }
        out[size++] = byte;
        at++;
      } else if (byte >= 0x80) {
        const length = sequenceLength(json, at, json.length);
        if (length === 0) throw Refusal.invalidUtf8(open);
        for (const last = at + length; at < last; at++) out[size++] = json[at];
      } else if (byte < 0x20) throw Refusal.grammar;
      else if (json[at + 1] !== 0x75) {
        const value = ESCAPES[json[at + 1]];
        if (!(value > 0)) throw Refusal.grammar;
        out[size++] = value;
        at += 2;
      } else {
        const code = codePoint(json, at, open);
        size = putCodePoint(out, size, code);
        at += code > 0xffff ? 2 * ESCAPE_BYTES : ESCAPE_BYTES;
      }
    }
    if (at >= json.length) throw Refusal.grammar;
    this.at = at;
    this.#size = size;
    return false;
  }

  #reserve(sizeBytes: number): void {
    const needed = this.#size + sizeBytes;
    if (needed <= this.#out.length) return;
    const larger = alloc(Math.max(needed, this.#out.length * 2));
    larger.set(this.text);
    this.#out = larger;
  }
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

/** Four hexadecimal digits, or a negative number. */
function hex4(json: Uint8Array, at: number): number {
  if (at + 4 > json.length) return -1;
  return (
    (hexValue(json[at]) << 12) |
    (hexValue(json[at + 1]) << 8) |
    (hexValue(json[at + 2]) << 4) |
    hexValue(json[at + 3])
  );
}

/**
 * Checks the strings in json[start, end), as protojson does in values that it skips. Returns where
 * to go on: the opening quote of a string that does not end there, or `end`. Throws Refusal.
 */
export function checkStrings(json: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    if (json[at] !== QUOTE) continue;
    const close = closingQuote(json, at, end);
    if (close < 0) return at;
    if (plainEnd(json, at + 1, close + 1) < 0) decodeString(json, at, close);
    at = close;
  }
  return end;
}

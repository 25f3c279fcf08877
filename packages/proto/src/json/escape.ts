/** Strings in JSON as protojson writes them: only what must be escaped is. */
import { sequenceLength } from "./utf8.ts";

const HEX = "0123456789abcdef";
/** The most bytes that one byte of a string becomes. */
export const MAX_ESCAPE_BYTES = 6;

/** A byte needs: 0 nothing, 1 an escape, 2 an escape in streams only, 3 a look at its sequence. */
const CLASSES = new Uint8Array(256);
CLASSES.fill(1, 0, 0x20);
CLASSES[0x22] = CLASSES[0x5c] = 1;
for (const char of "<>&") CLASSES[char.charCodeAt(0)] = 2;
CLASSES.fill(3, 0x80);

const LETTERS: { readonly [byte: number]: string } = {
  8: "b",
  9: "t",
  10: "n",
  12: "f",
  13: "r",
  34: '"',
  92: "\\",
};

/**
 * Writes the UTF-8 text bytes[start, end) as the inside of a JSON string to `out` at `at`, where
 * there must be space for MAX_ESCAPE_BYTES times its length. Returns the offset behind it, or -1 if
 * it is not UTF-8.
 * @param html whether to escape what encoding/json does besides: "<", ">", "&", U+2028 and U+2029
 */
export function putEscaped(
  out: Uint8Array,
  at: number,
  bytes: Uint8Array,
  start: number,
  end: number,
  html: boolean,
): number {
  let to = at;
  for (let from = start; from < end; from++) {
    const byte = bytes[from];
    const kind = CLASSES[byte];
    if (kind === 0 || (kind === 2 && !html)) out[to++] = byte;
    else if (kind < 3) to = putEscape(out, to, byte);
    else {
      const length = sequenceLength(bytes, from, end);
      if (length === 0) return -1;
      if (html && length === 3 && isLineSeparator(bytes, from)) {
        to = putCode(out, to, 0x2000 | (bytes[from + 2] & 0x3f));
      } else for (let i = 0; i < length; i++) out[to++] = bytes[from + i];
      from += length - 1;
    }
  }
  return to;
}

/** U+2028 or U+2029. */
function isLineSeparator(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === 0xe2 && bytes[at + 1] === 0x80 && (bytes[at + 2] & 0xfe) === 0xa8;
}

function putEscape(out: Uint8Array, at: number, byte: number): number {
  const letter = LETTERS[byte];
  if (letter === undefined) return putCode(out, at, byte);
  out[at] = 0x5c;
  out[at + 1] = letter.charCodeAt(0);
  return at + 2;
}

function putCode(out: Uint8Array, at: number, code: number): number {
  out[at] = 0x5c;
  out[at + 1] = 0x75;
  for (let i = 0; i < 4; i++) out[at + 2 + i] = HEX.charCodeAt((code >> (12 - 4 * i)) & 15);
  return at + MAX_ESCAPE_BYTES;
}

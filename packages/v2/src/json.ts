/** JSON as Go's encoding/json writes it, which the v2 API's clients have always seen. */
import { trimEndOf } from "@quorate/host";
import { fromLatin1, sequenceLength, toUtf8 } from "@quorate/proto";

const SIMPLE = /^[ !#-%'-;=?-[\]-~]*$/;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
/** Bytes of an escape: a backslash, u, four digits. */
const MAX_ESCAPE_BYTES = 6;
const REPLACEMENT = 0xfffd;
/** Escapes of two characters. */
const SHORT: ReadonlyMap<number, number> = new Map([
  [0x22, 0x22],
  [BACKSLASH, BACKSLASH],
  [0x0a, 0x6e],
  [0x0d, 0x72],
  [0x09, 0x74],
]);

/**
 * A string of bytes as JSON. Bytes that are not UTF-8 become U+FFFD, one each; <, >, &, U+2028 and
 * U+2029 are escaped (Go 1.19: encodeState.stringBytes with escapeHTML).
 * @param latin1 one char a byte
 */
export function goString(latin1: string): string {
  if (SIMPLE.test(latin1)) return `"${latin1}"`;
  const bytes = fromLatin1(latin1);
  const out = new Uint8Array(bytes.length * MAX_ESCAPE_BYTES);
  let size = 0;
  for (let at = 0; at < bytes.length; ) {
    const byte = latin1.charCodeAt(at);
    const length = sequenceLength(bytes, at, bytes.length);
    if (length === 0) {
      size = writeEscape(out, size, REPLACEMENT);
      at++;
      continue;
    }
    const end = at + length;
    if (length === 1 && isEscaped(byte)) size = writeEscape(out, size, byte);
    else if (length === 3 && isSeparator(latin1, at))
      size = writeEscape(out, size, latin1.charCodeAt(at + 2) - 0x80 + 0x2000);
    else {
      out.set(bytes.subarray(at, end), size);
      size += length;
    }
    at = end;
  }
  return `"${toUtf8(out, 0, size)}"`;
}

function isEscaped(byte: number): boolean {
  if (byte < 0x20) return true;
  return byte === 0x22 || byte === 0x26 || byte === 0x3c || byte === 0x3e || byte === BACKSLASH;
}

/** U+2028 or U+2029. */
function isSeparator(latin1: string, at: number): boolean {
  return latin1.startsWith("\xe2\x80", at) && (latin1.charCodeAt(at + 2) & 0xfe) === 0xa8;
}

/** Writes the escape of a code below 0x10000; returns the place behind it. */
function writeEscape(out: Uint8Array, at: number, code: number): number {
  out[at] = BACKSLASH;
  const short = SHORT.get(code);
  if (short !== undefined) {
    out[at + 1] = short;
    return at + 2;
  }
  out[at + 1] = LOWER_U;
  for (let i = 0; i < 4; i++) {
    const digit = (code >> (12 - 4 * i)) & 0xf;
    out[at + 2 + i] = digit < 10 ? 0x30 + digit : 0x57 + digit;
  }
  return at + MAX_ESCAPE_BYTES;
}

/** A time as Go's time.Time marshals it: RFC 3339, the fraction without trailing zeros, in UTC. */
export function goTime(wallMs: number): string {
  const [seconds, fraction] = new Date(wallMs).toISOString().slice(0, -1).split(".");
  return `${trimEndOf(trimEndOf(`${seconds}.${fraction}`, "0"), ".")}Z`;
}

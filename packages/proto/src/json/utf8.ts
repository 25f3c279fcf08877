/** UTF-8 in a byte array (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. */

/**
 * The length of the well-formed sequence at `at`: 1 to 4 bytes, or 0 if there is none before `end`.
 */
export function sequenceLength(bytes: Uint8Array, at: number, end: number): number {
  const first = bytes[at];
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (at + length > end) return 0;
  const second = bytes[at + 1];
  const low = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  const high = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  if (second < low || second > high) return 0;
  if (length > 2 && (bytes[at + 2] & 0xc0) !== 0x80) return 0;
  if (length > 3 && (bytes[at + 3] & 0xc0) !== 0x80) return 0;
  return length;
}

/** Writes a code point as UTF-8 at `at`, where there must be space; returns the offset behind it. */
export function putCodePoint(bytes: Uint8Array, at: number, code: number): number {
  if (code < 0x80) {
    bytes[at] = code;
    return at + 1;
  }
  let end = at;
  if (code < 0x800) bytes[end++] = 0xc0 | (code >> 6);
  else {
    if (code < 0x1_0000) bytes[end++] = 0xe0 | (code >> 12);
    else {
      bytes[end++] = 0xf0 | (code >> 18);
      bytes[end++] = 0x80 | ((code >> 12) & 0x3f);
    }
    bytes[end++] = 0x80 | ((code >> 6) & 0x3f);
  }
  bytes[end++] = 0x80 | (code & 0x3f);
  return end;
}

/** Characters in bytes[start, end), which must be well-formed. */
export function countChars(bytes: Uint8Array, start: number, end: number): number {
  let count = 0;
  for (let at = start; at < end; at++) if ((bytes[at] & 0xc0) !== 0x80) count++;
  return count;
}

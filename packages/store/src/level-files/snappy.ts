/**
 * Snappy's raw format, in which LevelDB stores a block: the length of the content as a varint, then
 * elements. The low two bits of an element's first byte tag it as literal bytes (0) or as a copy of
 * earlier output (1 to 3).
 */

import { copyBytes } from "@quorate/proto";

/** Literals up to so many bytes are copied one by one: that is faster than a call. */
const FEW_BYTES = 24;

/** The content of `bytes`, or undefined if they are not Snappy's. Produces at most `limitBytes`. */
export function uncompress(bytes: Uint8Array, limitBytes: number): Uint8Array | undefined {
  const length = uncompressedLength(bytes, 0, bytes.length);
  if (!(length <= limitBytes)) return undefined;
  const content = new Uint8Array(length);
  return uncompressInto(content, bytes, 0, bytes.length) ? content : undefined;
}

/** The length of the content of bytes[start, end), by its own account; NaN if there is none. */
export function uncompressedLength(bytes: Uint8Array, start: number, end: number): number {
  let length = 0;
  let scale = 1;
  for (let at = start; at < end && at < start + 5; at++) {
    const byte = bytes[at];
    length += (byte & 0x7f) * scale;
    if (byte < 0x80) return length;
    scale *= 128;
  }
  return Number.NaN;
}

/**
 * Writes the content of bytes[start, end) to the beginning of `content`, which has at least
 * `uncompressedLength` bytes. False if the bytes are not Snappy's.
 */
export function uncompressInto(
  content: Uint8Array,
  bytes: Uint8Array,
  start: number,
  end: number,
): boolean {
  const length = uncompressedLength(bytes, start, end);
  if (!(length <= content.length)) return false;
  let at = start;
  while (bytes[at++] >= 0x80);
  let to = 0;
  while (at < end) {
    const tag = bytes[at++];
    const kind = tag & 3;
    if (kind === 0) {
      let size = (tag >>> 2) + 1;
      if (size > 60) {
        const width = size - 60;
        if (at + width > end) return false;
        size = littleEndian(bytes, at, width) + 1;
        at += width;
      }
      if (at + size > end || to + size > length) return false;
      if (size > FEW_BYTES) {
        copyBytes(bytes, at, at + size, content, to);
        at += size;
        to += size;
      } else for (let i = 0; i < size; i++) content[to++] = bytes[at++];
      continue;
    }
    const width = kind === 3 ? 4 : kind;
    if (at + width > end) return false;
    let size = kind === 1 ? ((tag >>> 2) & 7) + 4 : (tag >>> 2) + 1;
    const back = kind === 1 ? bytes[at] + (tag >>> 5) * 256 : littleEndian(bytes, at, width);
    at += width;
    // A long copy is stored as several of 64 bytes from one distance: one call copies them all.
    while (kind === 2 && isSameCopy(bytes, at, end)) {
      const more = (bytes[at] >>> 2) + 1;
      if (size + more > back) break;
      size += more;
      at += 1 + width;
    }
    if (back === 0 || back > to || to + size > length) return false;
    if (size > FEW_BYTES && back >= size) {
      content.copyWithin(to, to - back, to - back + size);
      to += size;
      continue;
    }
    // Byte by byte: a copy may overlap its own output.
    for (let i = 0; i < size; i++, to++) content[to] = content[to - back];
  }
  return to === length;
}

/** Whether a copy follows at `at` that has the kind and the distance of the one before it. */
function isSameCopy(bytes: Uint8Array, at: number, end: number): boolean {
  return (
    at + 3 <= end &&
    (bytes[at] & 3) === 2 &&
    bytes[at + 1] === bytes[at - 2] &&
    bytes[at + 2] === bytes[at - 1]
  );
}

function littleEndian(bytes: Uint8Array, at: number, width: number): number {
  if (width === 2) return bytes[at] | (bytes[at + 1] << 8);
  let value = 0;
  for (let i = width - 1; i >= 0; i--) value = value * 256 + bytes[at + i];
  return value;
}

/**
 * Snappy's raw format, in which LevelDB stores a block: the length of the content as a varint, then
 * elements. The low two bits of an element's first byte tag it as literal bytes (0) or as a copy of
 * earlier output (1 to 3).
 */

/** The content of `bytes`, or undefined if they are not Snappy's. Produces at most `limitBytes`. */
export function uncompress(bytes: Uint8Array, limitBytes: number): Uint8Array | undefined {
  let length = 0;
  let at = 0;
  for (let scale = 1; ; scale *= 128) {
    const byte = bytes[at++];
    if (byte === undefined || at > 5) return undefined;
    length += (byte & 0x7f) * scale;
    if (byte < 0x80) break;
  }
  if (length > limitBytes) return undefined;
  const content = new Uint8Array(length);
  let end = 0;
  while (at < bytes.length) {
    const tag = bytes[at++];
    const kind = tag & 3;
    if (kind === 0) {
      let size = (tag >>> 2) + 1;
      if (size > 60) {
        const width = size - 60;
        size = littleEndian(bytes, at, width) + 1;
        at += width;
      }
      if (!(at + size <= bytes.length && end + size <= length)) return undefined;
      content.set(bytes.subarray(at, at + size), end);
      at += size;
      end += size;
      continue;
    }
    const width = kind === 3 ? 4 : kind;
    const size = kind === 1 ? ((tag >>> 2) & 7) + 4 : (tag >>> 2) + 1;
    const back = littleEndian(bytes, at, width) + (kind === 1 ? (tag >>> 5) * 256 : 0);
    at += width;
    if (!(back > 0 && back <= end && end + size <= length)) return undefined;
    // Byte by byte: a copy may overlap its own output.
    for (let i = 0; i < size; i++, end++) content[end] = content[end - back];
  }
  return end === length ? content : undefined;
}

/** NaN past the end. */
function littleEndian(bytes: Uint8Array, at: number, width: number): number {
  let value = 0;
  for (let i = width - 1; i >= 0; i--) value = value * 256 + (bytes[at + i] ?? Number.NaN);
  return value;
}

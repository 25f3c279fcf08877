/**
 * CRC-32C (Castagnoli), the checksum of etcd's WAL and snapshot files. Reflected polynomial
 * 0x82f63b78, register and result inverted, so that crc32c(crc32c(0, a), b) is the checksum of a
 * followed by b, as with Go's crc32.Update.
 *
 * Slicing by 8: eight tables let one step take eight bytes. TABLES[t * 256 + b] is the effect of
 * byte b followed by t zero bytes.
 */

const POLYNOMIAL = 0x82f63b78;

const TABLES = new Int32Array(8 * 256);
for (let b = 0; b < 256; b++) {
  let crc = b;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
  TABLES[b] = crc;
}
for (let i = 256; i < TABLES.length; i++) {
  const shorter = TABLES[i - 256];
  TABLES[i] = (shorter >>> 8) ^ TABLES[shorter & 0xff];
}

/**
 * Continues the CRC-32C `crc` with bytes[start, end); the initial crc is 0. Returns an unsigned
 * 32-bit number. Throws RangeError if the range exceeds bytes.
 */
export function crc32c(
  crc: number,
  bytes: Uint8Array,
  start = 0,
  end: number = bytes.length,
): number {
  if (start < 0 || start > end || end > bytes.length)
    throw new RangeError(`[${start}, ${end}) is outside of ${bytes.length} bytes`);
  const t = TABLES;
  let c = ~crc;
  let i = start;
  for (const last = end - 8; i <= last; i += 8) {
    c ^= bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24);
    c =
      t[1792 | (c & 0xff)] ^
      t[1536 | ((c >>> 8) & 0xff)] ^
      t[1280 | ((c >>> 16) & 0xff)] ^
      t[1024 | (c >>> 24)] ^
      t[768 | bytes[i + 4]] ^
      t[512 | bytes[i + 5]] ^
      t[256 | bytes[i + 6]] ^
      t[bytes[i + 7]];
  }
  for (; i < end; i++) c = (c >>> 8) ^ t[(c ^ bytes[i]) & 0xff];
  return ~c >>> 0;
}

/**
 * CRC-32C (Castagnoli), the checksum of etcd's WAL and snapshot files. Reflected polynomial
 * 0x82f63b78, register and result inverted, so that crc32c(crc32c(0, a), b) is the checksum of a
 * followed by b, as with Go's crc32.Update.
 *
 * Slicing: sixteen tables let one step take sixteen bytes, read as four words where the machine is
 * little-endian, or eight bytes read one by one. TABLES[t * 256 + b] is the effect of byte b
 * followed by t zero bytes.
 */

const POLYNOMIAL = 0x82f63b78;
const STEP_BYTES = 16;
const WORD_BYTES = 4;

const TABLES = new Int32Array(STEP_BYTES * 256);
for (let b = 0; b < 256; b++) {
  let crc = b;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
  TABLES[b] = crc;
}
for (let i = 256; i < TABLES.length; i++) {
  const shorter = TABLES[i - 256];
  TABLES[i] = (shorter >>> 8) ^ TABLES[shorter & 0xff];
}

/** Below so many bytes a view of words costs more than it saves. */
const FEW_BYTES = 48;
const IS_LITTLE_ENDIAN = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

/**
 * The words of the buffer that was read last: the log's records are in few, and a view for each
 * record would be garbage. A large one is not kept.
 */
let kept: Int32Array = new Int32Array(0);
const MAX_KEPT_BYTES = 1 << 20;

/** The words of a whole buffer. */
function wordsOf(buffer: ArrayBufferLike): Int32Array {
  if (kept.buffer === buffer) return kept;
  const words = new Int32Array(buffer, 0, buffer.byteLength >>> 2);
  if (buffer.byteLength <= MAX_KEPT_BYTES) kept = words;
  return words;
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
  let c = ~crc;
  let i = start;
  if (IS_LITTLE_ENDIAN && end - start >= FEW_BYTES) {
    const aligned = start + (-(bytes.byteOffset + start) & (WORD_BYTES - 1));
    c = ofBytes(c, bytes, start, aligned);
    const steps = (end - aligned) >>> 4;
    const first = (bytes.byteOffset + aligned) / WORD_BYTES;
    c = ofWords(c, wordsOf(bytes.buffer), first, first + steps * 4);
    i = aligned + steps * STEP_BYTES;
  }
  return ~ofBytes(c, bytes, i, end) >>> 0;
}

/** The register after bytes[start, end). */
function ofBytes(register: number, bytes: Uint8Array, start: number, end: number): number {
  const t = TABLES;
  let c = register;
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
  return c;
}

/** The register after words[from, to), whose number is a multiple of four. */
function ofWords(register: number, words: Int32Array, from: number, to: number): number {
  const t = TABLES;
  let c = register;
  for (let i = from; i < to; i += 4) {
    c ^= words[i];
    const d = words[i + 1];
    const e = words[i + 2];
    const f = words[i + 3];
    c =
      t[3840 | (c & 0xff)] ^
      t[3584 | ((c >>> 8) & 0xff)] ^
      t[3328 | ((c >>> 16) & 0xff)] ^
      t[3072 | (c >>> 24)] ^
      t[2816 | (d & 0xff)] ^
      t[2560 | ((d >>> 8) & 0xff)] ^
      t[2304 | ((d >>> 16) & 0xff)] ^
      t[2048 | (d >>> 24)] ^
      t[1792 | (e & 0xff)] ^
      t[1536 | ((e >>> 8) & 0xff)] ^
      t[1280 | ((e >>> 16) & 0xff)] ^
      t[1024 | (e >>> 24)] ^
      t[768 | (f & 0xff)] ^
      t[512 | ((f >>> 8) & 0xff)] ^
      t[256 | ((f >>> 16) & 0xff)] ^
      t[f >>> 24];
  }
  return c;
}

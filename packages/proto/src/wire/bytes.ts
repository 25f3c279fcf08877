/**
 * Byte helpers: the one place of the pure packages that touches the Buffer global (it converts and
 * copies several times faster than TextDecoder or a loop). All return plain Uint8Arrays, never
 * Buffers, so that assertions and tools compare equal bytes as equal. The last ones are of 64-bit
 * integers.
 */

interface BufferStatics {
  allocUnsafeSlow(size: number): Uint8Array<ArrayBuffer>;
  byteLength(s: string): number;
  compare(a: Uint8Array, b: Uint8Array): number;
  readonly prototype: {
    latin1Slice(this: Uint8Array, start: number, end: number): string;
    utf8Slice(this: Uint8Array, start: number, end: number): string;
    hexSlice(this: Uint8Array, start: number, end: number): string;
    hexWrite(this: Uint8Array, s: string, offset: number, length: number): number;
    latin1Write(this: Uint8Array, s: string, offset: number, length: number): number;
    utf8Write(this: Uint8Array, s: string, offset: number, length: number): number;
    base64Slice(this: Uint8Array, start: number, end: number): string;
    base64Write(this: Uint8Array, s: string, offset: number, length: number): number;
    equals(this: Uint8Array, other: Uint8Array): boolean;
    copy(this: Uint8Array, target: Uint8Array, at: number, start: number, end: number): number;
  };
}
declare const Buffer: BufferStatics;

const latin1Slice = Buffer.prototype.latin1Slice;
const utf8Slice = Buffer.prototype.utf8Slice;
const hexSlice = Buffer.prototype.hexSlice;
const hexWrite = Buffer.prototype.hexWrite;
const latin1Write = Buffer.prototype.latin1Write;
const utf8Write = Buffer.prototype.utf8Write;
const base64Slice = Buffer.prototype.base64Slice;
const base64Write = Buffer.prototype.base64Write;
const bufferEquals = Buffer.prototype.equals;
const bufferCopy = Buffer.prototype.copy;

/** The empty byte string, shared. */
export const EMPTY: Uint8Array = new Uint8Array(0);

const POOL_BYTES = 64 * 1024;
const MAX_POOLED_BYTES = 8 * 1024;
let pool = Buffer.allocUnsafeSlow(POOL_BYTES).buffer;
let poolUsed = 0;

/**
 * A new array of n bytes with UNDEFINED contents: the caller writes every byte before it is read.
 * Arrays of up to 8 KiB are cut from a shared block of 64 KiB, so `result.buffer` is larger than
 * the array, holds other data, and stays alive as long as any array cut from it: copy small arrays
 * that live long with `slice()`.
 */
export function alloc(n: number): Uint8Array {
  if (n > MAX_POOLED_BYTES) return new Uint8Array(Buffer.allocUnsafeSlow(n).buffer);
  if (poolUsed + n > POOL_BYTES) {
    pool = Buffer.allocUnsafeSlow(POOL_BYTES).buffer;
    poolUsed = 0;
  }
  const start = poolUsed;
  // Starts are multiples of 8, so that copies into the arrays are aligned.
  poolUsed = (start + n + 7) & ~7;
  return new Uint8Array(pool, start, n);
}

/**
 * bytes[start, end) as a string with one char (U+0000 to U+00FF) per byte, so that string order is
 * byte order.
 */
export function toLatin1(bytes: Uint8Array, start = 0, end = bytes.length): string {
  return latin1Slice.call(bytes, start, end);
}

/** The bytes of a latin1 string; a char above U+00FF is truncated to its low byte. */
export function fromLatin1(s: string): Uint8Array {
  const bytes = alloc(s.length);
  latin1Write.call(bytes, s, 0, s.length);
  return bytes;
}

/** Writes a latin1 string into bytes at offset; bytes must have space for s.length bytes. */
export function writeLatin1(bytes: Uint8Array, s: string, offset: number): void {
  latin1Write.call(bytes, s, offset, s.length);
}

/** bytes[start, end) read as UTF-8; each malformed sequence becomes U+FFFD. */
export function toUtf8(bytes: Uint8Array, start = 0, end = bytes.length): string {
  return utf8Slice.call(bytes, start, end);
}

/** The UTF-8 bytes of a string; a lone surrogate becomes U+FFFD. */
export function fromUtf8(s: string): Uint8Array {
  const bytes = alloc(Buffer.byteLength(s));
  utf8Write.call(bytes, s, 0, bytes.length);
  return bytes;
}

/** The length of fromUtf8(s). */
export function utf8Length(s: string): number {
  return Buffer.byteLength(s);
}

/**
 * Writes s as UTF-8 into bytes at offset, where bytes must have space. Returns the number of bytes
 * written.
 */
export function writeUtf8(bytes: Uint8Array, s: string, offset: number): number {
  return utf8Write.call(bytes, s, offset, bytes.length - offset);
}

/** bytes[start, end) in base64 with padding (RFC 4648 section 4). */
export function toBase64(bytes: Uint8Array, start = 0, end = bytes.length): string {
  return base64Slice.call(bytes, start, end);
}

/**
 * Decodes base64 of either alphabet into bytes at offset, where there must be space, and returns
 * the number of bytes written. Characters that are not base64 are skipped, so that fewer bytes are
 * written than the text's length promises.
 */
export function writeFromBase64(bytes: Uint8Array, text: string, offset: number): number {
  return base64Write.call(bytes, text, offset, bytes.length - offset);
}

/**
 * Copies source[start, end) to target at `at`, as far as there is space. Unlike `set` with a
 * subarray it leaves no garbage, which counts where it is done for each record of a store.
 */
export function copyBytes(
  source: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  at: number,
): void {
  bufferCopy.call(source, target, at, start, end);
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** The bytes of base64 with padding (RFC 4648 section 4); undefined for other texts. */
export function fromBase64(text: string): Uint8Array | undefined {
  if (text.length % 4 !== 0 || !BASE64.test(text)) return undefined;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = alloc((text.length / 4) * 3 - padding);
  writeFromBase64(bytes, text, 0);
  return bytes;
}

/** All chunks in one new array. A single chunk is copied too. */
export function concat(chunks: readonly Uint8Array[]): Uint8Array {
  let total = 0;
  for (const chunk of chunks) total += chunk.length;
  const out = alloc(total);
  let at = 0;
  for (const chunk of chunks) {
    out.set(chunk, at);
    at += chunk.length;
  }
  return out;
}

/**
 * The end of the range of all keys with this prefix, in a new array: the first key after them, or a
 * zero byte, which stands for no end, if there is none.
 */
export function endOfPrefix(prefix: Uint8Array): Uint8Array {
  const last = prefix.findLastIndex((byte) => byte < 0xff);
  if (last === -1) return new Uint8Array(1);
  const end = concat([prefix.subarray(0, last + 1)]);
  end[last] = (end[last] ?? 0) + 1;
  return end;
}

/** Byte order: -1, 0 or 1; a prefix sorts before longer strings. */
export function compare(a: Uint8Array, b: Uint8Array): number {
  return Buffer.compare(a, b);
}

/** Shorter arrays are compared sooner here than the call into the platform takes. */
const MAX_LOOPED_BYTES = 64;

/** Same length and same bytes. */
export function equals(a: Uint8Array, b: Uint8Array): boolean {
  const { length } = a;
  if (length !== b.length) return false;
  if (length > MAX_LOOPED_BYTES) return bufferEquals.call(a, b);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** Lower-case hex, two digits per byte. */
export function toHex(bytes: Uint8Array): string {
  return hexSlice.call(bytes, 0, bytes.length);
}

/** The bytes of a hex string of either case; throws RangeError if it is not one. */
export function fromHex(hex: string): Uint8Array {
  if (!/^(?:[0-9a-fA-F]{2})*$/.test(hex))
    throw new RangeError(`not a hex string: ${JSON.stringify(hex)}`);
  const bytes = alloc(hex.length / 2);
  hexWrite.call(bytes, hex, 0, bytes.length);
  return bytes;
}

const TWO_32 = 0x1_0000_0000;

/**
 * Big-endian uint64 at offset as a number; throws RangeError above Number.MAX_SAFE_INTEGER or past
 * the end.
 */
export function readU64BE(bytes: Uint8Array, offset = 0): number {
  const value = readU32BE(bytes, offset) * TWO_32 + readU32BE(bytes, offset + 4);
  if (value > Number.MAX_SAFE_INTEGER)
    throw new RangeError(`uint64 at ${offset} is not a safe integer`);
  return value;
}

/** Writes value (0 to Number.MAX_SAFE_INTEGER, else RangeError) as big-endian uint64 at offset. */
export function writeU64BE(bytes: Uint8Array, value: number, offset = 0): void {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new RangeError(`not an unsigned safe integer: ${value}`);
  writeU32BE(bytes, Math.floor(value / TWO_32), offset);
  writeU32BE(bytes, value >>> 0, offset + 4);
}

/** Big-endian uint64 at offset as an unsigned bigint; throws RangeError past the end. */
export function readBigU64BE(bytes: Uint8Array, offset = 0): bigint {
  return (BigInt(readU32BE(bytes, offset)) << 32n) | BigInt(readU32BE(bytes, offset + 4));
}

/** Writes value (0 to 2^64-1, else RangeError) as big-endian uint64 at offset. */
export function writeBigU64BE(bytes: Uint8Array, value: bigint, offset = 0): void {
  if (value < 0n || value > 0xffff_ffff_ffff_ffffn) throw new RangeError(`not a uint64: ${value}`);
  writeU32BE(bytes, Number(value >> 32n), offset);
  writeU32BE(bytes, Number(value & 0xffff_ffffn), offset + 4);
}

/** Big-endian uint32 at offset; throws RangeError past the end. */
export function readU32BE(bytes: Uint8Array, offset: number): number {
  if (offset < 0 || offset + 4 > bytes.length)
    throw new RangeError(`4 bytes at ${offset} are outside of ${bytes.length}`);
  return (
    ((bytes[offset] << 24) |
      (bytes[offset + 1] << 16) |
      (bytes[offset + 2] << 8) |
      bytes[offset + 3]) >>>
    0
  );
}

/** Little-endian uint32 at `at`, which must be within the bytes. */
export function readU32LE(bytes: Uint8Array, at: number): number {
  return (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;
}

/** Writes the low 32 bits of value little-endian at `at`. */
export function writeU32LE(bytes: Uint8Array, at: number, value: number): void {
  for (let i = 0; i < 4; i++) bytes[at + i] = value >>> (8 * i);
}

/** Writes the low 32 bits of value big-endian at offset; throws RangeError past the end. */
export function writeU32BE(bytes: Uint8Array, value: number, offset: number): void {
  if (offset < 0 || offset + 4 > bytes.length)
    throw new RangeError(`4 bytes at ${offset} are outside of ${bytes.length}`);
  bytes[offset] = value >>> 24;
  bytes[offset + 1] = value >>> 16;
  bytes[offset + 2] = value >>> 8;
  bytes[offset + 3] = value;
}

/**
 * Scratch memory that converts 64-bit integers between two 32-bit words and a bigint, without
 * bigint arithmetic.
 */
export const U64: BigUint64Array = new BigUint64Array(1);
/** The same 8 bytes, signed. */
export const I64: BigInt64Array = new BigInt64Array(U64.buffer);
/** The same 8 bytes as two words. */
export const WORDS: Uint32Array = new Uint32Array(U64.buffer);

U64[0] = 1n;
/** Index in WORDS of the low word: 0 on a little-endian machine. */
export const LO: number = WORDS[0] === 1 ? 0 : 1;
/** Index in WORDS of the high word. */
export const HI: number = 1 - LO;

/** The unsigned 64-bit integer of two words, each of 32 bits without a sign. */
export function uint64Of(high: number, low: number): bigint {
  WORDS[LO] = low;
  WORDS[HI] = high;
  return U64[0];
}

/**
 * An id as etcd prints it: lower-case hex without padding; a negative one (a lease is an int64) as
 * its two's complement.
 */
export function idToHex(id: bigint): string {
  return BigInt.asUintN(64, id).toString(16);
}

/** The unsigned id of 1 to 16 hex digits, either case; undefined if the text is not one. */
export function idFromHex(hex: string): bigint | undefined {
  return /^[0-9a-fA-F]{1,16}$/.test(hex) ? BigInt(`0x${hex}`) : undefined;
}

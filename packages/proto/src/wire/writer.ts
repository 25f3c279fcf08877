/**
 * Writes protobuf's wire format into a growing buffer, in one pass: an embedded message gets one
 * byte for its length, and is moved up if it turns out longer than 127 bytes. Large values are
 * embedded as bytes, so the moved part is small.
 */
import { alloc, copyBytes, HI, I64, LO, U64, WORDS, writeUtf8 } from "./bytes.ts";

const TWO_32 = 0x1_0000_0000;
/** Size of a new writer's buffer. */
export const WRITER_INITIAL_BYTES = 4096;
/**
 * reset() drops a larger buffer, so that one large message does not hold memory for ever.
 */
export const WRITER_MAX_KEPT_BYTES: number = 1 << 20;

export class Writer {
  private bytes = new Uint8Array(WRITER_INITIAL_BYTES);
  private pos = 0;

  /** Discards the written bytes. */
  reset(): void {
    this.pos = 0;
    if (this.bytes.length > WRITER_MAX_KEPT_BYTES)
      this.bytes = new Uint8Array(WRITER_INITIAL_BYTES);
  }

  /**
   * A copy of the bytes written since reset() (from the pool of bytes.ts if small).
   */
  finish(): Uint8Array {
    const out = alloc(this.pos);
    copyBytes(this.bytes, 0, this.pos, out, 0);
    return out;
  }

  /** Copies the bytes written since reset() into `target` at `at`, where there must be space. */
  copyTo(target: Uint8Array, at: number): void {
    copyBytes(this.bytes, 0, this.pos, target, at);
  }

  /** Bytes written since reset(). */
  get length(): number {
    return this.pos;
  }

  /** Size of the buffer. */
  get capacityBytes(): number {
    return this.bytes.length;
  }

  /** A tag, a length or any uint32. */
  uint32(value: number): void {
    this.reserve(5);
    // Most tags and lengths are one byte.
    if (value <= 0x7f) this.bytes[this.pos++] = value;
    else this.pos = putVarint(this.bytes, this.pos, value);
  }

  /** A uint32 field's value; anything else throws RangeError. */
  checkedUint32(value: number): void {
    if (value >>> 0 !== value) throw new RangeError(`not a uint32: ${value}`);
    this.uint32(value);
  }

  bool(value: boolean): void {
    this.reserve(1);
    this.bytes[this.pos++] = value ? 1 : 0;
  }

  /** int32 or enum; a negative one takes ten bytes. Anything else throws RangeError. */
  int32(value: number): void {
    if ((value | 0) !== value) throw new RangeError(`not an int32: ${value}`);
    if (value >= 0) this.uint32(value);
    else this.words(value >>> 0, 0xffff_ffff);
  }

  /** Throws RangeError if value is not a safe integer of 0 or more. */
  uint64(value: number): void {
    if (value < 0) throw new RangeError(`not a uint64: ${value}`);
    this.int64(value);
  }

  /** Throws RangeError if value is not a safe integer. */
  int64(value: number): void {
    if (value >= 0 && value <= 0x7fff_ffff && (value | 0) === value) {
      this.uint32(value);
      return;
    }
    if (!Number.isSafeInteger(value)) throw new RangeError(`not a safe integer: ${value}`);
    this.words(value >>> 0, Math.floor(value / TWO_32) >>> 0);
  }

  /** Throws RangeError if value is neither a safe integer nor an int64. */
  int64Wide(value: number | bigint): void {
    if (typeof value === "bigint") this.bigInt64(value);
    else this.int64(value);
  }

  /** Throws RangeError if value is not a uint64. */
  bigUint64(value: bigint): void {
    U64[0] = value;
    if (U64[0] !== value) throw new RangeError(`not a uint64: ${value}`);
    this.words(WORDS[LO], WORDS[HI]);
  }

  /** Throws RangeError if value is not an int64. */
  bigInt64(value: bigint): void {
    I64[0] = value;
    if (I64[0] !== value) throw new RangeError(`not an int64: ${value}`);
    this.words(WORDS[LO], WORDS[HI]);
  }

  /** A fixed32's four bytes, the lowest first. */
  fixed32(value: number): void {
    this.reserve(4);
    for (let shift = 0; shift < 32; shift += 8) this.bytes[this.pos++] = (value >>> shift) & 0xff;
  }

  /** A fixed64's eight bytes, the lowest first. Throws RangeError if value is not a uint64. */
  fixed64(value: bigint): void {
    U64[0] = value;
    if (U64[0] !== value) throw new RangeError(`not a uint64: ${value}`);
    this.fixed32(WORDS[LO]);
    this.fixed32(WORDS[HI]);
  }

  /** A length and the bytes. */
  view(value: Uint8Array): void {
    const length = value.length;
    this.reserve(length + 5);
    this.uint32(length);
    this.bytes.set(value, this.pos);
    this.pos += length;
  }

  /** A length and the text as UTF-8. */
  string(value: string): void {
    // A UTF-16 unit takes at most three bytes.
    this.reserve(value.length * 3 + 5);
    const start = this.open();
    this.pos += writeUtf8(this.bytes, value, this.pos);
    this.close(start);
  }

  /** Opens a length-delimited field. Pass the result to close(). */
  open(): number {
    this.reserve(1);
    return ++this.pos;
  }

  /** Closes the field: inserts the length before the bytes written since open(). */
  close(start: number): void {
    const length = this.pos - start;
    if (length < 0x80) {
      this.bytes[start - 1] = length;
      return;
    }
    let more = 1;
    while (length >= 2 ** (7 * (more + 1))) more++;
    this.reserve(more);
    this.bytes.copyWithin(start + more, start, this.pos);
    const end = this.pos + more;
    this.pos = start - 1;
    this.uint32(length);
    this.pos = end;
  }

  private words(low: number, high: number): void {
    let lo = low;
    let hi = high;
    this.reserve(10);
    const bytes = this.bytes;
    let pos = this.pos;
    while (hi !== 0 || lo > 0x7f) {
      bytes[pos++] = (lo & 0x7f) | 0x80;
      lo = ((lo >>> 7) | (hi << 25)) >>> 0;
      hi >>>= 7;
    }
    bytes[pos++] = lo;
    this.pos = pos;
  }

  private reserve(n: number): void {
    if (this.bytes.length - this.pos < n) this.grow(n);
  }

  private grow(n: number): void {
    const bigger = new Uint8Array(Math.max(this.bytes.length * 2, this.pos + n));
    bigger.set(this.bytes.subarray(0, this.pos));
    this.bytes = bigger;
  }
}

/**
 * The writer that MessageType.encode() uses; encoding never calls back into another encode().
 */
export const sharedWriter: Writer = new Writer();

/**
 * Bytes of the varint of a safe integer of 0 or more: seven bits a byte, the lowest first, the top
 * bit set on all but the last.
 */
export function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) size++;
  return size;
}

/**
 * Writes a safe integer of 0 or more at `at`, where `bytes` must have space for it.
 * @returns the offset behind it
 */
export function putVarint(bytes: Uint8Array, at: number, value: number): number {
  let rest = value;
  let end = at;
  // Shifts take 32 bits, so larger values lose their first groups by division.
  for (; rest > 0xffff_ffff; rest = Math.floor(rest / 128)) bytes[end++] = (rest % 128) | 0x80;
  for (; rest > 0x7f; rest >>>= 7) bytes[end++] = (rest & 0x7f) | 0x80;
  bytes[end++] = rest;
  return end;
}

/** A tag and a length of up to 2^35. */
export const MAX_PREFIX_BYTES = 6;

/** ResponseOp.response_range and TxnResponse.responses. */
export const RESPONSE_RANGE_TAG = 0x0a;
export const RESPONSES_TAG = 0x1a;

/** The prefix of a field with a length: its tag, of one byte here, and the length as a varint. */
export function prefix(tag: number, length: number): Uint8Array {
  const bytes = alloc(MAX_PREFIX_BYTES);
  return bytes.subarray(0, writePrefix(bytes, 0, tag, length));
}

/** Writes the prefix of a field at `at`; returns where it ends. */
export function writePrefix(bytes: Uint8Array, at: number, tag: number, length: number): number {
  bytes[at] = tag;
  // The length of a message in a message may be 2^31 and more, which is refused only afterwards.
  return putVarint(bytes, at + 1, length);
}

/**
 * Reads protobuf's wire format from one byte array. Every read is checked against the end of the
 * message; a read beyond it throws WireError. Generated decoders call tag(), then the read of the
 * field.
 *
 *   tag = field number << 3 | wire type        wire types: 0 varint, 1 eight bytes, 2 length +
 *                                              bytes, 5 four bytes
 */
import { EMPTY, HI, I64, LO, toUtf8, U64, utf8Length, WORDS } from "./bytes.ts";
import { WireError } from "./error.ts";

/** Largest nesting of recursive messages (transactions). */
export const MAX_NESTING_DEPTH = 128;

/** Costs of reads besides 1 per field; 1 is about 30 ns. */
const WORK = { message: 8, string: 4 } as const;
const UNBOUNDED_WORK = 2 ** 31 - 1;

/** A message with more fields than the reader's limit; it may be well-formed otherwise. */
export class TooMuchWorkError extends WireError {
  constructor(offset: number) {
    super("too many fields", offset);
  }
}

const TWO_32 = 0x1_0000_0000;

export class Reader {
  bytes: Uint8Array;
  /** Offset of the next byte. */
  pos = 0;
  /** End of the message being read. */
  end: number;
  /** High word of the last varint, whose low word was the result. */
  hi = 0;
  /** Offset of bytes[0] in the message. */
  private base = 0;
  private depth = 0;
  /** Remaining work, in units of WORK. */
  private workLeft: number;

  /**
   * @param maxWork limit of work, in units of WORK, beyond which it throws TooMuchWorkError;
   * default none
   */
  constructor(bytes: Uint8Array, maxWork: number = UNBOUNDED_WORK) {
    this.bytes = bytes;
    this.end = bytes.length;
    this.workLeft = maxWork;
  }

  /**
   * Begins to read bytes[start, end), without a limit of work: one reader serves many small
   * messages.
   */
  reset(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    this.bytes = bytes;
    this.pos = start;
    this.end = end;
    this.base = 0;
    this.depth = 0;
    this.workLeft = UNBOUNDED_WORK;
  }

  /** Goes on with the bytes of the message that follow those read so far. */
  continueWith(bytes: Uint8Array): void {
    this.base += this.pos;
    this.bytes = bytes;
    this.pos = 0;
    this.end = bytes.length;
  }

  /** Offset of the next byte in the message. */
  get offset(): number {
    return this.base + this.pos;
  }

  /** The next field's tag. */
  tag(): number {
    const at = this.pos;
    if (--this.workLeft < 0) throw new TooMuchWorkError(at);
    const first = this.bytes[at];
    if (first >= 8 && first < 0x80 && at < this.end) {
      this.pos = at + 1;
      return first;
    }
    const tag = this.varint();
    if (this.hi !== 0 || tag < 8) throw this.failure("bad field number", at);
    return tag;
  }

  bool(): boolean {
    const lo = this.varint();
    return lo !== 0 || this.hi !== 0;
  }

  /** uint32; a longer varint is truncated to its low 32 bits, as in protobuf. */
  uint32(): number {
    const first = this.bytes[this.pos];
    if (first < 0x80 && this.pos < this.end) {
      this.pos++;
      return first;
    }
    return this.varint();
  }

  /** int32 or enum. */
  int32(): number {
    return this.uint32() | 0;
  }

  /** uint64 that must be a safe integer. */
  uint64(): number {
    const at = this.pos;
    const first = this.bytes[at];
    if (first < 0x80 && at < this.end) {
      this.pos = at + 1;
      return first;
    }
    const lo = this.varint();
    if (this.hi === 0) return lo;
    if (this.hi > 0x1f_ffff) throw this.failure("not a safe integer", at);
    return this.hi * TWO_32 + lo;
  }

  /** int64 that must be a safe integer. */
  int64(): number {
    const at = this.pos;
    const value = this.int64Inexact();
    if (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER)
      throw this.failure("not a safe integer", at);
    return value;
  }

  /**
   * int64, clamped to the safe integers; for bounds and limits, where that is equivalent.
   */
  int64Clamped(): number {
    return Math.max(
      Number.MIN_SAFE_INTEGER,
      Math.min(Number.MAX_SAFE_INTEGER, this.int64Inexact()),
    );
  }

  /** int64: a number, or a bigint where that is no safe integer. */
  int64Wide(): number | bigint {
    const { pos } = this;
    const value = this.int64Inexact();
    if (Number.isSafeInteger(value)) return value;
    this.pos = pos;
    return this.bigInt64();
  }

  private int64Inexact(): number {
    const at = this.pos;
    const first = this.bytes[at];
    if (first < 0x80 && at < this.end) {
      this.pos = at + 1;
      return first;
    }
    const lo = this.varint();
    return (this.hi | 0) * TWO_32 + lo;
  }

  /** uint64 as an unsigned bigint. */
  bigUint64(): bigint {
    WORDS[LO] = this.varint();
    WORDS[HI] = this.hi;
    return U64[0];
  }

  /** int64 as a signed bigint. */
  bigInt64(): bigint {
    WORDS[LO] = this.varint();
    WORDS[HI] = this.hi;
    return I64[0];
  }

  /** Eight bytes, little-endian, as an unsigned bigint. */
  fixed64(): bigint {
    WORDS[LO] = this.fixed32();
    WORDS[HI] = this.fixed32();
    return U64[0];
  }

  /** Four bytes, little-endian, as an unsigned number. */
  fixed32(): number {
    const { bytes, pos } = this;
    this.advance(4);
    const high = (bytes[pos + 3] << 24) | (bytes[pos + 2] << 16);
    return (high | (bytes[pos + 1] << 8) | bytes[pos]) >>> 0;
  }

  /** Moves behind the content of a length-delimited field; returns where the content begins. */
  content(): number {
    const length = this.length();
    const start = this.pos;
    this.pos = start + length;
    return start;
  }

  /** A length-delimited field as a view of the input. */
  view(): Uint8Array {
    const length = this.length();
    if (length === 0) return EMPTY;
    const start = this.pos;
    this.pos = start + length;
    return new Uint8Array(this.bytes.buffer, this.bytes.byteOffset + start, length);
  }

  /**
   * An embedded message kept encoded. Protobuf merges repeated occurrences; encoded messages merge
   * by concatenation.
   */
  viewMerged(before: Uint8Array | undefined): Uint8Array {
    const view = this.view();
    if (before === undefined || before.length === 0) return view;
    const joined = new Uint8Array(before.length + view.length);
    joined.set(before);
    joined.set(view, before.length);
    return joined;
  }

  /** UTF-8 text; malformed UTF-8 is refused, as Go's protobuf does. */
  string(): string {
    const length = this.length();
    if (length === 0) return "";
    this.workLeft -= WORK.string;
    const start = this.pos;
    this.pos = start + length;
    const text = toUtf8(this.bytes, start, this.pos);
    if (text.includes("\ufffd") && !sameUtf8(text, this.bytes, start, this.pos))
      throw this.failure("invalid UTF-8", start);
    return text;
  }

  /**
   * Enters an embedded message. Returns the end of the enclosing one, for leave().
   */
  enter(): number {
    const length = this.length();
    this.workLeft -= WORK.message;
    const outer = this.end;
    this.end = this.pos + length;
    return outer;
  }

  /**
   * As enter(), for a packed list of numbers: each byte counts as a field, since it may be a
   * number.
   */
  enterPacked(): number {
    const outer = this.enter();
    this.workLeft -= this.end - this.pos;
    if (this.workLeft < 0) throw new TooMuchWorkError(this.pos);
    return outer;
  }

  /** As enter(), for types that can contain themselves: limits the depth. */
  enterNested(): number {
    if (++this.depth > MAX_NESTING_DEPTH) throw this.failure("messages nested too deep", this.pos);
    return this.enter();
  }

  leave(outerEnd: number): void {
    this.end = outerEnd;
  }

  leaveNested(outerEnd: number): void {
    this.depth--;
    this.end = outerEnd;
  }

  /**
   * Skips a field that the decoder does not know; refuses one it knows (by `fields`) that came with
   * another wire type.
   */
  skip(tag: number, fields: FieldNames): void {
    if (fields[tag >>> 3] !== undefined) throw this.failure(`wrong wire type ${tag & 7}`, this.pos);
    switch (tag & 7) {
      case 0:
        this.varint();
        break;
      case 1:
        this.advance(8);
        break;
      case 2:
        this.content();
        break;
      case 5:
        this.advance(4);
        break;
      default:
        throw this.failure(`unsupported wire type ${tag & 7}`, this.pos);
    }
  }

  /**
   * The error for a decoder to rethrow: e itself, with message and field added to a WireError.
   */
  failed(e: unknown, typeName: string, fields: FieldNames, tag: number): unknown {
    return e instanceof WireError ? e.locate(typeName, fields[tag >>> 3] ?? "") : e;
  }

  private failure(reason: string, at: number): WireError {
    return new WireError(reason, this.base + at);
  }

  private length(): number {
    const at = this.pos;
    const first = this.bytes[at];
    let length = first;
    if (first < 0x80 && at < this.end) this.pos = at + 1;
    else {
      length = this.varint();
      if (this.hi !== 0) throw this.failure("length past the end", at);
    }
    if (length > this.end - this.pos) throw this.failure("length past the end", at);
    return length;
  }

  private advance(n: number): void {
    if (n > this.end - this.pos) throw this.failure("truncated", this.pos);
    this.pos += n;
  }

  /** A varint of up to 64 bits: returns its low word, stores its high word in `hi`. */
  varint(): number {
    const bytes = this.bytes;
    const end = this.end;
    const start = this.pos;
    let pos = start;
    let lo = 0;
    let b = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      if (pos >= end) throw this.failure("truncated varint", start);
      b = bytes[pos++];
      lo |= (b & 0x7f) << shift;
      if (b < 0x80) {
        this.pos = pos;
        this.hi = 0;
        return lo;
      }
    }
    if (pos >= end) throw this.failure("truncated varint", start);
    b = bytes[pos++];
    lo |= b << 28;
    let hi = (b & 0x7f) >>> 4;
    for (let shift = 3; b >= 0x80; shift += 7) {
      if (pos >= end) throw this.failure("truncated varint", start);
      b = bytes[pos++];
      // The tenth byte has the last bit.
      if (shift === 31 && b > 1) throw this.failure("varint over 64 bits", start);
      hi |= (b & 0x7f) << shift;
    }
    this.pos = pos;
    this.hi = hi >>> 0;
    return lo >>> 0;
  }
}

/**
 * A repeated field with one more item. A list that is made for its first item has space for it
 * alone; one that is empty makes space for sixteen with the first.
 */
export function added<T>(list: T[], item: T): T[] {
  if (list.length === 0) return [item];
  list.push(item);
  return list;
}

/** Field names of a message type by field number. */
export type FieldNames = { readonly [number: number]: string };

function sameUtf8(text: string, bytes: Uint8Array, start: number, end: number): boolean {
  // Text with a replacement char is rare: a slow check is enough. Each U+FFFD must be its own three
  // bytes in the input.
  if (utf8Length(text) !== end - start) return false;
  let at = start;
  for (const char of text) {
    if (
      char === "\ufffd" &&
      (bytes[at] !== 0xef || bytes[at + 1] !== 0xbf || bytes[at + 2] !== 0xbd)
    )
      return false;
    at += utf8Length(char);
  }
  return true;
}

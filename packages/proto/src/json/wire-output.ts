/**
 * The protobuf side of a request's transcoding. An embedded message gets one byte for its length;
 * the few that turn out longer than 127 bytes are widened together at the end, so that nesting
 * costs no repeated moves.
 */
import { alloc, HI, I64, LO, U64, WORDS } from "../wire/bytes.ts";
import { putVarint, varintSize } from "../wire/writer.ts";

const TWO_32 = 0x1_0000_0000;
const FIRST_BYTES = 4096;
/** A larger buffer is not kept for the next request. */
const MAX_KEPT_BYTES = 1 << 20;
/** The longest varint. */
const MAX_VARINT_BYTES = 10;
/** A length of an embedded message that fits in its one byte. */
const MAX_SHORT_LENGTH = 0x7f;

let spare: Uint8Array | undefined;

/** A growing buffer of one message. */
export class WireOutput {
  bytes: Uint8Array;
  /** Where the next byte goes. */
  at = 0;
  /** Each length that needs more than one byte: its place, and the length. By closing. */
  #places: number[] = [];
  #lengths: number[] = [];
  /** Bytes that the widened lengths will add. */
  #extra = 0;

  constructor() {
    this.bytes = spare ?? new Uint8Array(FIRST_BYTES);
    spare = undefined;
  }

  /** Makes space for `size` more bytes. */
  reserve(size: number): void {
    if (this.bytes.length - this.at >= size) return;
    const larger = new Uint8Array(Math.max(this.bytes.length * 2, this.at + size));
    larger.set(this.bytes.subarray(0, this.at));
    this.bytes = larger;
  }

  /** A tag, a length, or any safe integer of 0 or more. */
  varint(value: number): void {
    this.reserve(MAX_VARINT_BYTES);
    if (value <= 0x7f) this.bytes[this.at++] = value;
    else this.at = putVarint(this.bytes, this.at, value);
  }

  /** A safe integer; a negative one takes ten bytes. */
  integer(value: number): void {
    if (value >= 0) this.varint(value);
    else this.#words(value >>> 0, Math.floor(value / TWO_32) >>> 0);
  }

  /** An int64 or uint64. */
  bigInteger(value: bigint): void {
    if (value < 0n) I64[0] = value;
    else U64[0] = value;
    this.#words(WORDS[LO], WORDS[HI]);
  }

  /** A length and the bytes. */
  view(value: Uint8Array): void {
    this.varint(value.length);
    this.reserve(value.length);
    this.bytes.set(value, this.at);
    this.at += value.length;
  }

  /** Opens an embedded message or a packed list. Pass the result to `close`. */
  open(): Opened {
    this.reserve(1);
    return { start: ++this.at, extra: this.#extra };
  }

  close(opened: Opened): void {
    const length = this.at - opened.start + (this.#extra - opened.extra);
    if (length <= MAX_SHORT_LENGTH) {
      this.bytes[opened.start - 1] = length;
      return;
    }
    this.#places.push(opened.start - 1);
    this.#lengths.push(length);
    this.#extra += varintSize(length) - 1;
  }

  /** The message, in an array of its own. The output cannot be used afterwards. */
  finish(): Uint8Array {
    const out = alloc(this.at + this.#extra);
    if (this.#extra === 0) out.set(this.bytes.subarray(0, this.at));
    else this.#widen(out);
    this.release();
    return out;
  }

  /** Leaves the buffer to the next request. */
  release(): void {
    if (this.bytes.length <= MAX_KEPT_BYTES) spare = this.bytes;
  }

  #widen(out: Uint8Array): void {
    const order = this.#places.map((place, i) => [place, this.#lengths[i]]);
    order.sort((a, b) => a[0] - b[0]);
    let from = 0;
    let to = 0;
    for (const [place, length] of order) {
      out.set(this.bytes.subarray(from, place), to);
      to = putVarint(out, to + place - from, length);
      from = place + 1;
    }
    out.set(this.bytes.subarray(from, this.at), to);
  }

  #words(low: number, high: number): void {
    let lo = low;
    let hi = high;
    this.reserve(MAX_VARINT_BYTES);
    while (hi !== 0 || lo > 0x7f) {
      this.bytes[this.at++] = (lo & 0x7f) | 0x80;
      lo = ((lo >>> 7) | (hi << 25)) >>> 0;
      hi >>>= 7;
    }
    this.bytes[this.at++] = lo;
  }
}

/** An embedded message that is being written. */
export interface Opened {
  readonly start: number;
  readonly extra: number;
}

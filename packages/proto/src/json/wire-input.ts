/**
 * A protobuf message that arrives in pieces. Values are read as views of a piece; one that spans
 * pieces is joined first. Offsets count from the start of the message.
 */
import { alloc, EMPTY } from "../wire/bytes.ts";
import { WireError } from "../wire/error.ts";
import type { WirePieces } from "./interface.ts";

/** A tag and a length, or a tag and a number, fit in it. */
const MAX_HEAD_BYTES = 20;

const NO_PIECES: WirePieces = { next: () => undefined };

/** Reads a message; all reads throw WireError beyond its end. */
export class WireInput {
  /** The present piece, and the next byte in it. */
  bytes: Uint8Array = EMPTY;
  pos = 0;
  /** The offset of bytes[0]. */
  #base = 0;
  #source: WirePieces;
  #ended = false;
  /** High word of the last varint, whose low word is the result. */
  hi = 0;

  constructor(message: Uint8Array | WirePieces) {
    if (message instanceof Uint8Array) {
      this.bytes = message;
      this.#source = NO_PIECES;
      this.#ended = true;
    } else this.#source = message;
  }

  /** The offset of the next byte. */
  get offset(): number {
    return this.#base + this.pos;
  }

  /** Whether no byte is left. */
  atEnd(): boolean {
    while (this.pos === this.bytes.length) {
      if (this.#ended) return true;
      this.#take();
    }
    return false;
  }

  /** Makes a field's tag, and its number or length, readable; called before each field. */
  head(): void {
    if (this.bytes.length - this.pos < MAX_HEAD_BYTES && !this.#ended) this.#gather(MAX_HEAD_BYTES);
  }

  /** Moves to a value of `size` bytes, and returns its place in `bytes`. */
  value(size: number): number {
    if (this.bytes.length - this.pos < size) {
      this.#gather(size);
      if (this.bytes.length - this.pos < size)
        throw new WireError("length past the end", this.offset);
    }
    const start = this.pos;
    this.pos += size;
    return start;
  }

  /** A varint: returns its low word, and leaves its high word in `hi`. */
  varint(): number {
    const { bytes } = this;
    const first = bytes[this.pos];
    if (first < 0x80) {
      this.pos++;
      this.hi = 0;
      return first;
    }
    let lo = 0;
    let hi = 0;
    for (let i = 0, shift = 0; i < 10; i++, shift += 7) {
      const at = this.pos + i;
      if (at >= bytes.length) throw new WireError("truncated varint", this.offset);
      const byte = bytes[at];
      const bits = byte & 0x7f;
      if (shift < 28) lo |= bits << shift;
      else if (shift === 28) {
        lo |= bits << 28;
        hi = bits >>> 4;
      } else hi |= bits << (shift - 32);
      if (byte >= 0x80) continue;
      if (i === 9 && byte > 1) break;
      this.pos = at + 1;
      this.hi = hi >>> 0;
      return lo >>> 0;
    }
    throw new WireError("varint over 64 bits", this.offset);
  }

  /** A length, or a tag. */
  uint32(): number {
    const value = this.varint();
    if (this.hi !== 0) throw new WireError("length past the end", this.offset);
    return value;
  }

  #take(): void {
    const piece = this.#source.next();
    this.#base += this.bytes.length;
    this.pos = 0;
    this.bytes = piece ?? EMPTY;
    this.#ended = piece === undefined;
  }

  /** Joins pieces until `size` bytes are there, or none are left. */
  #gather(size: number): void {
    if (this.atEnd()) return;
    let held = this.bytes.length - this.pos;
    if (held >= size || this.#ended) return;
    const parts = [this.bytes.subarray(this.pos)];
    while (held < size && !this.#ended) {
      const piece = this.#source.next();
      if (piece === undefined) this.#ended = true;
      else {
        parts.push(piece);
        held += piece.length;
      }
    }
    const joined = alloc(held);
    let at = 0;
    for (const part of parts) {
      joined.set(part, at);
      at += part.length;
    }
    this.#base += this.pos;
    this.bytes = joined;
    this.pos = 0;
  }
}

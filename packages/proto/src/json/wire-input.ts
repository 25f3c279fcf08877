/**
 * A protobuf message that arrives in pieces. Values are read as views of a piece; one that spans
 * pieces is joined first.
 */
import { concat, EMPTY } from "../wire/bytes.ts";
import { WireError } from "../wire/error.ts";
import { Reader } from "../wire/reader.ts";
import type { WirePieces } from "./interface.ts";

/** A tag and a length, or a tag and a number, fit in it. */
const MAX_HEAD_BYTES = 20;

const NO_PIECES: WirePieces = { next: () => undefined };

/**
 * Shows a reader the pieces one by one. Its `bytes` are the present piece, and its `offset` counts
 * from the start of the message.
 */
export class WireInput {
  readonly reader: Reader;
  readonly #source: WirePieces;
  #ended: boolean;

  constructor(message: Uint8Array | WirePieces) {
    const isWhole = message instanceof Uint8Array;
    this.reader = new Reader(isWhole ? message : EMPTY);
    this.#source = isWhole ? NO_PIECES : message;
    this.#ended = isWhole;
  }

  /** Whether no byte is left. */
  atEnd(): boolean {
    const { reader } = this;
    while (reader.pos === reader.end) {
      if (this.#ended) return true;
      reader.continueWith(this.#next());
    }
    return false;
  }

  /** Makes a field's tag, and its number or length, readable; called before each field. */
  head(): void {
    this.#gather(MAX_HEAD_BYTES);
  }

  /** A length, of content that may be in later pieces. Throws WireError. */
  size(): number {
    const { reader } = this;
    const size = reader.varint();
    if (reader.hi !== 0) throw new WireError("length past the end", reader.offset);
    return size;
  }

  /** Moves behind `size` bytes; returns where they begin. Throws WireError beyond the end. */
  content(size: number): number {
    const { reader } = this;
    this.#gather(size);
    if (reader.end - reader.pos < size) throw new WireError("length past the end", reader.offset);
    const start = reader.pos;
    reader.pos += size;
    return start;
  }

  /** Empty at the end. */
  #next(): Uint8Array {
    const piece = this.#source.next();
    this.#ended = piece === undefined;
    return piece ?? EMPTY;
  }

  /** Joins pieces until `size` bytes are there, or none are left. */
  #gather(size: number): void {
    const { reader } = this;
    if (this.atEnd()) return;
    let held = reader.end - reader.pos;
    if (held >= size || this.#ended) return;
    const parts = [reader.bytes.subarray(reader.pos)];
    while (held < size && !this.#ended) {
      const piece = this.#next();
      parts.push(piece);
      held += piece.length;
    }
    reader.continueWith(concat(parts));
  }
}

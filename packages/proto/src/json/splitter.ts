/** Cuts the body of a stream request into JSON values. */
import { EMPTY } from "../wire/bytes.ts";
import type { RequestSplitting } from "./interface.ts";
import { JsonError, JsonLimitError } from "./json-error.ts";
import { isSpace, JsonScanner, UNEXPECTED_EOF } from "./scanner.ts";

const FIRST_BUFFER_BYTES = 256;

/**
 * Splits as Go's json.Decoder does: values may follow each other with or without spaces. Each byte
 * is scanned once. A value that arrives in one chunk is a view of it.
 */
export class JsonSplitter implements RequestSplitting {
  readonly #maxValueBytes: number;
  readonly #scanner = new JsonScanner();
  /** Chunks that are not scanned yet. */
  #chunks: Uint8Array[] = [];
  #chunkBytes = 0;
  /** The scanned bytes of a value that is not complete. */
  #part: Uint8Array = EMPTY;
  #partBytes = 0;
  #ended = false;
  #failed: unknown;

  /** @param maxValueBytes the longest value that is returned */
  constructor(maxValueBytes: number) {
    this.#maxValueBytes = maxValueBytes;
  }

  get bufferedBytes(): number {
    return this.#chunkBytes + this.#partBytes;
  }

  push(chunk: Uint8Array): void {
    if (chunk.length === 0 || this.#failed !== undefined) return;
    this.#chunks.push(chunk);
    this.#chunkBytes += chunk.length;
  }

  end(): void {
    this.#ended = true;
  }

  next(): Uint8Array | undefined {
    if (this.#failed !== undefined) throw this.#failed;
    try {
      return this.#next();
    } catch (error) {
      this.#failed = error;
      this.#chunks = [];
      this.#part = EMPTY;
      this.#chunkBytes = this.#partBytes = 0;
      throw error;
    }
  }

  #next(): Uint8Array | undefined {
    while (this.#chunks.length > 0) {
      const chunk = this.#chunks[0];
      const start = this.#scanner.atStart ? spacesEnd(chunk) : 0;
      const end = this.#scanner.scan(chunk, start, chunk.length);
      const stop = end < 0 ? chunk.length : end;
      if (this.#partBytes + stop - start > this.#maxValueBytes)
        throw new JsonLimitError(`a JSON value of more than ${this.#maxValueBytes} bytes`);
      this.#chunkBytes -= stop;
      if (stop < chunk.length) this.#chunks[0] = chunk.subarray(stop);
      else this.#chunks.shift();
      const piece = chunk.subarray(start, stop);
      if (end < 0) this.#keep(piece);
      else return this.#finish(piece);
    }
    if (!this.#ended || this.#partBytes === 0) return undefined;
    if (!this.#scanner.endsHere()) throw new JsonError(UNEXPECTED_EOF);
    return this.#finish(EMPTY);
  }

  #keep(piece: Uint8Array): void {
    const size = this.#partBytes + piece.length;
    if (size > this.#part.length) {
      const larger = new Uint8Array(Math.max(FIRST_BUFFER_BYTES, size, this.#part.length * 2));
      larger.set(this.#part.subarray(0, this.#partBytes));
      this.#part = larger;
    }
    this.#part.set(piece, this.#partBytes);
    this.#partBytes = size;
  }

  #finish(piece: Uint8Array): Uint8Array {
    this.#scanner.reset();
    if (this.#partBytes === 0) return piece;
    this.#keep(piece);
    const value = this.#part.subarray(0, this.#partBytes);
    this.#part = EMPTY;
    this.#partBytes = 0;
    return value;
  }
}

function spacesEnd(chunk: Uint8Array): number {
  let at = 0;
  while (at < chunk.length && isSpace(chunk[at])) at++;
  return at;
}

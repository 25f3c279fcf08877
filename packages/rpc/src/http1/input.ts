/**
 * The bytes that were received and not yet consumed: one range of one array. A chunk is used in
 * place; only what an earlier chunk left over is copied, in total at most twice per byte.
 */
import { alloc, EMPTY } from "@quorate/proto";

const MIN_OWNED_BYTES = 1024;

export class Input {
  /** bytes[start, end) are to be consumed; consumed bytes do not change any more. */
  bytes: Uint8Array = EMPTY;
  start = 0;
  end = 0;
  /** `bytes` is an array of this class, with space behind `end`. */
  #isOwned = false;

  get length(): number {
    return this.end - this.start;
  }

  /** Appends a chunk, which must not change any more. Returns by how much positions have moved. */
  push(chunk: Uint8Array): number {
    const { start, end } = this;
    if (start === end) {
      this.bytes = chunk;
      this.start = 0;
      this.end = chunk.length;
      this.#isOwned = false;
      return -start;
    }
    if (this.#isOwned && end + chunk.length <= this.bytes.length) {
      this.bytes.set(chunk, end);
      this.end += chunk.length;
      return 0;
    }
    const size = end - start;
    const owned = alloc(Math.max(MIN_OWNED_BYTES, 2 * (size + chunk.length)));
    owned.set(this.bytes.subarray(start, end));
    owned.set(chunk, size);
    this.bytes = owned;
    this.start = 0;
    this.end = size + chunk.length;
    this.#isOwned = true;
    return -start;
  }

  /** Consumes the next n bytes, and returns them. */
  take(n: number): Uint8Array {
    const from = this.start;
    this.start += n;
    return this.bytes.subarray(from, this.start);
  }

  /** Lets go of an array whose bytes are all consumed. */
  shrink(): void {
    if (this.start !== this.end) return;
    this.bytes = EMPTY;
    this.start = 0;
    this.end = 0;
    this.#isOwned = false;
  }
}

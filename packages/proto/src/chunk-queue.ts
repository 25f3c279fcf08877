/**
 * The bytes of a stream as they arrive in chunks, to be cut into records again without copying
 * whole chunks.
 */
import { alloc, concat, EMPTY } from "./wire/bytes.ts";

/**
 * Shorter chunks are copied together, so that a stream in tiny pieces does not cost an object for
 * each.
 */
const MIN_KEPT_CHUNK_BYTES = 512;
const GATHERED_BYTES = 4096;

/** Chunks in order. The caller bounds how many bytes it pushes before it takes some. */
export class ChunkQueue {
  #chunks: Uint8Array[] = [];
  #sizeBytes = 0;
  /** The buffer for short chunks: its used part is the last chunk while this is set. */
  #gathered: Uint8Array | undefined;

  /** Bytes pushed and not taken yet. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Appends a chunk, which must not change any more. */
  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#sizeBytes += chunk.length;
    if (this.#chunks.length > 0 && chunk.length < MIN_KEPT_CHUNK_BYTES) this.#gather(chunk);
    else {
      this.#gathered = undefined;
      this.#chunks.push(chunk);
    }
  }

  /**
   * The first `size` bytes, without taking them; at most sizeBytes. A view that may be longer than
   * `size`.
   */
  peek(size: number): Uint8Array {
    if (size > 0 && this.#chunks[0].length < size) this.#join();
    return this.#chunks[0] ?? EMPTY;
  }

  /**
   * Takes the first `size` bytes, at most sizeBytes: a view of their chunk where they arrived in
   * one.
   */
  take(size: number): Uint8Array {
    if (size === 0) return EMPTY;
    this.#sizeBytes -= size;
    this.#gathered = undefined;
    if (this.#chunks[0].length < size) this.#join();
    const first = this.#chunks[0];
    if (first.length > size) this.#chunks[0] = first.subarray(size);
    else this.#chunks.shift();
    return first.length === size ? first : first.subarray(0, size);
  }

  #gather(chunk: Uint8Array): void {
    const last = this.#chunks.length - 1;
    const used = this.#gathered === undefined ? 0 : this.#chunks[last].length;
    if (this.#gathered === undefined || used + chunk.length > GATHERED_BYTES) {
      this.#gathered = alloc(GATHERED_BYTES);
      this.#gathered.set(chunk);
      this.#chunks.push(this.#gathered.subarray(0, chunk.length));
      return;
    }
    this.#gathered.set(chunk, used);
    this.#chunks[last] = this.#gathered.subarray(0, used + chunk.length);
  }

  #join(): void {
    this.#chunks = [concat(this.#chunks)];
    this.#gathered = undefined;
  }
}

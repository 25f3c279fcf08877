/**
 * The free list of large output buffers, shared by all connections. A long response fills hundreds
 * of them; recently used memory is in the processor's cache, and the garbage collector has less
 * work.
 */
import { alloc } from "@quorate/proto";

/** Size of a pooled buffer. */
export const POOLED_BUFFER_BYTES: number = 64 * 1024;
/** Maximum bytes of free buffers that are kept. */
export const MAX_FREE_BYTES: number = 1024 * 1024;

export class BufferPool {
  readonly #free: Uint8Array[] = [];

  /** Bytes of free buffers. */
  get freeBytes(): number {
    return this.#free.length * POOLED_BUFFER_BYTES;
  }

  /** A buffer of POOLED_BUFFER_BYTES with undefined contents. */
  take(): Uint8Array {
    return this.#free.pop() ?? alloc(POOLED_BUFFER_BYTES);
  }

  /** Returns a buffer to the pool; the caller must not refer to it any more. */
  give(buffer: Uint8Array): void {
    if (this.freeBytes < MAX_FREE_BYTES) this.#free.push(buffer);
  }
}

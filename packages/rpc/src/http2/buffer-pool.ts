/**
 * The large buffers of all connections' outputs that are not in use. A long answer fills hundreds
 * of them; memory that was used a moment ago is in the processor's cache, and the collector has
 * nothing to do with it.
 */
import { alloc } from "@quorate/proto";

/** Size of a pooled buffer. */
export const POOLED_BUFFER_BYTES: number = 64 * 1024;
/** Bytes of buffers that are kept for the next who needs one. */
export const MAX_FREE_BYTES: number = 1024 * 1024;

export class BufferPool {
  readonly #free: Uint8Array[] = [];

  /** Bytes that are kept at the moment. */
  get freeBytes(): number {
    return this.#free.length * POOLED_BUFFER_BYTES;
  }

  /** A buffer of POOLED_BUFFER_BYTES with UNDEFINED contents. */
  take(): Uint8Array {
    return this.#free.pop() ?? alloc(POOLED_BUFFER_BYTES);
  }

  /** Gives back a buffer that `take` gave and nobody refers to any more. */
  give(buffer: Uint8Array): void {
    if (this.freeBytes < MAX_FREE_BYTES) this.#free.push(buffer);
  }
}

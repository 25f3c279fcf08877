/**
 * Splits the bytes of a connection into frames (RFC 9113 section 4.1). A frame that arrives in one
 * chunk is passed on in place, without a copy.
 */
import { DEFAULT_MAX_FRAME_BYTES, FRAME_HEADER_BYTES } from "./constants.ts";

export interface FrameHandler {
  /** One complete frame; its payload is bytes[start, start + length). Returns false to stop. */
  frame(
    bytes: Uint8Array,
    start: number,
    length: number,
    type: number,
    flags: number,
    streamId: number,
  ): boolean;
  /** A frame is longer than allowed. No more calls follow. */
  frameTooLong(length: number, type: number, streamId: number): void;
}

export class FrameSplitter {
  readonly #handler: FrameHandler;
  /**
   * The beginning of an incomplete frame: the first #have bytes of its header, or of the whole
   * frame.
   */
  #part: Uint8Array | undefined;
  #have = 0;
  /** Number of frames that did not arrive in one chunk. */
  partsBegun = 0;

  constructor(handler: FrameHandler) {
    this.#handler = handler;
  }

  /** Whether the last chunk ended within a frame. */
  get midFrame(): boolean {
    return this.#part !== undefined;
  }

  /** Processes chunk[at, end of chunk), which must not change any more. */
  push(chunk: Uint8Array, at: number): void {
    const end = chunk.length;
    if (this.#part !== undefined) {
      at = this.#complete(chunk, at);
      if (at < 0) return;
    }
    while (end - at >= FRAME_HEADER_BYTES) {
      const length = (chunk[at] << 16) | (chunk[at + 1] << 8) | chunk[at + 2];
      if (length > DEFAULT_MAX_FRAME_BYTES) {
        this.#handler.frameTooLong(length, chunk[at + 3], streamIdAt(chunk, at));
        return;
      }
      const start = at + FRAME_HEADER_BYTES;
      if (start + length > end) break;
      if (
        !this.#handler.frame(
          chunk,
          start,
          length,
          chunk[at + 3],
          chunk[at + 4],
          streamIdAt(chunk, at),
        )
      )
        return;
      at = start + length;
    }
    if (at < end) this.#keep(chunk, at);
  }

  #keep(chunk: Uint8Array, at: number): void {
    const have = chunk.length - at;
    const whole =
      have < FRAME_HEADER_BYTES ? 0 : (chunk[at] << 16) | (chunk[at + 1] << 8) | chunk[at + 2];
    this.#part = new Uint8Array(FRAME_HEADER_BYTES + whole);
    this.#part.set(chunk.subarray(at));
    this.#have = have;
    this.partsBegun++;
  }

  /**
   * Continues an incomplete frame. Returns the offset of the next frame, or -1 if the chunk is used
   * up or the handler stopped.
   */
  #complete(chunk: Uint8Array, at: number): number {
    let part = this.#part!;
    for (;;) {
      const n = Math.min(part.length - this.#have, chunk.length - at);
      part.set(chunk.subarray(at, at + n), this.#have);
      this.#have += n;
      at += n;
      if (this.#have < part.length) return -1;
      const length = (part[0] << 16) | (part[1] << 8) | part[2];
      if (part.length === FRAME_HEADER_BYTES + length) {
        this.#part = undefined;
        return this.#handler.frame(
          part,
          FRAME_HEADER_BYTES,
          length,
          part[3],
          part[4],
          streamIdAt(part, 0),
        )
          ? at
          : -1;
      }
      if (length > DEFAULT_MAX_FRAME_BYTES) {
        this.#handler.frameTooLong(length, part[3], streamIdAt(part, 0));
        return -1;
      }
      const larger = new Uint8Array(FRAME_HEADER_BYTES + length);
      larger.set(part);
      this.#part = part = larger;
    }
  }
}

function streamIdAt(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at + 5] & 0x7f) << 24) | (bytes[at + 6] << 16) | (bytes[at + 7] << 8) | bytes[at + 8]
  );
}

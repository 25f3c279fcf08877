/** A header block that arrives in several frames (RFC 9113 section 6.10). */
import { concat } from "@quorate/proto";

export class HeaderBlock {
  readonly streamId: number;
  readonly endStream: boolean;
  readonly dependsOnItself: boolean;
  /** Monotonic milliseconds. */
  readonly begunMs: number;
  /** Frames so far. */
  frames = 0;
  sizeBytes = 0;
  readonly #parts: Uint8Array[] = [];

  constructor(streamId: number, endStream: boolean, dependsOnItself: boolean, begunMs: number) {
    this.streamId = streamId;
    this.endStream = endStream;
    this.dependsOnItself = dependsOnItself;
    this.begunMs = begunMs;
  }

  /** Takes a copy: small frames in large chunks would keep the chunks alive. */
  append(bytes: Uint8Array, start: number, end: number): void {
    this.frames++;
    this.sizeBytes += end - start;
    if (end > start) this.#parts.push(new Uint8Array(bytes.subarray(start, end)));
  }

  join(): Uint8Array {
    return concat(this.#parts);
  }
}

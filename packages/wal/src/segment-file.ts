/**
 * A segment as bytes to read: in windows, so that a record that stays in memory does not keep a whole segment there.
 */
import type { Disk, DiskFile } from "@quorate/host";

const WINDOW_BYTES = 1 << 20;
const EMPTY = new Uint8Array(0);

export class SegmentFile {
  readonly sizeBytes: number;
  readonly #file: DiskFile;
  #window: Uint8Array = EMPTY;
  #windowAt = 0;

  constructor(disk: Disk, path: string) {
    this.#file = disk.open(path, "read");
    this.sizeBytes = this.#file.size();
  }

  /** The bytes from `offset` to `offset + length`, which must lie in the file. A view that stays good. */
  view(offset: number, length: number): Uint8Array {
    if (offset < this.#windowAt || offset + length > this.#windowAt + this.#window.length) {
      // Views of the old window are out, so it is not used again.
      const window = new Uint8Array(Math.min(Math.max(WINDOW_BYTES, length), this.sizeBytes - offset));
      const count = this.#file.read(window, offset);
      this.#window = count === window.length ? window : window.subarray(0, count);
      this.#windowAt = offset;
    }
    return this.#window.subarray(offset - this.#windowAt, offset - this.#windowAt + length);
  }

  /** The place of the first byte that is not zero in [from, to), or undefined. */
  firstNonZero(from: number, to: number): number | undefined {
    for (let at = from; at < to; ) {
      const bytes = this.view(at, Math.min(WINDOW_BYTES, to - at));
      const found = bytes.findIndex((byte) => byte !== 0);
      if (found >= 0) return at + found;
      at += bytes.length;
    }
    return undefined;
  }

  /** The place behind the last byte that is not zero in [from, to), or `from`. */
  endOfNonZero(from: number, to: number): number {
    for (let end = to; end > from; ) {
      const start = Math.max(from, end - WINDOW_BYTES);
      const found = this.view(start, end - start).findLastIndex((byte) => byte !== 0);
      if (found >= 0) return start + found + 1;
      end = start;
    }
    return from;
  }

  close(): void {
    this.#file.close();
  }
}

/**
 * A segment as bytes to read: in windows, so that a record that stays in memory does not keep a whole segment there.
 */
import { type Disk, DiskError, type DiskFile } from "@quorate/host";
import { equals } from "@quorate/proto";

const WINDOW_BYTES = 1 << 20;
const EMPTY = new Uint8Array(0);
const ZEROS = new Uint8Array(64 << 10);

export class SegmentFile {
  readonly sizeBytes: number;
  /** The bytes that `locate` points into. */
  window: Uint8Array = EMPTY;
  readonly #file: DiskFile;
  #windowAt = 0;

  constructor(disk: Disk, path: string) {
    this.#file = disk.open(path, "read");
    this.sizeBytes = this.#file.size();
  }

  /** Makes sure that the bytes from `offset` to `offset + length`, which must lie in the file, are in `window`; gives their place there. */
  locate(offset: number, length: number): number {
    const at = offset - this.#windowAt;
    if (at >= 0 && at + length <= this.window.length) return at;
    // Views of the old window are out, so it is not used again.
    const window = new Uint8Array(Math.min(Math.max(WINDOW_BYTES, length), this.sizeBytes - offset));
    const count = this.#file.read(window, offset);
    if (count < length) throw new DiskError("Io", this.#file.path, "the file became shorter while it was read");
    this.window = count === window.length ? window : window.subarray(0, count);
    this.#windowAt = offset;
    return 0;
  }

  /** The bytes from `offset` to `offset + length`, which must lie in the file. A view that stays good. */
  view(offset: number, length: number): Uint8Array {
    const at = this.locate(offset, length);
    return this.window.subarray(at, at + length);
  }

  /** The place of the first byte that is not zero in [from, to), or undefined. */
  firstNonZero(from: number, to: number): number | undefined {
    for (let at = from; at < to; ) {
      const bytes = this.view(at, Math.min(ZEROS.length, to - at));
      if (!equals(bytes, ZEROS.subarray(0, bytes.length))) return at + bytes.findIndex((byte) => byte !== 0);
      at += bytes.length;
    }
    return undefined;
  }

  /** The place behind the last byte that is not zero in [from, to), or `from`. */
  endOfNonZero(from: number, to: number): number {
    let end = from;
    for (let at = from; at < to; ) {
      const bytes = this.view(at, Math.min(ZEROS.length, to - at));
      if (!equals(bytes, ZEROS.subarray(0, bytes.length))) end = at + bytes.findLastIndex((byte) => byte !== 0) + 1;
      at += bytes.length;
    }
    return end;
  }

  close(): void {
    this.#file.close();
  }
}

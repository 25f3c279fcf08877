/**
 * The bytes of a segment, read in windows, so that a record that stays in memory does not keep a
 * whole segment there.
 */
import { type Disk, DiskError, type DiskFile } from "@quorate/host";
import { equals } from "@quorate/proto";

const WINDOW_BYTES = 1 << 20;
const EMPTY = new Uint8Array(0);
const ZEROS = new Uint8Array(64 << 10);

export class SegmentFile {
  readonly sizeBytes: number;
  /** The bytes that the offsets returned by `locate` refer to. */
  window: Uint8Array = EMPTY;
  readonly #file: DiskFile;
  #windowAt = 0;
  #scratch: Uint8Array | undefined;

  constructor(disk: Disk, path: string) {
    this.#file = disk.open(path, "read");
    this.sizeBytes = this.#file.size();
  }

  /**
   * Makes sure that `window` holds the bytes from `offset` to `offset + length`, which must be
   * within the file. Returns their offset in it.
   */
  locate(offset: number, length: number): number {
    const at = offset - this.#windowAt;
    if (at >= 0 && at + length <= this.window.length) return at;
    // Records may hold views of the old window, so it is not reused.
    const window = new Uint8Array(
      Math.min(Math.max(WINDOW_BYTES, length), this.sizeBytes - offset),
    );
    const count = this.#file.read(window, offset);
    if (count < length) throw this.#becameShorter();
    this.window = count === window.length ? window : window.subarray(0, count);
    this.#windowAt = offset;
    return 0;
  }

  /**
   * The bytes from `offset` to `offset + length`, which must be within the file. A view that stays
   * valid.
   */
  view(offset: number, length: number): Uint8Array {
    const at = this.locate(offset, length);
    return this.window.subarray(at, at + length);
  }

  /** Whether all bytes in [from, to) are zero. */
  isZero(from: number, to: number): boolean {
    for (let at = from; at < to; at += ZEROS.length) {
      const bytes = this.#part(at, to);
      if (!equals(bytes, ZEROS.subarray(0, bytes.length))) return false;
    }
    return true;
  }

  /** The offset after the last byte that is not zero in [from, to), or `from`. */
  endOfNonZero(from: number, to: number): number {
    let end = from;
    for (let at = from; at < to; at += ZEROS.length) {
      const bytes = this.#part(at, to);
      if (!equals(bytes, ZEROS.subarray(0, bytes.length)))
        end = at + bytes.findLastIndex((byte) => byte !== 0) + 1;
    }
    return end;
  }

  /** A part of the bytes from `at` to `to`, as large as one read. Valid until the next call. */
  #part(at: number, to: number): Uint8Array {
    this.#scratch ??= new Uint8Array(ZEROS.length);
    const part = this.#scratch.subarray(0, Math.min(ZEROS.length, to - at));
    if (this.#file.read(part, at) < part.length) throw this.#becameShorter();
    return part;
  }

  #becameShorter(): DiskError {
    return new DiskError("Io", this.#file.path, "the file became shorter while it was read");
  }

  close(): void {
    this.#file.close();
  }
}

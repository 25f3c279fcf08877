/**
 * Where the key and the range end of a request are, read without decoding the rest and without
 * making objects: most calls have one key, which goes from the request into a line.
 */
import { EMPTY, Reader, WireError } from "@quorate/proto";

const KEY_TAG = 0x0a;
const RANGE_END_TAG = 0x12;

/** Places in the bytes of a request; one object serves many requests. */
export class KeyPlaces {
  keyAt = 0;
  keyEnd = 0;
  /** Equal to `endAt` for one key. */
  endEnd = 0;
  endAt = 0;
  readonly #reader = new Reader(EMPTY);

  /** The request. */
  get bytes(): Uint8Array {
    return this.#reader.bytes;
  }

  /**
   * Reads a request whose first fields are a key and, where it has a range, the range's end.
   * @returns false for bytes that are not as simple as clients write them; a field that comes
   *   twice is left to the decoder: the last one counts
   */
  read(request: Uint8Array, hasRange: boolean): boolean {
    this.#reader.reset(request);
    this.keyAt = -1;
    this.endAt = 0;
    this.endEnd = 0;
    try {
      return this.#read(hasRange) && this.keyAt >= 0;
    } catch (error) {
      if (error instanceof WireError) return false;
      throw error;
    }
  }

  #read(hasRange: boolean): boolean {
    const reader = this.#reader;
    while (reader.pos < reader.end) {
      const tag = reader.tag();
      if (tag === KEY_TAG) {
        if (this.keyAt >= 0) return false;
        this.keyAt = reader.content();
        this.keyEnd = reader.pos;
      } else if (tag === RANGE_END_TAG && hasRange) {
        if (this.endAt > 0) return false;
        this.endAt = reader.content();
        this.endEnd = reader.pos;
      } else reader.skip(tag, {});
    }
    return true;
  }

  key(): Uint8Array {
    return this.bytes.subarray(this.keyAt, this.keyEnd);
  }

  /** Empty for one key. */
  rangeEnd(): Uint8Array {
    return this.bytes.subarray(this.endAt, this.endEnd);
  }
}

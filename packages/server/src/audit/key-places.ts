/**
 * Where the key and the range end of a request are, read without decoding the rest and without
 * making objects: most calls have one key, which goes from the request into a line.
 */

const SMALL = 0x80;
const KEY_TAG = 0x0a;
const RANGE_END_TAG = 0x12;
const LENGTH_DELIMITED = 2;
const FIXED64 = 1;

/** Places in the bytes of a request; one object serves many requests. */
export class KeyPlaces {
  bytes: Uint8Array = new Uint8Array(0);
  keyAt = 0;
  keyEnd = 0;
  /** Equal to `endAt` for one key. */
  endEnd = 0;
  endAt = 0;

  /**
   * Reads a request whose first fields are a key and, where it has a range, the range's end.
   * @returns false for bytes that are not as simple as clients write them; a field that comes
   *   twice is left to the decoder: the last one counts
   */
  read(request: Uint8Array, hasRange: boolean): boolean {
    this.bytes = request;
    this.keyAt = -1;
    this.endAt = -1;
    const { length } = request;
    for (let at = 0; at < length; ) {
      const tag = request[at++];
      const kind = tag & 7;
      if (tag >= SMALL || kind === FIXED64 || kind > LENGTH_DELIMITED) return false;
      let value = 0;
      let scale = 1;
      let byte = SMALL;
      for (; byte >= SMALL && at < length; scale *= SMALL) {
        byte = request[at++];
        value += (byte & 0x7f) * scale;
      }
      if (byte >= SMALL) return false;
      if (kind !== LENGTH_DELIMITED) continue;
      const next = at + value;
      if (next > length) return false;
      if (tag === KEY_TAG) {
        if (this.keyAt >= 0) return false;
        this.keyAt = at;
        this.keyEnd = next;
      } else if (tag === RANGE_END_TAG && hasRange) {
        if (this.endAt >= 0) return false;
        this.endAt = at;
        this.endEnd = next;
      }
      at = next;
    }
    if (this.endAt < 0) {
      this.endAt = 0;
      this.endEnd = 0;
    }
    return this.keyAt >= 0;
  }

  key(): Uint8Array {
    return this.bytes.subarray(this.keyAt, this.keyEnd);
  }

  /** Empty for one key. */
  rangeEnd(): Uint8Array {
    return this.bytes.subarray(this.endAt, this.endEnd);
  }
}

/**
 * The fields of an encoded mvccpb.KeyValue but for its value, read in place: decoding a million
 * records into objects takes longer than all else that a start does with them.
 */

const KEY_TAG = 0x0a;
const CREATE_REVISION_TAG = 0x10;
const MOD_REVISION_TAG = 0x18;
const VERSION_TAG = 0x20;
const VALUE_TAG = 0x2a;
const MORE = 0x80;

/** The fields of the record that was read last. */
export class RecordHead {
  keyStart = 0;
  keyEnd = 0;
  createRevision = 0;
  modRevision = 0;
  version = 0;
  readonly lease = 0n;
  #at = 0;
  #end = 0;

  /**
   * Reads the record in bytes[start, end). False for one that is not as stores write those without
   * a lease (fields in order, each once, a key): that is left to the decoder, and the fields are
   * undefined.
   */
  read(bytes: Uint8Array, start: number, end: number): boolean {
    this.#at = start;
    this.#end = end;
    this.createRevision = 0;
    this.modRevision = 0;
    this.version = 0;
    if (bytes[this.#at++] !== KEY_TAG) return false;
    const keyLength = this.#varint(bytes);
    this.keyStart = this.#at;
    this.keyEnd = this.#at + keyLength;
    if (keyLength === 0 || !(this.keyEnd <= end)) return false;
    this.#at = this.keyEnd;
    if (bytes[this.#at] === CREATE_REVISION_TAG) this.createRevision = this.#number(bytes);
    if (bytes[this.#at] === MOD_REVISION_TAG) this.modRevision = this.#number(bytes);
    if (bytes[this.#at] === VERSION_TAG) this.version = this.#number(bytes);
    if (this.#at < end && bytes[this.#at] === VALUE_TAG) {
      const valueLength = this.#number(bytes);
      this.#at += valueLength;
    }
    return (
      this.#at === end &&
      Number.isSafeInteger(this.createRevision) &&
      Number.isSafeInteger(this.modRevision) &&
      Number.isSafeInteger(this.version)
    );
  }

  /** The number behind a tag. */
  #number(bytes: Uint8Array): number {
    // A tag behind the record belongs to what follows it.
    if (this.#at >= this.#end) return 0;
    this.#at++;
    return this.#varint(bytes);
  }

  /** NaN for one that is cut short or longer than 8 bytes. */
  #varint(bytes: Uint8Array): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 8 && this.#at < this.#end; i++) {
      const byte = bytes[this.#at++];
      value += (byte & 0x7f) * scale;
      if (byte < MORE) return value;
      scale *= MORE;
    }
    this.#at = Number.NaN;
    return Number.NaN;
  }
}

/**
 * The fields of an encoded mvccpb.KeyValue but for its value, read in place: decoding a million
 * records into objects takes longer than all else that a start does with them.
 */
import { EMPTY, Reader, WireError } from "@quorate/proto";

const KEY_TAG = 0x0a;
const CREATE_REVISION_TAG = 0x10;
const MOD_REVISION_TAG = 0x18;
const VERSION_TAG = 0x20;
const VALUE_TAG = 0x2a;

/** The fields of the record that was read last. */
export class RecordHead {
  keyStart = 0;
  keyEnd = 0;
  createRevision = 0;
  modRevision = 0;
  version = 0;
  readonly lease = 0n;
  readonly #reader = new Reader(EMPTY);

  /**
   * Reads the record in bytes[start, end). False for one that is not as stores write those without
   * a lease (fields in order, each once, a key): that is left to the decoder, and the fields are
   * undefined.
   */
  read(bytes: Uint8Array, start: number, end: number): boolean {
    this.#reader.reset(bytes, start, end);
    this.keyEnd = 0;
    this.createRevision = 0;
    this.modRevision = 0;
    this.version = 0;
    try {
      return this.#read(end);
    } catch (error) {
      if (error instanceof WireError) return false;
      throw error;
    }
  }

  #read(end: number): boolean {
    const reader = this.#reader;
    let last = 0;
    while (reader.pos < end) {
      const tag = reader.tag();
      if (tag <= last) return false;
      last = tag;
      if (tag === KEY_TAG) {
        this.keyStart = reader.content();
        this.keyEnd = reader.pos;
      } else if (tag === CREATE_REVISION_TAG) this.createRevision = reader.uint64();
      else if (tag === MOD_REVISION_TAG) this.modRevision = reader.uint64();
      else if (tag === VERSION_TAG) this.version = reader.uint64();
      else if (tag === VALUE_TAG) reader.content();
      else return false;
    }
    return this.keyEnd > this.keyStart;
  }
}

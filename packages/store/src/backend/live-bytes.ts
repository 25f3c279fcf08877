/**
 * The size in bytes of the store's records: the keys' history, and the leases. The space quota uses
 * it, and it falls as soon as compaction has dropped records, whatever the size of the files on
 * disk.
 *
 *     bucket meta: "quorate_live_bytes"  index u64, bytes u64, big-endian
 *
 * The record is in every batch, so it is exact for the state after that batch. When the index is
 * rebuilt at open, the records are counted; another sum is damage. A record with another index than
 * the store's was left by a version that does not maintain it, and is ignored. It depends on the
 * progress of compaction, so it differs between members and is not hashed.
 */
import { fromUtf8, readU64BE, writeU64BE } from "@quorate/proto";
import { type Backend, Bucket, type LiveSizes } from "./backend.ts";
import { StoreDamageError } from "./errors.ts";

/** The record's name in the bucket meta. */
export const LIVE_BYTES: Uint8Array = fromUtf8("quorate_live_bytes");
const RECORD_BYTES = 16;
/** The byte of the bucket before each key. */
export const PREFIX_BYTES = 1;

/** The size that a record counts, by the lengths of its key (without the bucket) and its value. */
export function liveSizeBytes(keyLength: number, valueLength: number): number {
  return PREFIX_BYTES + keyLength + valueLength;
}

export class LiveBytes {
  #bytes = 0;
  #records = 0;
  #written: LiveSizes | undefined;

  /** The sum over all records. */
  get bytes(): number {
    return this.#bytes;
  }

  /** As of the last batch, or of the start if there was none since. */
  get written(): LiveSizes {
    return this.#written ?? { records: this.#records, bytes: this.#bytes };
  }

  /** Adds a written record; returns its size, to be passed to `removed`. */
  added(key: Uint8Array, value: Uint8Array): number {
    const sizeBytes = liveSizeBytes(key.length, value.length);
    this.addedAll(sizeBytes, 1);
    return sizeBytes;
  }

  /** Adds records that were written together, by their sum of `liveSizeBytes`. */
  addedAll(sizeBytes: number, records: number): void {
    this.#bytes += sizeBytes;
    this.#records += records;
  }

  /** Subtracts a deleted record of this size. */
  removed(sizeBytes: number): void {
    this.#bytes -= sizeBytes;
    this.#records--;
  }

  /** Puts the sum into the batch that is being collected, for the state at `index`. */
  write(backend: Backend, index: number): void {
    const record = new Uint8Array(RECORD_BYTES);
    writeU64BE(record, index, 0);
    writeU64BE(record, this.#bytes, 8);
    backend.put(Bucket.meta, LIVE_BYTES, record);
    this.#written = { records: this.#records, bytes: this.#bytes };
  }

  /**
   * Compares the sum counted at open with the stored one for `index`. @param path the store's
   * directory, for error texts @throws StoreDamageError
   */
  check(backend: Backend, index: number, path: string): void {
    const record = backend.get(Bucket.meta, LIVE_BYTES);
    if (record === undefined) return;
    const problem = (text: string) =>
      new StoreDamageError(path, "bucket meta, key quorate_live_bytes", text);
    if (record.length !== RECORD_BYTES) throw problem(`the record has ${record.length} bytes`);
    const savedIndex = readU64BE(record, 0);
    // Every batch raises the position, with or without this record. If this record has a higher
    // index, the position is damaged.
    if (savedIndex > index)
      throw problem(
        `it is of index ${savedIndex}, and the store's position is ${index}: that was lost or changed`,
      );
    if (savedIndex < index) return;
    const saved = readU64BE(record, 8);
    if (saved !== this.#bytes)
      throw problem(
        `the records have ${this.#bytes} bytes, and ${saved} were written: records were lost or changed`,
      );
  }
}

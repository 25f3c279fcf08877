/**
 * Records that were read lately, by their revision. A record never changes, so none here can be
 * wrong; one whose revision was compacted is asked for by nobody.
 *
 * Two halves: what is read goes to the young one; when that has half of the bound, it becomes the
 * old one, and what the old one had and nobody read meanwhile is forgotten.
 */

/** Bytes of records that are kept, what it takes to keep each included. */
export const MAX_CACHED_BYTES: number = 32 << 20;
/** A record above it is not kept: reading it costs more than finding it. */
export const MAX_CACHED_RECORD_BYTES: number = 64 << 10;
/** What a map's entry and an array with a buffer of its own take, about. */
const OVERHEAD_BYTES = 256;

/** Places in a transaction, and revisions, that fit together into one number. */
const MAX_SUB = 1024;
const MAX_MAIN = Number.MAX_SAFE_INTEGER / MAX_SUB - 1;

export class RecordCache {
  readonly #halfBytes: number;
  #young = new Map<number, Uint8Array>();
  #youngBytes = 0;
  #old = new Map<number, Uint8Array>();
  #oldBytes = 0;

  constructor(maxBytes = MAX_CACHED_BYTES) {
    this.#halfBytes = maxBytes / 2;
  }

  /** Bytes that are kept, overhead included. */
  get sizeBytes(): number {
    return this.#youngBytes + this.#oldBytes;
  }

  get(main: number, sub: number): Uint8Array | undefined {
    if (sub >= MAX_SUB) return undefined;
    const id = main * MAX_SUB + sub;
    const young = this.#young.get(id);
    if (young !== undefined || this.#old.size === 0) return young;
    const old = this.#old.get(id);
    if (old !== undefined) {
      this.#old.delete(id);
      this.#oldBytes -= old.length + OVERHEAD_BYTES;
      this.#add(id, old);
    }
    return old;
  }

  /** Keeps a record, which must not be changed afterwards. */
  add(main: number, sub: number, record: Uint8Array): void {
    if (record.length <= MAX_CACHED_RECORD_BYTES && sub < MAX_SUB && main <= MAX_MAIN)
      this.#add(main * MAX_SUB + sub, record);
  }

  #add(id: number, record: Uint8Array): void {
    this.#young.set(id, record);
    this.#youngBytes += record.length + OVERHEAD_BYTES;
    if (this.#youngBytes < this.#halfBytes) return;
    this.#old = this.#young;
    this.#oldBytes = this.#youngBytes;
    this.#young = new Map();
    this.#youngBytes = 0;
  }
}

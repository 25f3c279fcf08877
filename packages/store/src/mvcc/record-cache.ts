/**
 * Recently read records, by their revision. A record never changes, so no entry can be stale, and a
 * record of a compacted revision is never requested.
 *
 * Two halves: records that are read go into the young one. When that reaches half of the bound, it
 * becomes the old one, and the records of the previous old one that were not read meanwhile are
 * dropped.
 */

/** Maximum bytes of cached records, overhead included. */
export const MAX_CACHED_BYTES: number = 32 << 20;
/** Larger records are not cached: reading them costs more than the lookup. */
export const MAX_CACHED_RECORD_BYTES: number = 64 << 10;
/** Estimated bytes of a map entry, an array and its buffer. */
const OVERHEAD_BYTES = 256;

/** The range of sub-revisions that fit with the main revision into one number. */
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

  /** Bytes of cached records, overhead included. */
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

  /** Adds a record, which must not be changed afterwards. */
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

/**
 * The changes of an entry that is applied in several turns of the event loop. They are kept apart
 * from those of earlier entries, so that no batch of the backend holds a part of an entry.
 */
import type { KeyspaceWrite } from "@quorate/host";

/** Changes by full key as latin1; undefined deletes. */
export type Changes = Map<string, Uint8Array | undefined>;

/**
 * Bulk records, encoded when they are written. They are not readable before they are on disk, and
 * none of their keys is in the backend yet. They must not change once they are in the backend.
 */
export interface BulkRecords extends Iterable<KeyspaceWrite> {
  readonly count: number;
  /** Keys and values together. */
  readonly sizeBytes: number;
}

/** The changes for one batch, or of one entry. */
export class ChangeSet {
  readonly changes: Changes = new Map();
  readonly bulk: BulkRecords[] = [];
  #bulkOps = 0;
  #sizeBytes = 0;

  /** Number of records that are put or deleted. */
  get ops(): number {
    return this.changes.size + this.#bulkOps;
  }

  /** Bytes of keys and values, including values that a later change replaced. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /**
   * Puts a record, or deletes it if `value` is undefined. @param keyBytes the length of its key
   * without the bucket
   */
  set(fullKey: string, value: Uint8Array | undefined): void {
    this.changes.set(fullKey, value);
    this.#sizeBytes += fullKey.length - 1 + (value?.length ?? 0);
  }

  addBulk(records: BulkRecords): void {
    this.bulk.push(records);
    this.#bulkOps += records.count;
    this.#sizeBytes += records.sizeBytes;
  }

  /**
   * Adds all of `other`, which must not be used afterwards. Its changes are later than the existing
   * ones.
   */
  addAll(other: ChangeSet): void {
    for (const [key, value] of other.changes) this.changes.set(key, value);
    this.bulk.push(...other.bulk);
    this.#bulkOps += other.#bulkOps;
    this.#sizeBytes += other.#sizeBytes;
  }
}

/**
 * The changes of an entry that is applied in several turns of the event loop. They stay apart from
 * those of the entries before it, so that no batch of the backend holds a part of an entry.
 */
import type { KeyspaceWrite } from "@quorate/host";

/** Changes by full key as latin1; undefined deletes. */
export type Changes = Map<string, Uint8Array | undefined>;

/**
 * Records in bulk, encoded when they are written. Nobody reads one of them before it is on the
 * disk, and none of their keys is in the backend yet. They must not change once they are in the
 * backend.
 */
export interface BulkRecords extends Iterable<KeyspaceWrite> {
  readonly count: number;
  /** Keys and values together. */
  readonly sizeBytes: number;
}

/** Changes that collect for one batch, or for one entry. */
export class ChangeSet {
  readonly changes: Changes = new Map();
  readonly bulk: BulkRecords[] = [];
  #bulkOps = 0;
  #sizeBytes = 0;

  /** How many records are put or deleted. */
  get ops(): number {
    return this.changes.size + this.#bulkOps;
  }

  /** Bytes of keys and values, also of those that a later change of the same key has replaced. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /**
   * Puts a record, or deletes it where `value` is undefined. `keyBytes` is the length of its key
   * without the bucket.
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
   * Takes over all of `other`, which must not be used afterwards. Its changes are later than those
   * that are here.
   */
  addAll(other: ChangeSet): void {
    for (const [key, value] of other.changes) this.changes.set(key, value);
    this.bulk.push(...other.bulk);
    this.#bulkOps += other.#bulkOps;
    this.#sizeBytes += other.#sizeBytes;
  }
}

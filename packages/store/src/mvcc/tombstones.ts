/**
 * A run of deletions in one transaction. Only their keys are kept, which the index holds anyway;
 * the records are encoded when they are written.
 */
import type { KeyspaceWrite } from "@quorate/host";
import { fromLatin1, KeyValue, varintSize } from "@quorate/proto";
import { Bucket, prefixed } from "../backend/backend.ts";
import type { BulkRecords } from "../backend/staged-changes.ts";
import { encodeRevision, TOMBSTONE_BYTES } from "./revision.ts";

/**
 * Maximum keys of the first run of a transaction, and of each later one. The list of a later one is
 * made in its full size, which is more than what the collector of young objects copies: growing it
 * would copy it, and so would each collection.
 */
export const FIRST_RUN_KEYS = 1024;
export const MAX_RUN_KEYS = 32_768;

/** Bytes of a deletion's record: an mvccpb.KeyValue with the key alone. */
export function tombstoneBytes(keyLength: number): number {
  return 1 + varintSize(keyLength) + keyLength;
}

/** The deletions `main`.`firstSub`, `main`.`firstSub + 1`, and so on. */
export class Tombstones implements BulkRecords {
  readonly #main: number;
  readonly #firstSub: number;
  readonly #maxKeys: number;
  readonly #keys: string[];
  #count = 0;
  readonly #written: ((key: string) => void) | undefined;
  #sizeBytes = 0;

  /**
   * @param isFirst of its transaction
   * @param written called with each key while the records are written, which is soon
   */
  constructor(main: number, firstSub: number, isFirst: boolean, written?: (key: string) => void) {
    this.#main = main;
    this.#firstSub = firstSub;
    this.#maxKeys = isFirst ? FIRST_RUN_KEYS : MAX_RUN_KEYS;
    this.#keys = isFirst ? [] : new Array(MAX_RUN_KEYS);
    this.#written = written;
  }

  get count(): number {
    return this.#count;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Whether the deletion `sub` is the next one of this run, and the run is not full. */
  continuesWith(sub: number): boolean {
    return this.#firstSub + this.#count === sub && this.#count < this.#maxKeys;
  }

  /** Adds the deletion of a key as the next one. */
  push(key: string): void {
    this.#keys[this.#count++] = key;
    this.#sizeBytes += TOMBSTONE_BYTES + tombstoneBytes(key.length);
  }

  *[Symbol.iterator](): Generator<KeyspaceWrite> {
    for (let i = 0; i < this.#count; i++) {
      this.#written?.(this.#keys[i]);
      const revision = encodeRevision(this.#main, this.#firstSub + i, true);
      yield {
        key: prefixed(Bucket.key, revision),
        value: KeyValue.encode({ key: fromLatin1(this.#keys[i]) }),
      };
    }
  }
}

/**
 * Records that a step of a compaction deletes. Only their revisions are kept; the keys are encoded
 * when the batch is written. A map of them, which no read needs, grew in pauses of the event loop.
 */
import type { KeyspaceWrite } from "@quorate/host";
import { Bucket, prefixed } from "../backend/backend.ts";
import type { BulkRecords } from "../backend/staged-changes.ts";
import { encodeRevision, REVISION_BYTES, TOMBSTONE_BYTES } from "./revision.ts";

/** Numbers of one record: main, and sub with the kind of record. */
const STRIDE = 2;

export class DroppedRecords implements BulkRecords {
  readonly #revisions: number[] = [];
  sizeBytes = 0;

  get count(): number {
    return this.#revisions.length / STRIDE;
  }

  push(main: number, sub: number, tombstone: boolean): void {
    this.#revisions.push(main, sub * 2 + (tombstone ? 1 : 0));
    this.sizeBytes += tombstone ? TOMBSTONE_BYTES : REVISION_BYTES;
  }

  *[Symbol.iterator](): Generator<KeyspaceWrite> {
    for (let i = 0; i < this.#revisions.length; i += STRIDE) {
      const packed = this.#revisions[i + 1];
      const revision = encodeRevision(this.#revisions[i], Math.floor(packed / 2), packed % 2 === 1);
      yield { key: prefixed(Bucket.key, revision), value: undefined };
    }
  }
}

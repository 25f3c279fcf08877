/**
 * Compaction: drops the records that no read at the compact revision or later can return.
 *
 * schedule() takes effect at once: reads below the revision are then refused. The records are
 * dropped in small steps that the server drives. The steps walk the index in key order, which knows
 * every record, so nothing is read from the backend; of one key the oldest record goes first. At
 * the end of the walk, finishedCompactRev is written. A store that is opened with
 * scheduledCompactRev above finishedCompactRev walks again from the start, over the remaining
 * records.
 *
 * The progress of the walk differs between members and has no visible effect: no read and no hash
 * covers the records that it drops.
 */

import type { KeyspaceWrite } from "@quorate/host";
import { errorOf } from "@quorate/proto";
import { Bucket, type BulkRecords, prefixed } from "../backend/backend.ts";
import { encodeRevision, REVISION_BYTES, TOMBSTONE_BYTES } from "../backend/revision.ts";
import { FINISHED_COMPACT, type MvccState, NEVER_COMPACTED, SCHEDULED_COMPACT } from "./state.ts";

/** Keys that one step visits for each record that it may drop: most keys have nothing to drop. */
const KEYS_PER_RECORD = 4;
/**
 * Records dropped, or keys visited, between two checks whether the step should end: some 0.1 ms.
 */
const LOOK_EVERY = 128;
/**
 * Records of one key dropped at a time, so that a key with a long history does not prolong a step.
 */
const RECORDS_OF_ONE_KEY = 256;

export class Compaction {
  readonly #state: MvccState;
  /** The compact revision of the current walk; undefined if none is in progress. */
  #target: number | undefined;
  /** The key at which the walk continues. */
  #cursor = "";
  #finished: number;
  /** Compact revisions that reads in progress rely on, with the number of reads. */
  readonly #pins = new Map<number, number>();
  /** Records dropped since the store was opened. */
  droppedRecords = 0;

  /**
   * Continues an earlier run by the backend's records. @param finished, scheduled undefined without
   * a record
   */
  constructor(state: MvccState, finished: number | undefined, scheduled: number | undefined) {
    this.#state = state;
    this.#finished = finished ?? NEVER_COMPACTED;
    state.compactRevision = Math.max(this.#finished, scheduled ?? NEVER_COMPACTED);
  }

  /** The last revision whose compaction is finished; -1 for none. */
  get finishedRevision(): number {
    return this.#finished;
  }

  /** True while steps are needed. */
  get isPending(): boolean {
    return this.#finished < this.#state.compactRevision;
  }

  /**
   * Makes `revision` the compact revision. @throws EtcdError Compacted if it is not above the one
   * before, FutureRev
   */
  schedule(revision: number): void {
    const state = this.#state;
    if (revision <= state.compactRevision) throw errorOf("Compacted");
    if (revision > state.currentRevision) throw errorOf("FutureRev");
    state.compactRevision = revision;
    state.writeMark(SCHEDULED_COMPACT, revision);
  }

  /**
   * Drops at most `maxRecords` records, and fewer once `goOn` returns false. True when nothing is
   * left to do. Does nothing while a read is in progress that began at an earlier compact revision.
   */
  step(maxRecords: number, goOn: () => boolean = () => true): boolean {
    const state = this.#state;
    if (!this.isPending) return true;
    if (this.isHeld) return false;
    this.#target ??= state.compactRevision;
    const empty: string[] = [];
    const dropped = new DroppedRecords();
    let records = 0;
    let keys = 0;
    let next: string | undefined;
    const drop = (main: number, sub: number, tombstone: boolean, sizeBytes: number): void => {
      if (main <= state.backend.writtenRevision) dropped.push(main, sub, tombstone);
      // It may be in the batch that is being collected, and must go after it.
      else state.backend.delete(Bucket.key, encodeRevision(main, sub, tombstone));
      state.liveBytes.removed(sizeBytes);
      records++;
      this.droppedRecords++;
    };
    let lookAt = LOOK_EVERY;
    const isLate = (): boolean => {
      if (keys + records < lookAt) return false;
      lookAt = keys + records + LOOK_EVERY;
      return !goOn();
    };
    state.index.scan(this.#cursor, undefined, (key, index) => {
      if (records >= maxRecords || keys++ >= maxRecords * KEYS_PER_RECORD || isLate()) {
        next = key;
        return false;
      }
      for (;;) {
        const before = records;
        const most = Math.min(RECORDS_OF_ONE_KEY, maxRecords - records);
        // At the newest compact revision, even if the walk began for an earlier one.
        const isGone = index.compact(state.compactRevision, most, drop);
        if (isGone) empty.push(key);
        if (isGone || records - before < most) return true;
        if (records < maxRecords && !isLate()) continue;
        // This key may have more.
        next = key;
        return false;
      }
    });
    if (dropped.count > 0) state.backend.addBulk(dropped);
    for (const key of empty) state.removeKey(key);
    if (next !== undefined) {
      this.#cursor = next;
      return false;
    }
    this.#finished = this.#target;
    this.#target = undefined;
    this.#cursor = "";
    state.writeMark(FINISHED_COMPACT, this.#finished);
    return !this.isPending;
  }

  /** True while a read relies on history that the next step would drop. */
  get isHeld(): boolean {
    for (const pinned of this.#pins.keys()) if (pinned < this.#state.compactRevision) return true;
    return false;
  }

  /** Keeps everything that is readable now, until the returned function is called. */
  pin(): () => void {
    const { compactRevision } = this.#state;
    this.#pins.set(compactRevision, (this.#pins.get(compactRevision) ?? 0) + 1);
    let isPinned = true;
    return () => {
      if (!isPinned) return;
      isPinned = false;
      const left = (this.#pins.get(compactRevision) ?? 1) - 1;
      if (left > 0) this.#pins.set(compactRevision, left);
      else this.#pins.delete(compactRevision);
    };
  }
}

/** Numbers of one record: main, and sub with the kind of record. */
const STRIDE = 2;

/**
 * Records that a step of a compaction deletes. Only their revisions are kept; the keys are encoded
 * when the batch is written. A map of them, which no read needs, grew in pauses of the event loop.
 */
class DroppedRecords implements BulkRecords {
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

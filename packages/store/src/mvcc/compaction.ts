/**
 * Compaction: dropping the records that no read at the compact revision or later can meet.
 *
 * schedule() takes effect at once: reads below the revision are refused from then on. The dropping is driven from outside in small steps.
 * It walks the index in key order, which knows every record there is, so nothing is read from the backend; of one key the oldest record
 * goes first. When the walk is through, finishedCompactRev is written. A store that is opened with scheduledCompactRev above
 * finishedCompactRev walks again from the start, over what the first walk has left.
 *
 * How far the walk has come differs from member to member, and shows in nothing: what it drops no read and no hash covers.
 */
import { errorOf } from "@quorate/proto";
import { Bucket } from "../backend.ts";
import { encodeRevision } from "./revision.ts";
import { FINISHED_COMPACT, type MvccState, NEVER_COMPACTED, SCHEDULED_COMPACT } from "./state.ts";

/** Keys that one step looks at for each record that it may drop: most keys have nothing to drop. */
const KEYS_PER_RECORD = 4;

export class Compaction {
  readonly #state: MvccState;
  /** The revision that the walk under way makes good; undefined: none is. */
  #target: number | undefined;
  /** Where the walk goes on. */
  #cursor = "";
  #finished: number;
  #holds = 0;

  /** Takes over what the backend says of an earlier run. @param finished, scheduled undefined where there is no record. */
  constructor(state: MvccState, finished: number | undefined, scheduled: number | undefined) {
    this.#state = state;
    this.#finished = finished ?? NEVER_COMPACTED;
    state.compactRevision = Math.max(this.#finished, scheduled ?? NEVER_COMPACTED);
  }

  /** The last revision of which everything is dropped; -1 for none. */
  get finishedRevision(): number {
    return this.#finished;
  }

  /** True while steps are needed. */
  get isPending(): boolean {
    return this.#finished < this.#state.compactRevision;
  }

  /** Makes `revision` the compact revision. @throws EtcdError Compacted if it is not above the one before, FutureRev */
  schedule(revision: number): void {
    const state = this.#state;
    if (revision <= state.compactRevision) throw errorOf("Compacted");
    if (revision > state.currentRevision) throw errorOf("FutureRev");
    state.compactRevision = revision;
    state.writeMark(SCHEDULED_COMPACT, revision);
  }

  /**
   * Drops at most `maxRecords` records. True when nothing is left to do. While a hash is taken, which needs
   * the index as it was, it does nothing.
   */
  step(maxRecords: number): boolean {
    const state = this.#state;
    if (!this.isPending) return true;
    if (this.#holds > 0) return false;
    this.#target ??= state.compactRevision;
    const empty: string[] = [];
    let records = 0;
    let keys = 0;
    let next: string | undefined;
    const drop = (main: number, sub: number, tombstone: boolean): void => {
      state.backend.delete(Bucket.key, encodeRevision(main, sub, tombstone));
      records++;
    };
    state.index.scan(this.#cursor, undefined, (key, index) => {
      if (keys++ >= maxRecords * KEYS_PER_RECORD) {
        next = key;
        return false;
      }
      // At the newest compact revision, even if the walk began for an earlier one.
      if (index.compact(state.compactRevision, maxRecords - records, drop)) empty.push(key);
      if (records < maxRecords) return true;
      // This key may have more.
      next = key;
      return false;
    });
    for (const key of empty) state.index.delete(key);
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

  /** Stops the steps until the function it gives is called. */
  hold(): () => void {
    this.#holds++;
    let held = true;
    return () => {
      if (held) this.#holds--;
      held = false;
    };
  }
}

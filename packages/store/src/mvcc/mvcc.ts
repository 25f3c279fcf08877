/**
 * The keys and their history (etcd's mvcc): every change gets a revision and stays readable until
 * compaction drops it.
 *
 *     const mvcc = await Mvcc.open(backend, path);
 *     const txn = mvcc.begin();
 *     txn.put(keyBytes, key, value, 0n);
 *     txn.commit();                                    // mvcc.currentRevision went up by one
 *     runSteps(mvcc.view.records(keyRange(from, to), mvcc.view.resolve(revision), 0));
 *
 * The index of all keys is in memory, their records are in the backend. Changes take effect at
 * once; reads of ranges run in steps, which a caller may run to the end at once too.
 */
import { KeyValue, toHex, toLatin1 } from "@quorate/proto";
import { type Backend, Bucket } from "../backend/backend.ts";
import { StoreDamageError } from "../backend/errors.ts";
import { assert } from "../backend/invariants.ts";
import { LiveBytes } from "../backend/meta.ts";
import { decodeRevision, encodeRevision } from "../backend/revision.ts";
import type { OpenFiles } from "../level-files/records.ts";
import { Compaction } from "./compaction.ts";
import { HashRuns, hashAll, hashKV, type KeyValueHash } from "./hash.ts";
import { PinnedView, type PinOptions } from "./pinned-view.ts";
import { type KeyRange, ReadView } from "./read-view.ts";
import { restoreIndex } from "./restore.ts";
import {
  FINISHED_COMPACT,
  type MvccCounts,
  MvccState,
  SCHEDULED_COMPACT,
  type StepOptions,
} from "./state.ts";
import { type Change, type LeaseBook, noLeases, type TxnCommitted, WriteTxn } from "./write-txn.ts";

/**
 * Called right after the commit of a transaction with so many changes that reporting each at once
 * would take too long. @param main its revision; `history` reads the changes @param touched ranges
 * that contain all changed keys, and possibly others
 */
export type LargeChangeListener = (main: number, touched: readonly KeyRange[]) => void;

export class Mvcc {
  /**
   * Called for each change, in order, right after its transaction is committed. For a long
   * transaction of more than MAX_KEPT_CHANGES changes, `onLargeChange` is called instead. While it
   * is undefined, no changes are collected.
   */
  onChange: ((change: Change) => void) | undefined;
  onLargeChange: LargeChangeListener | undefined;
  /** Reads of the committed state. */
  readonly view: ReadView;
  readonly #state: MvccState;
  readonly #compaction: Compaction;
  readonly #hashes = new HashRuns();
  readonly #openFiles: OpenFiles | undefined;
  #open: WriteTxn | undefined;

  private constructor(state: MvccState, compaction: Compaction, openFiles: OpenFiles | undefined) {
    this.#state = state;
    this.#compaction = compaction;
    this.#openFiles = openFiles;
    this.view = new ReadView(state);
  }

  /**
   * Opens the backend's keys. @param path the store's directory, for error texts @param onProgress
   * called with the number of records read while the index is rebuilt @param leases notified of
   * each key with a lease @param liveBytes notified of the size of each record, now and later
   * @param steps how long work is cut @param openFiles opens the bucket key's tables; LevelDB has
   * moved all of its log into them, and nothing has been written since @throws StoreDamageError for
   * records that a store does not write
   */
  static async open(
    backend: Backend,
    path: string,
    onProgress?: (records: number) => void,
    leases: LeaseBook = noLeases,
    liveBytes: LiveBytes = new LiveBytes(),
    steps: StepOptions = {},
    openFiles?: OpenFiles | undefined,
  ): Promise<Mvcc> {
    const state = new MvccState(backend, path, liveBytes, steps);
    const scheduled = state.readMark(SCHEDULED_COMPACT);
    const compaction = new Compaction(state, state.readMark(FINISHED_COMPACT), scheduled);
    const snapshot = await backend.snapshot();
    const files = openFiles?.();
    try {
      const from = { snapshot, records: files?.records() };
      await restoreIndex(state, from, state.compactRevision, leases, onProgress);
    } finally {
      files?.close();
      await snapshot.close();
    }
    // Compaction may have dropped the last record of all.
    state.currentRevision = Math.max(state.currentRevision, state.compactRevision);
    return new Mvcc(state, compaction, openFiles);
  }

  /** Revision of the last transaction that changed something; 1 for an empty store. */
  get currentRevision(): number {
    return this.#state.currentRevision;
  }

  /** Reads below it are refused; -1 if the store was never compacted. */
  get compactRevision(): number {
    return this.#state.compactRevision;
  }

  /** Maximum keys in one step of a long transaction. */
  get stepKeys(): number {
    return this.#state.stepKeys;
  }

  /** Keys that exist now. */
  get keyCount(): number {
    return this.#state.keyCount;
  }

  /**
   * Bytes of the keys in the index in memory, each key once; deleted ones with history included.
   */
  get keyBytes(): number {
    return this.#state.keyBytes;
  }

  /** Counters since the store was opened, for metrics; of this member alone. */
  get counts(): MvccCounts {
    return this.#state.counts;
  }

  /**
   * A view of the committed state that does not change, and that delays compaction, until it is
   * released.
   */
  pin(options: PinOptions): PinnedView {
    return new PinnedView(this.#state, this.#compaction.pin(), options);
  }

  /**
   * Begins a write transaction that commits in this turn of the event loop; the one before must
   * have been committed.
   */
  begin(leases: LeaseBook = noLeases): WriteTxn {
    return this.#begin(leases, false);
  }

  /**
   * Begins a write transaction that may take several turns of the event loop. Its changes are not
   * visible to others before its commit.
   */
  beginLong(leases: LeaseBook = noLeases): WriteTxn {
    return this.#begin(leases, true);
  }

  #begin(leases: LeaseBook, isLong: boolean): WriteTxn {
    assert(this.#open === undefined, "MVCC-6");
    const isWatched = this.onChange !== undefined;
    this.#open = new WriteTxn(this.#state, leases, isWatched, isLong, this.#committed);
    return this.#open;
  }

  readonly #committed: TxnCommitted = (txn, changes) => {
    assert(this.#open === txn, "MVCC-5");
    this.#open = undefined;
    if (this.onChange === undefined || txn.changeCount === 0) return;
    if (changes === undefined) this.onLargeChange?.(this.currentRevision, txn.touched);
    else for (const change of changes) this.onChange(change);
  };

  /**
   * The stored record of a key as of a revision, for watch's prev_kv; undefined if it did not exist
   * then, or that history is dropped.
   */
  recordAt(key: string, revision: number): Uint8Array | undefined {
    const found = this.view.get(key, revision);
    return found === undefined ? undefined : this.view.record(found);
  }

  /**
   * The changes from revision `first` (at or above the compact revision) to `last`, in order, in
   * slices of whole revisions; flushes the backend.
   */
  history(first: number, last: number): AsyncGenerator<HistorySlice> {
    assert(
      last <= this.currentRevision,
      "MVCC-8",
      `history is read up to ${last}, the store is at ${this.currentRevision}`,
    );
    return readHistory(this.#state, first, last);
  }

  /**
   * Schedules compaction: reads below `revision` are refused at once. @throws EtcdError Compacted,
   * FutureRev
   */
  compact(revision: number): void {
    this.#compaction.schedule(revision);
  }

  /** True while scheduled compaction has records to drop: compactStep must be called. */
  get isCompacting(): boolean {
    return this.#compaction.isPending;
  }

  /** The last revision whose compaction is done: all its records are gone. */
  get compactedRevision(): number {
    return this.#compaction.finishedRevision;
  }

  /** Records that compaction has dropped since the store was opened. */
  get droppedRecords(): number {
    return this.#compaction.droppedRecords;
  }

  /**
   * Drops about `maxRecords` superseded records, or fewer: `goOn`, called now and then, ends the
   * step early. True when nothing is left to do; false also while a hash delays compaction.
   */
  compactStep(maxRecords: number, goOn?: () => boolean): boolean {
    return this.#compaction.step(maxRecords, goOn);
  }

  /**
   * etcd's HashKV at a revision (0: the newest when its turn comes); flushes the backend. Hashes
   * are computed one at a time. @throws EtcdError Compacted, FutureRev, TooManyRequests
   */
  async hashKV(revision: number): Promise<KeyValueHash> {
    const { compactRevision, currentRevision } = this;
    const run = (): Promise<KeyValueHash> =>
      hashKV(this.#state, this.#compaction, revision, this.#openFiles);
    const hash = await this.#hashes.run(
      `kv ${revision}`,
      run,
      () => revision !== 0 && this.compactRevision === compactRevision,
    );
    return { ...hash, currentRevision: Math.max(hash.currentRevision, currentRevision) };
  }

  /**
   * A hash of all buckets (see hash.ts); flushes the backend. Waits as hashKV does. @throws
   * EtcdError TooManyRequests
   */
  async hash(): Promise<number> {
    return this.#hashes.run("all", () => hashAll(this.#state));
  }
}

/** Changes in order, and the revision up to which the slices so far are complete. */
interface HistorySlice {
  readonly changes: readonly Change[];
  readonly through: number;
}

/**
 * Reads the changes of a range of revisions again, for watchers that are behind. The records are
 * those that were reported when they were committed, and are read between other work; changes that
 * are compacted meanwhile may or may not be among them.
 *
 * The changes from revision `first` to `last` (both included, at most the current one), in order,
 * in slices of whole revisions; a revision with many changes is cut, and its last slice marks it
 * complete. Flushes the backend at the start. Leaving the loop closes what was opened.
 */
async function* readHistory(
  state: MvccState,
  first: number,
  last: number,
): AsyncGenerator<HistorySlice> {
  const { openChanges, sliceBytes } = state.bounds;
  const snapshot = await state.backend.snapshot();
  try {
    let changes: Change[] = [];
    const from = encodeRevision(first, 0, false);
    const to = encodeRevision(last + 1, 0, false);
    for await (const slice of snapshot.scan(Bucket.key, from, to, sliceBytes)) {
      // The last revision of the previous slice may continue in this one. Its slice is held back,
      // so that a short history is a single slice.
      const open = changes[changes.length - 1]?.main;
      const next = slice.map(([key, record]) => changeOf(state, key, record));
      const end = next.findIndex(({ main }) => main !== open);
      if (open === undefined || end < 0) {
        changes = changes.concat(next);
        if (changes.length < openChanges) continue;
        // Only the next slice shows whether the last revision is complete.
        yield { changes, through: changes[changes.length - 1].main - 1 };
        changes = [];
        continue;
      }
      yield { changes: changes.concat(next.slice(0, end)), through: open };
      changes = next.slice(end);
    }
    yield { changes, through: last };
  } finally {
    await snapshot.close();
  }
}

function changeOf(state: MvccState, key: Uint8Array, record: Uint8Array): Change {
  const revision = decodeRevision(key);
  if (revision === undefined)
    throw new StoreDamageError(
      state.path,
      `bucket key, key ${toHex(key)}`,
      "the key is not a revision",
    );
  const { main, sub, tombstone } = revision;
  return { main, sub, key: toLatin1(KeyValue.decode(record).key), record, deleted: tombstone };
}

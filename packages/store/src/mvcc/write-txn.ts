/**
 * A write transaction: changes get the next revision and, within it, sub-revisions from 0. Reads
 * through it include its own changes. It cannot be rolled back: the caller has checked before that
 * no operation can fail.
 *
 * A short one begins and commits in one turn of the event loop. A long one may pause, and is
 * invisible to others before its commit: it changes the index in place under its own revision,
 * which is above every revision that is read meanwhile; its records are staged in the backend; the
 * sums (live bytes, number of keys) change at the commit.
 */
import type { KeyspaceWrite } from "@quorate/host";
import { fromLatin1, KeyValue, varintSize } from "@quorate/proto";
import { Bucket, type BulkRecords, prefixed } from "../backend/backend.ts";
import { violated } from "../backend/invariants.ts";
import { liveSizeBytes } from "../backend/meta.ts";
import { encodeRevision, REVISION_BYTES, TOMBSTONE_BYTES } from "../backend/revision.ts";
import type { Steps } from "../backend/steps.ts";
import { KeyIndex } from "./key-index.ts";
import type { KeyTree } from "./key-tree.ts";
import { type KeyRange, ReadView } from "./read-view.ts";
import type { MvccState } from "./state.ts";

/** One change of a transaction, for watchers. */
export interface Change {
  readonly main: number;
  readonly sub: number;
  readonly key: string;
  /** The stored mvccpb.KeyValue; of a deletion it holds only the key. */
  readonly record: Uint8Array;
  readonly deleted: boolean;
}

/** Called by commit(), with all changes in order, or undefined if they were not kept. */
export type TxnCommitted = (txn: WriteTxn, changes: readonly Change[] | undefined) => void;

/**
 * A long transaction with more changes, or with more than some steps make, does not collect them
 * for the watchers, who read them from the backend after its commit.
 */
export const MAX_KEPT_CHANGES = 1000;
const KEPT_STEPS = 4;

/** Of a short transaction, which is not asked for it. */
const NONE_TOUCHED: KeyRange[] = [];

export class WriteTxn extends ReadView {
  readonly #leases: LeaseBook;
  readonly #main: number;
  readonly #committed: TxnCommitted;
  readonly #isLong: boolean;
  /** Undefined without a watcher, or when there are too many changes to collect. */
  #changes: Change[] | undefined;
  #count = 0;
  #addedBytes = 0;
  #addedKeys = 0;
  #tombstones: Tombstones | undefined;
  #written: ((key: string) => void) | undefined;
  readonly #touched: KeyRange[];

  /**
   * Created by Mvcc.begin() and Mvcc.beginLong(). @param isWatched changes are collected for
   * watchers
   */
  constructor(
    state: MvccState,
    leases: LeaseBook,
    isWatched: boolean,
    isLong: boolean,
    committed: TxnCommitted,
  ) {
    super(state);
    this.#leases = leases;
    this.#main = state.currentRevision + 1;
    this.#changes = isWatched ? [] : undefined;
    this.#isLong = isLong;
    this.#touched = isLong ? [] : NONE_TOUCHED;
    this.#committed = committed;
    if (!isLong) return;
    state.backend.stage();
    leases.beginLong();
  }

  /** The newest revision as this transaction sees it: its own, once it has changed something. */
  override get revision(): number {
    return this.#count > 0 ? this.#main : this.#main - 1;
  }

  /** Changes so far. */
  get changeCount(): number {
    return this.#count;
  }

  /**
   * Of a long transaction: ranges, in no order, that together have every key that it has changed,
   * and may have others.
   */
  get touched(): readonly KeyRange[] {
    return this.#touched;
  }

  /** Puts a key. `lease` (0n: none) must exist. */
  put(keyBytes: Uint8Array, key: string, value: Uint8Array, lease: bigint): void {
    const { state } = this;
    if (this.#isLong) this.#touched.push({ single: true, key });
    state.counts.puts++;
    state.counts.putBytes += keyBytes.length + value.length;
    const main = this.#main;
    const sub = this.#count++;
    const leased = lease !== 0n;
    let index = state.index.get(key);
    const leaseBefore = index === undefined ? 0n : this.#leaseOf(key, index);
    if (index === undefined) {
      index = KeyIndex.put(main, sub, leased);
      state.addKey(key, index);
      this.#addedKeys++;
    } else {
      if (!index.exists) this.#addedKeys++;
      index.put(main, sub, leased);
    }
    const record = {
      key: keyBytes,
      value,
      createRevision: index.created,
      modRevision: main,
      version: index.version,
      lease,
    };
    const recordBytes = this.#isLong
      ? state.backend.stageRecord(main, sub, false, record)
      : state.backend.putRecord(main, sub, false, record);
    this.#account(index, liveSizeBytes(REVISION_BYTES, recordBytes));
    if (leaseBefore !== lease) {
      if (leaseBefore !== 0n) this.#leases.detach(leaseBefore, key);
      if (leased) this.#leases.attach(lease, key);
    }
    if (this.#changes !== undefined) this.#keep(key, sub, state.backend.lastRecord(), false);
  }

  /** Deletes a key; false if it does not exist. */
  delete(key: string): boolean {
    this.state.counts.deletes++;
    const index = this.state.index.get(key);
    if (index === undefined || !index.exists) return false;
    if (this.#isLong) this.#touched.push({ single: true, key });
    this.#delete(key, index);
    return true;
  }

  /**
   * Deletes the keys of a lease that ends, in order. All of them exist. For a long transaction that
   * does nothing else. @param written called with each key while the batch of the transaction is
   * written: the lease book need not forget the keys one by one before that
   */
  *deleteOfLease(keys: KeyTree<unknown>, written: (key: string) => void): Steps<void> {
    this.state.counts.deletes += keys.size;
    this.#written = written;
    for (let from: string | undefined = ""; from !== undefined; ) {
      let first: string | undefined;
      let last = "";
      from = keys.scanPart(from, undefined, this.state.stepKeys, (key) => {
        first ??= key;
        last = key;
        this.#delete(key, this.state.index.getNext(key)!, true);
        return true;
      });
      if (first !== undefined) this.#touched.push({ single: false, key: first, to: `${last}\0` });
      if (from !== undefined) yield;
    }
  }

  /** Deletes the keys of a range that exist; returns how many. For a long transaction. */
  *deleteRange(range: KeyRange): Steps<number> {
    if (range.single) return this.delete(range.key) ? 1 : 0;
    this.state.counts.deletes++;
    if (this.#isLong) this.#touched.push(range);
    const before = this.#count;
    const visit = (key: string, index: KeyIndex): boolean => {
      if (index.exists) this.#delete(key, index);
      return true;
    };
    let from: string | undefined = range.key;
    for (;;) {
      from = this.state.index.scanPart(from, range.to, this.state.stepKeys, visit);
      if (from === undefined) return this.#count - before;
      yield;
    }
  }

  /** The key must exist. @param leaseEnds with the transaction */
  #delete(key: string, index: KeyIndex, leaseEnds = false): void {
    const main = this.#main;
    const sub = this.#count++;
    if (index.leased && !leaseEnds) this.#leases.detach(this.#leases.leaseOf(key), key);
    index.delete(main, sub);
    this.#addedKeys--;
    this.#account(index, liveSizeBytes(TOMBSTONE_BYTES, tombstoneBytes(key.length)));
    if (this.#isLong) {
      this.#stageTombstone(key, sub);
      if (this.#changes !== undefined)
        this.#keep(key, sub, KeyValue.encode({ key: fromLatin1(key) }), true);
      return;
    }
    const { backend } = this.state;
    backend.putRecord(main, sub, true, { key: fromLatin1(key) });
    if (this.#changes !== undefined) this.#keep(key, sub, backend.lastRecord(), true);
  }

  #stageTombstone(key: string, sub: number): void {
    if (this.#tombstones?.continuesWith(sub) !== true) {
      this.#stageTombstones();
      const isFirst = this.#tombstones === undefined;
      this.#tombstones = new Tombstones(this.#main, sub, isFirst, this.#written);
    }
    this.#tombstones.push(key);
  }

  /** Hands over the last run of deletions, which is complete. */
  #stageTombstones(): void {
    if (this.#tombstones !== undefined) this.state.backend.stageBulk(this.#tombstones);
  }

  /** Counts a record that was made, and notes its size in the index. */
  #account(index: KeyIndex, sizeBytes: number): void {
    index.sizeBytes = sizeBytes;
    this.#addedBytes += sizeBytes;
  }

  #keep(key: string, sub: number, record: Uint8Array, deleted: boolean): void {
    const changes = this.#changes;
    if (changes === undefined) return;
    const most = Math.min(MAX_KEPT_CHANGES, KEPT_STEPS * this.state.stepKeys);
    if (this.#isLong && changes.length === most) this.#changes = undefined;
    else changes.push({ main: this.#main, sub, key, record, deleted });
  }

  /** The lease that the key hangs on. The index says whether there is one. */
  #leaseOf(key: string, index: KeyIndex): bigint {
    return index.leased ? this.#leases.leaseOf(key) : 0n;
  }

  /**
   * Ends the transaction: the store's revision becomes its own if it changed something. Returns the
   * store's revision.
   */
  commit(): number {
    const { state } = this;
    if (state.currentRevision !== this.#main - 1)
      violated("MVCC-3", `transaction ${this.#main} commits at ${state.currentRevision}`);
    if (this.#isLong) {
      this.#stageTombstones();
      state.backend.commitStaged();
      this.#leases.endLong();
    }
    state.liveBytes.addedAll(this.#addedBytes, this.#count);
    state.keyCount += this.#addedKeys;
    state.currentRevision = this.revision;
    this.#committed(this, this.#changes);
    return state.currentRevision;
  }
}

/**
 * Maximum keys of the first run of a transaction, and of each later one. The list of a later one is
 * made in its full size, which is more than what the collector of young objects copies: growing it
 * would copy it, and so would each collection.
 */
const FIRST_RUN_KEYS = 1024;
const MAX_RUN_KEYS = 32_768;

/** Bytes of a deletion's record: an mvccpb.KeyValue with the key alone. */
function tombstoneBytes(keyLength: number): number {
  return 1 + varintSize(keyLength) + keyLength;
}

/**
 * The deletions `main`.`firstSub`, `main`.`firstSub + 1`, and so on. Only their keys are kept, which
 * the index holds anyway; the records are encoded when they are written.
 */
class Tombstones implements BulkRecords {
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

/** Keys are latin1 strings; lease ids are not 0n. */
export interface LeaseBook {
  exists(id: bigint): boolean;
  /** The lease that the key is attached to; 0n for none. */
  leaseOf(key: string): bigint;
  /** Attaches the key to the lease. Also called at open for every key with a lease. */
  attach(id: bigint, key: string): void;
  /** Detaches the key from the lease. */
  detach(id: bigint, key: string): void;
  /**
   * An entry begins that is applied in several turns: until `endLong` other readers do not see
   * which keys it attaches and detaches.
   */
  beginLong(): void;
  endLong(): void;
}

/** No lease exists: every put with one is refused with LeaseNotFound. */
export const noLeases: LeaseBook = {
  exists: () => false,
  leaseOf: () => 0n,
  attach: () => {},
  detach: () => {},
  beginLong: () => {},
  endLong: () => {},
};

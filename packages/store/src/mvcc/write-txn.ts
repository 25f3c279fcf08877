/**
 * A write transaction: changes get the next revision and, within it, sub-revisions from 0. Reads through it see its own changes. There is
 * no way back: who calls has checked before that nothing can fail.
 */
import { fromLatin1, KeyValue } from "@quorate/proto";
import { Bucket } from "../backend.ts";
import { assert } from "../errors.ts";
import { runSteps } from "../steps.ts";
import { KeyIndex } from "./key-index.ts";
import type { KeyRange } from "./key-range.ts";
import type { LeaseBook } from "./lease-book.ts";
import { ReadView } from "./read-view.ts";
import { encodeRevision } from "./revision.ts";
import type { MvccState } from "./state.ts";

/** One change of a transaction, for those who watch. */
export interface Change {
  readonly main: number;
  readonly sub: number;
  readonly key: string;
  /** The stored mvccpb.KeyValue; of a deletion it holds only the key. */
  readonly record: Uint8Array;
  readonly deleted: boolean;
}

export class WriteTxn extends ReadView {
  readonly #leases: LeaseBook;
  readonly #main: number;
  readonly #changes: Change[] | undefined;
  readonly #done: (txn: WriteTxn) => void;
  #count = 0;

  /** Made by Mvcc.begin(). `done` is called by commit(); `keepChanges` says whether `changes` will be asked for. */
  constructor(state: MvccState, leases: LeaseBook, keepChanges: boolean, done: (txn: WriteTxn) => void) {
    super(state);
    this.#leases = leases;
    this.#main = state.currentRevision + 1;
    this.#changes = keepChanges ? [] : undefined;
    this.#done = done;
  }

  /** The newest revision as this transaction sees it: its own, once it has changed something. */
  override get revision(): number {
    return this.#count > 0 ? this.#main : this.#main - 1;
  }

  /** Changes so far. */
  get changeCount(): number {
    return this.#count;
  }

  /** The changes so far in order; empty unless the transaction was told to keep them. */
  get changes(): readonly Change[] {
    return this.#changes ?? [];
  }

  /** Puts a key. `lease` (0n: none) must exist. */
  put(keyBytes: Uint8Array, key: string, value: Uint8Array, lease: bigint): void {
    const { state } = this;
    state.counts.puts++;
    state.counts.putBytes += keyBytes.length + value.length;
    const main = this.#main;
    const sub = this.#count++;
    const leased = lease !== 0n;
    let index = state.index.get(key);
    const leaseBefore = index === undefined ? 0n : this.#leaseOf(index);
    if (index === undefined) {
      index = KeyIndex.put(main, sub, leased);
      state.index.set(key, index);
      state.keyCount++;
    } else {
      if (!index.exists) state.keyCount++;
      index.put(main, sub, leased);
    }
    const record = KeyValue.encode({
      key: keyBytes,
      value,
      createRevision: index.created,
      modRevision: main,
      version: index.version,
      lease,
    });
    const revision = encodeRevision(main, sub, false);
    state.backend.put(Bucket.key, revision, record);
    index.sizeBytes = state.liveBytes.added(revision, record);
    if (leaseBefore !== lease) {
      if (leaseBefore !== 0n) this.#leases.detach(leaseBefore, key);
      if (leased) this.#leases.attach(lease, key);
    }
    this.#changes?.push({ main, sub, key, record, deleted: false });
  }

  /** Deletes the keys of a range that exist; gives how many. */
  deleteRange(range: KeyRange): number {
    this.state.counts.deletes++;
    const { found } = runSteps(this.find(range));
    for (const { key, index } of found) this.#delete(key, index);
    return found.length;
  }

  #delete(key: string, index: KeyIndex): void {
    const { state } = this;
    const main = this.#main;
    const sub = this.#count++;
    const lease = this.#leaseOf(index);
    index.delete(main, sub);
    state.keyCount--;
    const record = KeyValue.encode({ key: fromLatin1(key) });
    const revision = encodeRevision(main, sub, true);
    state.backend.put(Bucket.key, revision, record);
    index.sizeBytes = state.liveBytes.added(revision, record);
    if (lease !== 0n) this.#leases.detach(lease, key);
    this.#changes?.push({ main, sub, key, record, deleted: true });
  }

  /** The lease of the key's last put, which is read only if it has one. */
  #leaseOf(index: KeyIndex): bigint {
    return index.leased ? KeyValue.decode(this.state.record(index.main, index.sub)).lease : 0n;
  }

  /** Ends the transaction: the store's revision becomes its own if it changed something. Gives the store's revision. */
  commit(): number {
    const { state } = this;
    assert(state.currentRevision === this.#main - 1, "MVCC-3", `transaction ${this.#main} commits at revision ${state.currentRevision}`);
    state.currentRevision = this.revision;
    this.#done(this);
    return state.currentRevision;
  }
}

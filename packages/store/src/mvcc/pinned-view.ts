/**
 * Reading one revision over several turns of the event loop. While a view is pinned, compaction
 * drops nothing that a read through it can meet. Many records are fetched together and off the
 * loop; a read that waits for them says so in `ReadIo`.
 */
import { Bucket } from "../backend.ts";
import type { Steps } from "../steps.ts";
import type { KeyIndex } from "./key-index.ts";
import { ReadView } from "./read-view.ts";
import { MAX_CACHED_BYTES } from "./record-cache.ts";
import { encodeRevision } from "./revision.ts";
import type { MvccState } from "./state.ts";

/** Up to so many records are read at once on the loop: a trip to another thread takes longer. */
const MAX_SYNC_RECORDS = 8;
/** Records that are fetched together: taking them over from the other thread takes some 0.5 ms. */
const MAX_FETCHED_RECORDS = 256;

/** Bytes of records that one read adds to the cache, at most. */
const MAX_KEPT_BYTES: number = MAX_CACHED_BYTES / 2;

/** Set by a read while it waits, so that its caller does not run its steps before that. */
export interface ReadIo {
  /** Resolves, and never rejects, when the read can continue; undefined: at once. */
  waitsFor: Promise<void> | undefined;
  /** Runs a read from disk when it is its turn. */
  fromDisk<T>(read: () => Promise<T>): Promise<T>;
}

/** The dependencies of a pinned read. */
export interface PinOptions {
  readonly io: ReadIo;
  /** Called with the change of bytes that the read holds in memory. Throws to end the read. */
  readonly charge: (bytes: number) => void;
}

export class PinnedView extends ReadView {
  readonly #revision: number;
  readonly #compactRevision: number;
  readonly #options: PinOptions;
  readonly #release: () => void;
  #keptBytes = 0;

  /** Made by Mvcc.pin(). */
  constructor(state: MvccState, release: () => void, options: PinOptions) {
    super(state);
    this.#revision = state.currentRevision;
    this.#compactRevision = state.compactRevision;
    this.#release = release;
    this.#options = options;
  }

  /** The store's revision when the view was made. */
  override get revision(): number {
    return this.#revision;
  }

  override get compactRevision(): number {
    return this.#compactRevision;
  }

  override charge(bytes: number): void {
    this.#options.charge(bytes);
  }

  /** Lets compaction continue. The view must not be used afterwards. */
  release(): void {
    this.#release();
  }

  override *load(
    indexes: readonly KeyIndex[],
    at: number,
    visit: (record: Uint8Array, i: number) => boolean,
  ): Steps<boolean> {
    if (indexes.length <= MAX_SYNC_RECORDS) return yield* super.load(indexes, at, visit);
    for (let start = 0; start < indexes.length; start += MAX_FETCHED_RECORDS) {
      const part = indexes.slice(start, start + MAX_FETCHED_RECORDS);
      const records = yield* this.#records(part, at);
      for (let i = 0; i < records.length; i++) if (!visit(records[i], start + i)) return false;
      yield;
    }
    return true;
  }

  *#records(indexes: readonly KeyIndex[], at: number): Steps<Uint8Array[]> {
    const records = new Array<Uint8Array>(indexes.length);
    const keys: Uint8Array[] = [];
    const places: number[] = [];
    for (let i = 0; i < indexes.length; i++) {
      const place = indexes[i].find(at);
      const [main, sub] = [indexes[i].mainAt(place), indexes[i].subAt(place)];
      const record = this.state.recordInMemory(main, sub);
      if (record !== undefined) records[i] = record;
      else {
        keys.push(encodeRevision(main, sub, false));
        places.push(i);
      }
    }
    if (keys.length === 0) return records;
    yield;
    const fetched = yield* this.#fromDisk(keys);
    for (let i = 0; i < places.length; i++) {
      const record = fetched[i] ?? this.state.missing(keys[i]);
      records[places[i]] = record;
      this.#keep(indexes[places[i]], at, record);
    }
    return records;
  }

  /**
   * A list that is read often stays in the cache; one that is larger than the cache does not empty
   * it.
   */
  #keep(index: KeyIndex, at: number, record: Uint8Array): void {
    if (this.#keptBytes > MAX_KEPT_BYTES) return;
    this.#keptBytes += record.length;
    const place = index.find(at);
    this.state.keep(index.mainAt(place), index.subAt(place), record);
  }

  *#fromDisk(keys: readonly Uint8Array[]): Steps<readonly (Uint8Array | undefined)[]> {
    const { io } = this.#options;
    let values: readonly (Uint8Array | undefined)[] | undefined;
    let failure: unknown;
    let isDone = false;
    const { backend } = this.state;
    io.waitsFor = io
      .fromDisk(() => backend.writtenMany(Bucket.key, keys))
      .then(
        (found) => {
          values = found;
          isDone = true;
        },
        (error: unknown) => {
          failure = error;
          isDone = true;
        },
      );
    while (!isDone) yield;
    io.waitsFor = undefined;
    if (values === undefined) throw failure;
    return values;
  }
}

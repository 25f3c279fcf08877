/**
 * Reading one revision over several turns of the event loop. While a view is pinned, compaction
 * drops nothing that a read through it can meet. Many records are fetched together and off the
 * loop; a read that waits for them says so in `ReadIo`.
 */
import { Bucket } from "../backend/backend.ts";
import { encodeRevision } from "../backend/revision.ts";
import type { Steps } from "../backend/steps.ts";
import type { KeyIndex } from "./key-index.ts";
import { ReadView } from "./read-view.ts";
import type { MvccState } from "./state.ts";
import { MAX_CACHED_BYTES } from "./state.ts";

/** Parts of a read that are fetched while an earlier one is used. */
const MAX_PARTS_AHEAD = 4;

/** Bytes of records that one read adds to the cache, at most. */
const MAX_KEPT_BYTES: number = MAX_CACHED_BYTES / 2;

/** Where a record is. */
interface Revision {
  readonly main: number;
  readonly sub: number;
}

/** Records that are being read from the disk. */
interface Fetch {
  /** All of them when `isDone`, unless there is a failure. */
  readonly records: readonly Uint8Array[];
  isDone: boolean;
  failure: unknown;
  /** Resolves when `isDone`. */
  ends: Promise<void> | undefined;
}

/** Set by a read while it waits, so that its caller does not run its steps before that. */
export interface ReadIo {
  /** Resolves, and never rejects, when the read can continue; undefined: now. */
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
  #isReleased = false;

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
    this.#isReleased = true;
    this.#release();
  }

  override *load(
    indexes: readonly KeyIndex[],
    at: number,
    visit: (record: Uint8Array, i: number) => boolean,
  ): Steps<boolean> {
    const { fetchedRecords, syncRecords } = this.state.bounds;
    if (indexes.length <= syncRecords) return yield* super.load(indexes, at, visit);
    // Parts are fetched ahead: a trip to another thread takes as long as the part before it does
    // here, and far longer on a busy machine.
    const ahead: Fetch[] = [];
    let begun = 0;
    for (let start = 0; start < indexes.length; ) {
      while (begun < indexes.length && ahead.length < MAX_PARTS_AHEAD) {
        ahead.push(this.#begin(indexes.slice(begun, begun + fetchedRecords), at));
        begun += fetchedRecords;
        yield;
      }
      const records = yield* this.#fetched(ahead.shift()!);
      for (let i = 0; i < records.length; i++) if (!visit(records[i], start + i)) return false;
      start += records.length;
      yield;
    }
    return true;
  }

  /** Takes what is in memory, and has the rest read from the disk. */
  #begin(indexes: readonly KeyIndex[], at: number): Fetch {
    const { state } = this;
    const records = new Array<Uint8Array>(indexes.length);
    const revisions = new Array<Revision>(indexes.length);
    const places: number[] = [];
    for (let i = 0; i < indexes.length; i++) {
      const place = indexes[i].find(at);
      const revision = { main: indexes[i].mainAt(place), sub: indexes[i].subAt(place) };
      revisions[i] = revision;
      const record = state.recordInMemory(revision.main, revision.sub);
      if (record === undefined) places.push(i);
      else records[i] = record;
    }
    const fetch: Fetch = {
      records,
      isDone: places.length === 0,
      failure: undefined,
      ends: undefined,
    };
    if (fetch.isDone) return fetch;
    const read = async (): Promise<void> => {
      if (this.#isReleased) return;
      // Another read may have fetched them since.
      const missing = places.filter((i) => {
        const record = state.recordInMemory(revisions[i].main, revisions[i].sub);
        if (record !== undefined) records[i] = record;
        return record === undefined;
      });
      if (missing.length === 0) return;
      const keys = missing.map((i) => encodeRevision(revisions[i].main, revisions[i].sub, false));
      const values = await state.backend.writtenMany(Bucket.key, keys);
      for (let i = 0; i < missing.length; i++) {
        const record = values[i] ?? state.missing(keys[i]);
        records[missing[i]] = this.#keep(revisions[missing[i]], record);
      }
    };
    fetch.ends = this.#options.io.fromDisk(read).then(
      () => {
        fetch.isDone = true;
      },
      (error: unknown) => {
        fetch.failure = error;
        fetch.isDone = true;
      },
    );
    return fetch;
  }

  *#fetched(fetch: Fetch): Steps<readonly Uint8Array[]> {
    const { io } = this.#options;
    if (!fetch.isDone) {
      io.waitsFor = fetch.ends;
      while (!fetch.isDone) yield;
      io.waitsFor = undefined;
    }
    if (fetch.failure !== undefined) throw fetch.failure;
    return fetch.records;
  }

  /**
   * A list that is read often stays in the cache; one that is larger than the cache does not empty
   * it.
   */
  #keep({ main, sub }: Revision, record: Uint8Array): Uint8Array {
    if (this.#keptBytes > MAX_KEPT_BYTES) return record;
    this.#keptBytes += record.length;
    return this.state.keep(main, sub, record);
  }
}

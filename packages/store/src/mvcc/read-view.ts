/**
 * Reading keys at a revision.
 *
 * Operations on one key take effect at once. A walk over a range is a generator (steps.ts): it
 * pauses every few hundred keys and continues by key, so that keys may be added, changed and
 * deleted in between. Reads at a revision that is not compacted return the same before and after a
 * pause; therefore every found key has its revision, and is looked up again in the index.
 */
import { errorOf, toLatin1 } from "@quorate/proto";
import type { Steps } from "../backend/steps.ts";
import { type KeyIndex, LATEST, NONE } from "./key-index.ts";
import type { MvccCounts, MvccState } from "./state.ts";

/**
 * A key that exists at a revision. Valid while the store changes, until compaction passes that
 * revision.
 */
export interface Found {
  readonly key: string;
  readonly index: KeyIndex;
  /** The revision that is read. */
  readonly at: number;
}

/**
 * Called for each key that is found, with its record if that was requested, or if the key changed
 * meanwhile, so that its index holds a later change. False ends the walk.
 */
export type VisitKey = (key: string, index: KeyIndex, record: Uint8Array | undefined) => boolean;

/** Called for each key that is found, before VisitKey; false if its record is not needed. */
export type NeedsRecord = (index: KeyIndex) => boolean;

/** A walk through a range. */
interface Walk {
  readonly to: string | undefined;
  /** The revision that is read. */
  readonly at: number;
  /** The next key's record is needed, and is not in memory. */
  isMissing: boolean;
}

export class ReadView {
  protected readonly state: MvccState;

  constructor(state: MvccState) {
    this.state = state;
  }

  /**
   * Charges bytes that the current request holds in memory; negative to release them. A view with a
   * bound throws beyond it.
   */
  charge(_bytes: number): void {}

  /** StoreBounds.batchBytes. */
  get batchBytes(): number {
    return this.state.bounds.batchBytes;
  }

  /** Counters since the store was opened; the handler of a request updates them. */
  get counts(): MvccCounts {
    return this.state.counts;
  }

  /** The newest revision that can be read here. */
  get revision(): number {
    return this.state.currentRevision;
  }

  /** The revision up to which history is dropped; -1 if the store was never compacted. */
  get compactRevision(): number {
    return this.state.compactRevision;
  }

  /**
   * The revision for a request's value: 0 or less is the newest. @throws EtcdError FutureRev,
   * Compacted
   */
  resolve(revision: number): number {
    if (revision > this.revision) throw errorOf("FutureRev");
    const at = revision <= 0 ? this.revision : revision;
    if (at < this.compactRevision) throw errorOf("Compacted");
    return at;
  }

  /** A key as of revision `at` (from resolve()); undefined if it did not exist. */
  get(key: string, at: number = this.revision): Found | undefined {
    const index = this.state.index.get(key);
    return index === undefined || index.find(at) === NONE ? undefined : { key, index, at };
  }

  /**
   * The keys of a range that exist as of revision `at`, in key order, if the range has at most
   * `most` keys (deleted ones included) and their records at most `mostBytes`, or only one key.
   * Otherwise undefined.
   */
  few(range: KeyRange, at: number, most: number, mostBytes: number): KeyIndex[] | undefined {
    const indexes: KeyIndex[] = [];
    if (range.single) {
      const index = this.state.index.get(range.key);
      if (index !== undefined && index.find(at) !== NONE) indexes.push(index);
      return indexes;
    }
    let sizeBytes = 0;
    let isTooMuch = false;
    const next = this.state.index.scanPart(range.key, range.to, most, (_key, index) => {
      const place = index.find(at);
      if (place === NONE) return true;
      indexes.push(index);
      sizeBytes += index.sizeAt(place);
      isTooMuch = sizeBytes > mostBytes && indexes.length > 1;
      return !isTooMuch;
    });
    return next === undefined && !isTooMuch ? indexes : undefined;
  }

  /**
   * Visits the keys of a range that exist as of revision `at`, in key order.
   * @param needs selects the keys whose records are read, called in key order and some keys ahead
   * of `visit`; without it none are
   * @param between run between two batches of keys, for work that `visit` has collected
   */
  *each(
    range: KeyRange,
    at: number,
    visit: VisitKey,
    needs?: NeedsRecord,
    between?: () => Steps<void> | undefined,
  ): Steps<void> {
    if (range.single) {
      const index = this.state.index.get(range.key);
      if (index === undefined || index.find(at) === NONE) return;
      visit(range.key, index, needs?.(index) === true ? this.recordAt(index, at) : undefined);
      return;
    }
    let from: string | undefined = range.key;
    const walk: Walk = { to: range.to, at, isMissing: false };
    for (;;) {
      from =
        needs === undefined
          ? this.#batch(from, walk, visit)
          : this.#batchInMemory(from, walk, visit, needs);
      if (walk.isMissing) from = yield* this.#batchWithRecords(from!, walk, visit, needs!);
      if (from === undefined) return;
      yield;
      const more = between?.();
      if (more !== undefined) yield* more;
    }
  }

  /** Visits some keys; returns the key to continue from. */
  #batch(first: string, { to, at }: Walk, visit: VisitKey): string | undefined {
    return this.state.index.scanPart(
      first,
      to,
      this.state.stepKeys,
      (key, index) => index.find(at) === NONE || visit(key, index, undefined),
    );
  }

  /** Visits keys while the needed records are in memory; returns the key to continue from. */
  #batchInMemory(
    first: string,
    walk: Walk,
    visit: VisitKey,
    needs: NeedsRecord,
  ): string | undefined {
    const { state } = this;
    const { stepBytes, stepMemoryRecords } = state.bounds;
    const { to, at } = walk;
    let records = 0;
    let sizeBytes = 0;
    let stoppedAt: string | undefined;
    const next = state.index.scanPart(first, to, state.stepKeys, (key, index) => {
      const place = index.find(at);
      if (place === NONE) return true;
      if (records === stepMemoryRecords || sizeBytes >= stepBytes) {
        stoppedAt = key;
        return false;
      }
      if (!needs(index)) return visit(key, index, undefined);
      const record = state.recordInMemory(index.mainAt(place), index.subAt(place));
      if (record === undefined) {
        walk.isMissing = true;
        stoppedAt = key;
        return false;
      }
      records++;
      sizeBytes += record.length;
      return visit(key, index, record);
    });
    return stoppedAt ?? next;
  }

  /**
   * Visits some keys, reading records as needed, including the first one's; returns the key to
   * continue from.
   */
  *#batchWithRecords(
    first: string,
    walk: Walk,
    visit: VisitKey,
    needs: NeedsRecord,
  ): Steps<string | undefined> {
    const { to, at } = walk;
    const { batchBytes } = this;
    const keys: string[] = [];
    const indexes: KeyIndex[] = [];
    /**
     * The last change of each key when it was found: if a key changes during a pause, only the
     * record shows its former state.
     */
    const changes: number[] = [];
    /** The keys whose records are needed, and their positions in `keys`. */
    const needed: KeyIndex[] = [];
    const places: number[] = [];
    let neededBytes = 0;
    let next = this.state.index.scanPart(first, to, this.state.stepKeys, (key, index) => {
      const place = index.find(at);
      if (place === NONE) return true;
      // `needs` was already called for the first key.
      if (walk.isMissing || needs(index)) {
        walk.isMissing = false;
        places.push(keys.length);
        needed.push(index);
        neededBytes += index.sizeAt(place);
      }
      keys.push(key);
      indexes.push(index);
      changes.push(index.main);
      return neededBytes < batchBytes;
    });
    if (neededBytes >= batchBytes) next = `${keys[keys.length - 1]}\0`;
    let visited = 0;
    const visitUpTo = (end: number): boolean => {
      while (visited < end) {
        const i = visited++;
        const index = indexes[i];
        if (
          !visit(keys[i], index, index.main === changes[i] ? undefined : this.recordAt(index, at))
        )
          return false;
      }
      return true;
    };
    const goesOn = yield* this.load(needed, at, (record, i) => {
      const place = places[i];
      if (!visitUpTo(place)) return false;
      visited = place + 1;
      return visit(keys[place], indexes[place], record);
    });
    return goesOn && visitUpTo(keys.length) ? next : undefined;
  }

  /**
   * Reads the records of keys that exist as of revision `at`, and calls `visit` for each in the
   * given order, with its position in `indexes`. False from `visit` ends it, and is returned.
   */
  *load(
    indexes: readonly KeyIndex[],
    at: number,
    visit: (record: Uint8Array, i: number) => boolean,
  ): Steps<boolean> {
    const { stepBytes, stepRecords } = this.state.bounds;
    let sizeBytes = 0;
    let read = 0;
    for (let i = 0; i < indexes.length; i++) {
      if (read === stepRecords || sizeBytes >= stepBytes) {
        yield;
        sizeBytes = 0;
        read = 0;
      }
      const record = this.recordAt(indexes[i], at);
      read++;
      sizeBytes += record.length;
      if (!visit(record, i)) return false;
    }
    return true;
  }

  /**
   * The records of the keys of a range as of revision `at`, in key order: the first `limit` of them
   * (0: all), and the number of keys without the limit.
   */
  *records(
    range: KeyRange,
    at: number,
    limit: number,
  ): Steps<{ readonly records: Uint8Array[]; readonly total: number }> {
    const records: Uint8Array[] = [];
    const total = yield* this.recordsInto(range, at, limit, records);
    return { records, total };
  }

  /**
   * Adds the records that `records` finds to `into`, and returns the number of keys without the
   * limit.
   */
  *recordsInto(
    range: KeyRange,
    at: number,
    limit: number,
    into: { push(record: Uint8Array): void },
  ): Steps<number> {
    const most = limit > 0 ? limit : Number.POSITIVE_INFINITY;
    let taken = 0;
    let next = range.key;
    const take: VisitKey = (key, _index, record) => {
      into.push(record!);
      if (++taken < most) return true;
      next = `${key}\0`;
      return false;
    };
    let asked = 0;
    yield* this.each(range, at, take, () => asked++ < most);
    if (taken < most || range.single) return taken;
    return taken + (yield* this.count({ ...range, key: next }, at));
  }

  /** The number of keys of a range that exist as of revision `at`. */
  *count(range: KeyRange, at: number = this.revision): Steps<number> {
    if (range.single) return this.get(range.key, at) === undefined ? 0 : 1;
    let total = 0;
    let from: string | undefined = range.key;
    for (;;) {
      from = this.state.index.scanPart(from, range.to, this.state.stepKeys, (_key, index) => {
        if (index.find(at) !== NONE) total++;
        return true;
      });
      if (from === undefined) return total;
      yield;
    }
  }

  /** The encoded mvccpb.KeyValue of a found key, as stored. The bytes must not be changed. */
  record({ index, at }: Found): Uint8Array {
    return this.recordAt(index, at);
  }

  /** The stored record of a key that exists as of revision `at`. The bytes must not be changed. */
  recordAt(index: KeyIndex, at: number): Uint8Array {
    const place = index.find(at);
    return this.state.record(index.mainAt(place), index.subAt(place));
  }
}

/**
 * True if the value at revision `at` is the key's last change, so that the index has everything but
 * the value.
 */
export function isLatest(index: KeyIndex, at: number): boolean {
  return index.find(at) === LATEST;
}

/**
 * One key, or the keys from `key` (included) to `to` (excluded; undefined: to the end). Keys are
 * latin1 strings.
 */
export type KeyRange =
  | { readonly single: true; readonly key: string }
  | { readonly single: false; readonly key: string; readonly to: string | undefined };

/**
 * The range of a request: no range_end is the key alone, a single zero byte everything from the key
 * on.
 */
export function keyRange(key: Uint8Array, rangeEnd: Uint8Array): KeyRange {
  const from = toLatin1(key);
  if (rangeEnd.length === 0) return { single: true, key: from };
  return {
    single: false,
    key: from,
    to: rangeEnd.length === 1 && rangeEnd[0] === 0 ? undefined : toLatin1(rangeEnd),
  };
}

/** True if the key is in the range. */
export function inRange(range: KeyRange, key: string): boolean {
  if (range.single) return key === range.key;
  return key >= range.key && (range.to === undefined || key < range.to);
}

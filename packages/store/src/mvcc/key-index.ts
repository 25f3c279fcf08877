/**
 * The history of one key: its retained changes in order, and the state on which the next change
 * builds.
 *
 *     put 2.0, put 3.0, delete 5.1, put 7.0        events  2.0  3.0  5.1t  7.0        created 7,
 *                                                          version 1
 *
 * A generation is the changes between two deletions; it needs no object of its own, because a
 * tombstone ends it. `created` and `version` are those of the last generation; older changes have
 * theirs in their records. Compaction at 3 drops what is no longer readable (2.0), at 4 too; at 5
 * everything before 5.1t; at 6 the tombstone too (a tombstone stays at exactly its revision, as in
 * etcd 3.7).
 *
 * Most keys have one event, which is stored in the object itself. With the second one there is an
 * older event, in one of three forms:
 *
 *     put, deletion        a number, the size of the put's record; the rest of the put is where the
 *                          created revision and version of an existing key are. So a deletion of a
 *                          million keys makes no objects, which would have to be collected
 *     put, put             an object, which is made in half the time of a list
 *     any three or more    a list
 *
 * Each event has the size of its record, so that a compaction knows the bytes it frees
 * without reading the records.
 */
import { violated } from "../backend/invariants.ts";

/** Place of the last event; places of older ones are 0 and more. */
export const LATEST = -1;
/** No event, or a deletion. */
export const NONE = -2;

const TOMBSTONE = 1;
const LEASED = 2;
/**
 * A change's position in its transaction and its flags as one number: sub * 4 + flags, exact up to
 * 2^51 changes.
 */
const FLAGS = 4;

function pack(sub: number, tombstone: boolean, leased: boolean): number {
  return sub * FLAGS + (tombstone ? TOMBSTONE : 0) + (leased ? LEASED : 0);
}

function isTombstone(packed: number): boolean {
  return (packed & TOMBSTONE) !== 0;
}

/** The only event before the last. */
class OneOlder {
  readonly main: number;
  readonly packed: number;
  readonly sizeBytes: number;

  constructor(main: number, packed: number, sizeBytes: number) {
    this.main = main;
    this.packed = packed;
    this.sizeBytes = sizeBytes;
  }
}

/** Numbers of one event in a list of older ones: main, packed, size of its record. */
const STRIDE = 3;

/** The main revision of an event that is dropped and not removed yet: below all others. */
const DROPPED = 0;

/** The number of events in `older` at or before revision `at`. */
function countUpTo(older: readonly number[], at: number): number {
  let low = 0;
  let high = older.length / STRIDE;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (older[middle * STRIDE] <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Called for each event that compaction drops, with the size of its record. */
export type DropEvent = (main: number, sub: number, tombstone: boolean, sizeBytes: number) => void;

export class KeyIndex {
  #main: number;
  #packed: number;
  #sizeBytes = 0;
  /** Of the last generation; with a number as #older, main and packed of the older event. */
  #created: number;
  #version: number;
  /** Events before the last; a list has them in order: main, packed, size, main, packed, ... */
  #older: number | OneOlder | number[] | undefined = undefined;

  private constructor(main: number, packed: number, created: number, version: number) {
    this.#main = main;
    this.#packed = packed;
    this.#created = created;
    this.#version = version;
  }

  /**
   * A key with its first known event, a put. After compaction that may be a later one of its
   * generation: created and version then differ.
   */
  static put(main: number, sub: number, leased: boolean, created = main, version = 1): KeyIndex {
    return new KeyIndex(main, pack(sub, false, leased), created, version);
  }

  /** A key of which only a deletion is left. */
  static tombstone(main: number, sub: number): KeyIndex {
    return new KeyIndex(main, pack(sub, true, false), 0, 0);
  }

  /** Main revision of the last event. */
  get main(): number {
    return this.#main;
  }

  get sub(): number {
    return Math.floor(this.#packed / FLAGS);
  }

  /** True if the key exists now. */
  get exists(): boolean {
    return (this.#packed & TOMBSTONE) === 0;
  }

  /** True if the last event is a put with a lease. */
  get leased(): boolean {
    return (this.#packed & LEASED) !== 0;
  }

  /** Revision that created the key's last generation. Only while it exists. */
  get created(): number {
    return this.#created;
  }

  /** Puts in the key's last generation. Only while it exists. */
  get version(): number {
    return this.#version;
  }

  /**
   * Sets the size of the last event's record. Every event has one, as soon as its record is
   * encoded.
   */
  set sizeBytes(sizeBytes: number) {
    this.#sizeBytes = sizeBytes;
  }

  /** Adds a put, later than the last event. */
  put(main: number, sub: number, leased: boolean): void {
    const { exists } = this;
    this.#push(main, pack(sub, false, leased));
    this.#created = exists ? this.#created : main;
    this.#version = exists ? this.#version + 1 : 1;
  }

  /** Adds a deletion, later than the last event. The key must exist. */
  delete(main: number, sub: number): void {
    if (!this.exists)
      violated("MVCC-2", `a key deleted at ${this.#main} is deleted again at ${main}`);
    const packed = pack(sub, true, false);
    if (this.#older !== undefined) {
      this.#push(main, packed);
      return;
    }
    this.#checkOrder(main, packed);
    this.#created = this.#main;
    this.#version = this.#packed;
    this.#older = this.#sizeBytes;
    this.#main = main;
    this.#packed = packed;
  }

  #checkOrder(main: number, packed: number): void {
    if (main < this.#main || (main === this.#main && packed <= this.#packed)) {
      const last = `${this.#main}.${this.#packed / FLAGS}`;
      violated("MVCC-1", `change ${main}.${packed / FLAGS} of a key follows ${last}`);
    }
  }

  #push(main: number, packed: number): void {
    this.#checkOrder(main, packed);
    const older = this.#onlyOlder() ?? this.#older;
    if (older === undefined) this.#older = new OneOlder(this.#main, this.#packed, this.#sizeBytes);
    else if (older instanceof OneOlder)
      this.#older = [
        older.main,
        older.packed,
        older.sizeBytes,
        this.#main,
        this.#packed,
        this.#sizeBytes,
      ];
    else (older as number[]).push(this.#main, this.#packed, this.#sizeBytes);
    this.#main = main;
    this.#packed = packed;
  }

  /** The older event where there is one and no list. */
  #onlyOlder(): OneOlder | undefined {
    const older = this.#older;
    if (typeof older === "number") return new OneOlder(this.#created, this.#version, older);
    return older instanceof OneOlder ? older : undefined;
  }

  /**
   * The place of the value as of revision `at`: a put (LATEST, or 0 and more); NONE if the key did
   * not exist then.
   */
  find(at: number): number {
    const place = this.#eventAt(at);
    return place === NONE || (this.#packedAt(place) & TOMBSTONE) !== 0 ? NONE : place;
  }

  /** Whether the key existed as of revision `at`. */
  existsAt(at: number): boolean {
    return this.find(at) !== NONE;
  }

  /** How many events that are still there came after revision `at`. */
  changesAfter(at: number): number {
    if (this.#main <= at) return 0;
    const older = this.#onlyOlder() ?? this.#older;
    if (older instanceof OneOlder) return older.main > at ? 2 : 1;
    if (older === undefined || typeof older === "number") return 1;
    return 1 + older.length / STRIDE - countUpTo(older, at);
  }

  /** Main revision of the event at a place. */
  mainAt(place: number): number {
    if (place === LATEST) return this.#main;
    const older = this.#older!;
    if (typeof older === "number") return this.#created;
    return older instanceof OneOlder ? older.main : older[place];
  }

  /** Sub revision of the event at a place. */
  subAt(place: number): number {
    return Math.floor(this.#packedAt(place) / FLAGS);
  }

  /** Size of the record of the event at a place. */
  sizeAt(place: number): number {
    if (place === LATEST) return this.#sizeBytes;
    const older = this.#older!;
    if (typeof older === "number") return older;
    return older instanceof OneOlder ? older.sizeBytes : older[place + 2];
  }

  /**
   * True if main.sub is a put and the value at revision `at`: the test for the records that a hash
   * covers.
   */
  isValueAt(main: number, sub: number, at: number): boolean {
    const place = this.find(at);
    return place !== NONE && this.mainAt(place) === main && this.subAt(place) === sub;
  }

  /**
   * Drops at most `most` events that no read at revision `at` or later can return, the oldest
   * first, and calls `drop` for each. True: nothing is left, and the key must be removed.
   */
  compact(at: number, most: number, drop: DropEvent): boolean {
    const place = this.#eventAt(at);
    if (place === NONE) return false;
    const gone = isTombstone(this.#packedAt(place)) && this.mainAt(place) < at;
    const older = this.#onlyOlder() ?? this.#older;
    let left = most;
    if (older instanceof OneOlder) {
      if (most > 0 && (place === LATEST || gone)) {
        drop(
          older.main,
          Math.floor(older.packed / FLAGS),
          isTombstone(older.packed),
          older.sizeBytes,
        );
        this.#older = undefined;
        left--;
      }
    } else if (older !== undefined && typeof older !== "number") {
      const superseded = place === LATEST ? older.length : gone ? place + STRIDE : place;
      const start = STRIDE * countUpTo(older, DROPPED);
      const end = Math.min(superseded, start + most * STRIDE);
      for (let i = start; i < end; i += STRIDE) {
        drop(older[i], Math.floor(older[i + 1] / FLAGS), isTombstone(older[i + 1]), older[i + 2]);
        older[i] = DROPPED;
      }
      // A long history is not moved for each part that is dropped.
      if (end > 0 && (end === superseded || end * 2 >= older.length))
        this.#older = end === older.length ? undefined : older.slice(end);
      left -= (end - start) / STRIDE;
    }
    if (place !== LATEST || !gone || left === 0 || this.#older !== undefined) return false;
    drop(this.#main, this.sub, true, this.#sizeBytes);
    return true;
  }

  /** The place of the last event at or before revision `at`. */
  #eventAt(at: number): number {
    if (this.#main <= at) return LATEST;
    const older = this.#older;
    if (older === undefined) return NONE;
    if (typeof older === "number") return this.#created <= at ? 0 : NONE;
    if (older instanceof OneOlder) return older.main <= at ? 0 : NONE;
    if (older[0] > at) return NONE;
    return (countUpTo(older, at) - 1) * STRIDE;
  }

  #packedAt(place: number): number {
    if (place === LATEST) return this.#packed;
    const older = this.#older!;
    if (typeof older === "number") return this.#version;
    return older instanceof OneOlder ? older.packed : older[place + 1];
  }
}

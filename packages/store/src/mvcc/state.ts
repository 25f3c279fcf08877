/** What the parts of mvcc share: the backend, the index in memory, and where the store stands. */
import { defined, fromUtf8 } from "@quorate/proto";
import { type Backend, Bucket } from "../backend/backend.ts";
import { STORE_BOUNDS, type StoreBounds } from "../backend/bounds.ts";
import { StoreDamageError } from "../backend/errors.ts";
import type { LiveBytes } from "../backend/meta.ts";
import { decodeRevision, encodeRevision } from "../backend/revision.ts";
import { STEP_KEYS } from "../backend/steps.ts";
import type { KeyIndex } from "./key-index.ts";
import { KeyTree } from "./key-tree.ts";

/** Names in the bucket meta; the values are revisions as in the bucket key. */
export const SCHEDULED_COMPACT: Uint8Array = fromUtf8("scheduledCompactRev");
export const FINISHED_COMPACT: Uint8Array = fromUtf8("finishedCompactRev");

/** The compact revision of a store that was never compacted (as etcd reports it). */
export const NEVER_COMPACTED = -1;

/** What was done since the store was opened, for metrics. */
export interface MvccCounts {
  ranges: number;
  puts: number;
  /** Keys and values of the puts. */
  putBytes: number;
  /** Requests to delete, whatever they found. */
  deletes: number;
  /** Transactions of more than one operation. */
  txns: number;
}

/** How long work is cut into steps. */
export interface StepOptions {
  /** Maximum keys in one step of a long transaction. */
  readonly stepKeys?: number | undefined;
  readonly bounds?: StoreBounds | undefined;
}

export class MvccState {
  readonly backend: Backend;
  /** The store's directory, for error texts. */
  readonly path: string;
  readonly index: KeyTree<KeyIndex> = new KeyTree();
  /** Revision of the last transaction that changed something; 1 for an empty store. */
  currentRevision = 1;
  /** Reads below it are refused. */
  compactRevision: number = NEVER_COMPACTED;
  /** Keys that exist now. */
  keyCount = 0;
  /** Bytes of the keys in the index, deleted ones with history included. */
  keyBytes = 0;
  readonly liveBytes: LiveBytes;
  readonly counts: MvccCounts = { ranges: 0, puts: 0, putBytes: 0, deletes: 0, txns: 0 };
  /** Keys that one step of a long transaction looks at, at most. */
  readonly stepKeys: number;
  readonly bounds: StoreBounds;
  readonly #records = new RecordCache();

  constructor(
    backend: Backend,
    path: string,
    liveBytes: LiveBytes,
    { stepKeys = STEP_KEYS, bounds = STORE_BOUNDS }: StepOptions,
  ) {
    this.backend = backend;
    this.path = path;
    this.liveBytes = liveBytes;
    this.stepKeys = stepKeys;
    this.bounds = bounds;
  }

  /** As `record`, if that needs no read from the disk, else undefined. */
  recordInMemory(main: number, sub: number): Uint8Array | undefined {
    const known = this.#records.get(main, sub);
    if (known !== undefined || main <= this.backend.writtenRevision) return known;
    return this.backend.waitingRecord(main, sub);
  }

  /**
   * Keeps a record that was read from the disk, for later reads. Returns the one to use: that of
   * another read which fetched it at the same time, so that it is in memory once.
   */
  keep(main: number, sub: number, record: Uint8Array): Uint8Array {
    const known = this.#records.get(main, sub);
    if (known !== undefined) return known;
    this.#records.add(main, sub, record);
    return record;
  }

  /**
   * Throws: a record that the index knows is not in the backend. @param key its revision as in the
   * bucket key
   */
  missing(key: Uint8Array): never {
    const { main, sub } = defined(decodeRevision(key), "the revision");
    throw new StoreDamageError(
      this.path,
      `bucket key, revision ${main}.${sub}`,
      "the record is missing",
    );
  }

  /** Adds a key to the index that it does not have. */
  addKey(key: string, index: KeyIndex): void {
    this.index.set(key, index);
    this.keyBytes += key.length;
  }

  /** Removes a key from the index. */
  removeKey(key: string): void {
    if (this.index.delete(key)) this.keyBytes -= key.length;
  }

  /** The encoded mvccpb.KeyValue of a put that the index knows. */
  record(main: number, sub: number): Uint8Array {
    const known = this.#records.get(main, sub);
    if (known !== undefined) return known;
    // One that waits for the disk is found in memory as it is, and its bytes are part of something
    // larger.
    if (main > this.backend.writtenRevision) {
      const waiting = this.backend.waitingRecord(main, sub);
      if (waiting !== undefined) return waiting;
    }
    const key = encodeRevision(main, sub, false);
    const record = this.backend.written(Bucket.key, key);
    if (record === undefined) this.missing(key);
    this.#records.add(main, sub, record);
    return record;
  }

  /** The revision in a record of the bucket meta; undefined where there is none. */
  readMark(name: Uint8Array): number | undefined {
    const bytes = this.backend.get(Bucket.meta, name);
    if (bytes === undefined) return undefined;
    const revision = decodeRevision(bytes);
    if (revision === undefined) {
      throw new StoreDamageError(
        this.path,
        `bucket meta, key ${String.fromCharCode(...name)}`,
        "the record is not a revision",
      );
    }
    return revision.main;
  }

  writeMark(name: Uint8Array, main: number): void {
    this.backend.put(Bucket.meta, name, encodeRevision(main, 0, false));
  }
}

/** Maximum bytes of cached records, overhead included. */
export const MAX_CACHED_BYTES: number = 32 << 20;
/** Larger records are not cached: reading them costs more than the lookup. */
export const MAX_CACHED_RECORD_BYTES: number = 64 << 10;
/** Estimated bytes of a map entry, an array and its buffer. */
const OVERHEAD_BYTES = 256;

/** The range of sub-revisions that fit with the main revision into one number. */
const MAX_SUB = 1024;
const MAX_MAIN = Math.floor(Number.MAX_SAFE_INTEGER / MAX_SUB / 2);

/**
 * A revision as one number. Those without a sub-revision, which most are, are small enough that V8
 * makes no object for the number: a record is found in half the time.
 */
function idOf(main: number, sub: number): number {
  return sub === 0 ? main : MAX_MAIN + main * MAX_SUB + sub;
}

/**
 * Recently read records, by their revision. A record never changes, so no entry can be stale, and a
 * record of a compacted revision is never requested.
 *
 * Two halves: records that are read go into the young one. When that reaches half of the bound, it
 * becomes the old one, and the records of the previous old one that were not read meanwhile are
 * dropped.
 */
export class RecordCache {
  readonly #halfBytes: number;
  #young = new Map<number, Uint8Array>();
  #youngBytes = 0;
  #old = new Map<number, Uint8Array>();
  #oldBytes = 0;

  constructor(maxBytes = MAX_CACHED_BYTES) {
    this.#halfBytes = maxBytes / 2;
  }

  /** Bytes of cached records, overhead included. */
  get sizeBytes(): number {
    return this.#youngBytes + this.#oldBytes;
  }

  get(main: number, sub: number): Uint8Array | undefined {
    if (sub >= MAX_SUB || main > MAX_MAIN) return undefined;
    const id = idOf(main, sub);
    const young = this.#young.get(id);
    if (young !== undefined || this.#old.size === 0) return young;
    const old = this.#old.get(id);
    if (old !== undefined) {
      this.#old.delete(id);
      this.#oldBytes -= old.length + OVERHEAD_BYTES;
      this.#add(id, old);
    }
    return old;
  }

  /** Adds a record, which must not be changed afterwards. */
  add(main: number, sub: number, record: Uint8Array): void {
    if (record.length <= MAX_CACHED_RECORD_BYTES && sub < MAX_SUB && main <= MAX_MAIN)
      this.#add(idOf(main, sub), record);
  }

  #add(id: number, record: Uint8Array): void {
    this.#young.set(id, record);
    this.#youngBytes += record.length + OVERHEAD_BYTES;
    if (this.#youngBytes < this.#halfBytes) return;
    this.#old = this.#young;
    this.#oldBytes = this.#youngBytes;
    this.#young = new Map();
    this.#youngBytes = 0;
  }
}

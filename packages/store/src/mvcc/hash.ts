/**
 * Hashes that members compare.
 *
 * HashKV is etcd's: CRC-32C over the name of the bucket and then the key and value of every record
 * up to the hash's revision, in order. Of the records at or below the compact revision only those
 * count that a read at the hash's revision still finds (the others are about to go, on some members
 * sooner than on others); if there is no such record at all, those count that compaction leaves.
 */
import { crc32c, errorOf, fromUtf8, KeyValue, toLatin1 } from "@quorate/proto";
import { type BackendSnapshot, Bucket } from "../backend/backend.ts";
import { assert } from "../backend/invariants.ts";
import { LIVE_BYTES } from "../backend/meta.ts";
import { decodeRevision, encodeRevision } from "../backend/revision.ts";
import { BytesDamage } from "../level-files/bytes.ts";
import type { OpenFiles, TableRecords } from "../level-files/records.ts";
import type { Compaction } from "./compaction.ts";
import type { KeyIndex } from "./key-index.ts";
import type { KeyTree } from "./key-tree.ts";
import { BUCKET_BYTES, RecordHead } from "./restore.ts";
import type { MvccState } from "./state.ts";

const BUCKET_NAME = fromUtf8("key");

export interface KeyValueHash {
  readonly hash: number;
  /** The revision that was hashed. */
  readonly revision: number;
  /**
   * The compact revision then; -1 if never compacted. Hashes compare only where both revisions are
   * equal.
   */
  readonly compactRevision: number;
  /** The store's revision when it was asked for. */
  readonly currentRevision: number;
}

/**
 * The hash at a revision (0: the newest). Changes may go on meanwhile; compaction waits.
 * @param openFiles opens the bucket key's tables, which cost a fifth of the way through LevelDB
 * @throws EtcdError Compacted, FutureRev
 */
export async function hashKV(
  state: MvccState,
  compaction: Compaction,
  asked: number,
  openFiles: OpenFiles | undefined,
): Promise<KeyValueHash> {
  const { compactRevision, currentRevision } = state;
  if (asked > 0 && asked < compactRevision) throw errorOf("Compacted");
  if (asked > currentRevision) throw errorOf("FutureRev");
  const revision = asked === 0 ? currentRevision : asked;
  const release = compaction.pin();
  try {
    const empty = () => new HistoryHash(state.index, compactRevision, revision);
    const snapshot = await state.backend.snapshot(openFiles);
    try {
      const { tables } = snapshot;
      const hash =
        (tables && (await empty().ofFiles(tables.records()))) ??
        (await empty().ofRecords(snapshot, state.bounds.sliceBytes));
      return { hash, revision, compactRevision, currentRevision };
    } finally {
      await snapshot.close();
    }
  } finally {
    release();
  }
}

/** The hash over the records of the bucket key at one revision, made once, of records in order. */
class HistoryHash {
  readonly #index: KeyTree<KeyIndex>;
  readonly #compactRevision: number;
  readonly #revision: number;
  readonly #head = new RecordHead();
  #crc = crc32c(0, BUCKET_NAME);
  /** A record was found that a read at the hash's revision finds. */
  #anyValue = false;
  /**
   * The hash for the case that there is no such record: set at the first record that counts only
   * then. To look for one beforehand takes a walk through all keys.
   */
  #crcIfNone: number | undefined;

  constructor(index: KeyTree<KeyIndex>, compactRevision: number, revision: number) {
    this.#index = index;
    this.#compactRevision = compactRevision;
    this.#revision = revision;
  }

  get #result(): number {
    return this.#anyValue ? this.#crc : (this.#crcIfNone ?? this.#crc);
  }

  /**
   * The hash of the records in the bucket's tables; undefined if these are damaged, of which
   * LevelDB knows more.
   */
  async ofFiles(records: TableRecords): Promise<number | undefined> {
    try {
      do {
        while (records.next()) {
          const { key, bytes, valueStart, valueEnd } = records.record;
          const revision = key.subarray(BUCKET_BYTES, records.keyLength);
          if (!this.#add(revision, bytes, valueStart, valueEnd)) return this.#result;
        }
      } while (await records.refill());
    } catch (error) {
      if (error instanceof BytesDamage) return undefined;
      throw error;
    }
    return this.#result;
  }

  /** The hash of the records of a view, read through LevelDB. */
  async ofRecords(snapshot: BackendSnapshot, sliceBytes: number | undefined): Promise<number> {
    // Below 0 (etcd does not refuse it) nothing counts.
    const end = encodeRevision(Math.max(this.#revision + 1, 0), 0, false);
    for await (const slice of snapshot.scan(Bucket.key, undefined, end, sliceBytes)) {
      for (const [key, record] of slice) this.#add(key, record, 0, record.length);
    }
    return this.#result;
  }

  /** Adds the record in bytes[start, end); false if it is behind the hash's revision. */
  #add(key: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
    const at = decodeRevision(key);
    assert(at !== undefined, "MVCC-4", "every key of the bucket key is a revision");
    const { main, sub, tombstone } = at;
    if (main > this.#revision) return false;
    if (main <= this.#compactRevision) {
      if (tombstone) return true;
      const entry = this.#entryOf(bytes, start, end);
      if (entry === undefined || !entry.isValueAt(main, sub, this.#compactRevision)) return true;
      if (!entry.isValueAt(main, sub, this.#revision)) {
        if (!this.#anyValue)
          this.#crcIfNone = crcOf(this.#crcIfNone ?? this.#crc, key, bytes, start, end);
        return true;
      }
      this.#anyValue = true;
    } else if (this.#crcIfNone !== undefined && !this.#anyValue && !tombstone) {
      const entry = this.#entryOf(bytes, start, end);
      this.#anyValue = entry?.isValueAt(main, sub, this.#revision) === true;
    }
    this.#crc = crcOf(this.#crc, key, bytes, start, end);
    if (this.#crcIfNone !== undefined && !this.#anyValue)
      this.#crcIfNone = crcOf(this.#crcIfNone, key, bytes, start, end);
    return true;
  }

  #entryOf(bytes: Uint8Array, start: number, end: number): KeyIndex | undefined {
    const head = this.#head;
    const key = head.read(bytes, start, end)
      ? toLatin1(bytes, head.keyStart, head.keyEnd)
      : toLatin1(KeyValue.decode(bytes.subarray(start, end)).key);
    return this.#index.get(key);
  }
}

/** Continues `crc` with a record's key and its value, which is bytes[start, end). */
function crcOf(
  crc: number,
  key: Uint8Array,
  bytes: Uint8Array,
  start: number,
  end: number,
): number {
  return crc32c(crc32c(crc, key), bytes, start, end);
}

/**
 * Records of the bucket meta that differ between equal stores: where each stands in its log, and
 * how far its compaction has come.
 */
const NOT_HASHED = new Set(
  ["consistent_index", "term", toLatin1(LIVE_BYTES)].map(
    (name) => String.fromCharCode(Bucket.meta) + name,
  ),
);

/**
 * CRC-32C over the keys (bucket byte first) and values of all buckets in key order, without the
 * position in the log. Ours: etcd's own covers its file's buckets under their names, so the two
 * never compare.
 */
export async function hashAll(state: MvccState): Promise<number> {
  const snapshot = await state.backend.snapshot();
  try {
    let crc = 0;
    for await (const slice of snapshot.scanAll(state.bounds.sliceBytes)) {
      for (const [key, value] of slice) {
        if (key[0] !== Bucket.meta || !NOT_HASHED.has(toLatin1(key)))
          crc = crc32c(crc32c(crc, key), value);
      }
    }
    return crc;
  } finally {
    await snapshot.close();
  }
}

/** Maximum number of different hashes that wait for their turn. */
const MAX_WAITING_HASHES = 8;

interface Run<T> {
  readonly key: string;
  /** Whether a run that began now would have the same result. */
  readonly isCurrent: () => boolean;
  hasBegun: boolean;
  readonly result: Promise<T>;
}

/**
 * Hashes of the store, one at a time: each reads the whole store and delays compaction. Requests
 * for the same hash share one run, so that compaction never waits for more than the run in
 * progress.
 */
export class HashRuns {
  #runs: Run<unknown>[] = [];
  #last: Promise<void> = Promise.resolve();

  /**
   * Joins a run of this key that waits, or that is in progress and current; otherwise queues one.
   * @param isCurrent whether a run in progress serves new callers @throws EtcdError TooManyRequests
   */
  run<T>(key: string, make: () => Promise<T>, isCurrent: () => boolean = () => false): Promise<T> {
    const shared = this.#runs.find((run) => run.key === key && (!run.hasBegun || run.isCurrent()));
    if (shared !== undefined) return shared.result as Promise<T>;
    if (this.#runs.length > MAX_WAITING_HASHES) throw errorOf("TooManyRequests");
    const isAlone = this.#runs.length === 0;
    const result = isAlone ? make() : this.#last.then(begin);
    const run: Run<T> = { key, isCurrent, hasBegun: isAlone, result };
    function begin(): Promise<T> {
      run.hasBegun = true;
      return make();
    }
    this.#runs.push(run);
    const end = (): void => {
      this.#runs = this.#runs.filter((one) => one !== run);
    };
    this.#last = result.then(end, end);
    return result;
  }
}

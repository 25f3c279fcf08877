/**
 * Hashes that members compare.
 *
 * HashKV is etcd's: CRC-32C over the name of the bucket and then the key and value of every record
 * up to the hash's revision, in order. Of the records at or below the compact revision only those
 * count that a read at the hash's revision still finds (the others are about to go, on some members
 * sooner than on others); if there is no such record at all, those count that compaction leaves.
 */
import { crc32c, errorOf, fromUtf8, KeyValue, toLatin1 } from "@quorate/proto";
import { Bucket } from "../backend/backend.ts";
import { assert } from "../backend/invariants.ts";
import { LIVE_BYTES } from "../backend/live-bytes.ts";
import type { Compaction } from "./compaction.ts";
import type { KeyIndex } from "./key-index.ts";
import type { KeyTree } from "./key-tree.ts";
import { decodeRevision, encodeRevision } from "./revision.ts";
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
 * The hash at a revision (0: the newest). Changes may go on meanwhile; compaction waits. @throws
 * EtcdError Compacted, FutureRev
 */
export async function hashKV(
  state: MvccState,
  compaction: Compaction,
  asked: number,
): Promise<KeyValueHash> {
  const { compactRevision, currentRevision } = state;
  if (asked > 0 && asked < compactRevision) throw errorOf("Compacted");
  if (asked > currentRevision) throw errorOf("FutureRev");
  const revision = asked === 0 ? currentRevision : asked;
  const release = compaction.pin();
  try {
    const hash = new HistoryHash(state.index, compactRevision, revision);
    // Below 0 (etcd does not refuse it) nothing counts.
    const end = encodeRevision(Math.max(revision + 1, 0), 0, false);
    const snapshot = await state.backend.snapshot();
    try {
      for await (const slice of snapshot.scan(
        Bucket.key,
        undefined,
        end,
        state.bounds.sliceBytes,
      )) {
        for (const [key, record] of slice) hash.add(key, record);
      }
    } finally {
      await snapshot.close();
    }
    return { hash: hash.result, revision, compactRevision, currentRevision };
  } finally {
    release();
  }
}

/** The hash over the records of the bucket key at one revision. Records are added in order. */
class HistoryHash {
  readonly #index: KeyTree<KeyIndex>;
  readonly #compactRevision: number;
  readonly #revision: number;
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

  get result(): number {
    return this.#anyValue ? this.#crc : (this.#crcIfNone ?? this.#crc);
  }

  add(key: Uint8Array, record: Uint8Array): void {
    const at = decodeRevision(key);
    assert(at !== undefined, "MVCC-4", "every key of the bucket key is a revision");
    const { main, sub, tombstone } = at;
    if (main <= this.#compactRevision) {
      if (tombstone) return;
      const entry = this.#entryOf(record);
      if (entry === undefined || !entry.isValueAt(main, sub, this.#compactRevision)) return;
      if (!entry.isValueAt(main, sub, this.#revision)) {
        if (!this.#anyValue) this.#crcIfNone = add(this.#crcIfNone ?? this.#crc, key, record);
        return;
      }
      this.#anyValue = true;
    } else if (this.#crcIfNone !== undefined && !this.#anyValue && !tombstone) {
      this.#anyValue = this.#entryOf(record)?.isValueAt(main, sub, this.#revision) === true;
    }
    this.#crc = add(this.#crc, key, record);
    if (this.#crcIfNone !== undefined && !this.#anyValue)
      this.#crcIfNone = add(this.#crcIfNone, key, record);
  }

  #entryOf(record: Uint8Array): KeyIndex | undefined {
    return this.#index.get(toLatin1(KeyValue.decode(record).key));
  }
}

function add(crc: number, key: Uint8Array, record: Uint8Array): number {
  return crc32c(crc32c(crc, key), record);
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

/**
 * Hashes that members compare.
 *
 * HashKV is etcd's: CRC-32C over the name of the bucket and then the key and value of every record
 * up to the hash's revision, in order. Of the records at or below the compact revision only those
 * count that a read at the hash's revision still finds (the others are about to go, on some members
 * sooner than on others); if there is no such record at all, those count that compaction leaves.
 */
import { crc32c, errorOf, fromUtf8, KeyValue, toLatin1 } from "@quorate/proto";
import { Bucket } from "../backend.ts";
import { assert } from "../invariants.ts";
import { LIVE_BYTES } from "../live-bytes.ts";
import type { Compaction } from "./compaction.ts";
import { NONE } from "./key-index.ts";
import { decodeRevision, encodeRevision } from "./revision.ts";
import type { MvccState } from "./state.ts";

/** What is hashed in one turn of the event loop: some 2 ms of small records. */
const SLICE_BYTES: number = 64 << 10;

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
  const { compactRevision, currentRevision, index } = state;
  if (asked > 0 && asked < compactRevision) throw errorOf("Compacted");
  if (asked > currentRevision) throw errorOf("FutureRev");
  const revision = asked === 0 ? currentRevision : asked;
  const release = compaction.pin();
  try {
    let crc = crc32c(0, BUCKET_NAME);
    let anyValue: boolean | undefined;
    /** If a record at or below the compact revision counts. */
    const counts = (value: Uint8Array, main: number, sub: number): boolean => {
      const entry = index.get(toLatin1(KeyValue.decode(value).key));
      if (entry === undefined || !entry.isValueAt(main, sub, compactRevision)) return false;
      if (entry.isValueAt(main, sub, revision)) return true;
      anyValue ??= hasValueAt(state, revision);
      return !anyValue;
    };
    // Below 0 (etcd does not refuse it) nothing counts.
    const end = encodeRevision(Math.max(revision + 1, 0), 0, false);
    const snapshot = await state.backend.snapshot();
    try {
      for await (const slice of snapshot.scan(Bucket.key, undefined, end, SLICE_BYTES)) {
        for (const [key, value] of slice) {
          const at = decodeRevision(key);
          assert(at !== undefined, "MVCC-4");
          if (at.main <= compactRevision && (at.tombstone || !counts(value, at.main, at.sub)))
            continue;
          crc = crc32c(crc32c(crc, key), value);
        }
      }
    } finally {
      await snapshot.close();
    }
    return { hash: crc, revision, compactRevision, currentRevision };
  } finally {
    release();
  }
}

function hasValueAt(state: MvccState, revision: number): boolean {
  let any = false;
  state.index.scan("", undefined, (_key, entry) => {
    any = entry.find(revision) !== NONE;
    return !any;
  });
  return any;
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
    for await (const slice of snapshot.scanAll(SLICE_BYTES)) {
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

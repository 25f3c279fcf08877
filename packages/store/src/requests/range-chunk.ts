/**
 * One part of a range that is sent in parts (etcd: EtcdServer.rangeStream). Each part is a read of
 * its own at the same revision, and begins after the last key of the part before:
 *
 *     limit 3:   [a b c] more, last c   ->   from "c\0"   [d e f] more, last f   ->   [g]
 */
import { varintSize } from "@quorate/proto";
import type { Steps } from "../backend/steps.ts";
import type { KeyIndex, KeyRange, ReadView, VisitKey } from "../mvcc/index.ts";
import { isKnown, keyOf, type RecordSink, withoutValue } from "./range.ts";

/** The part of a range that is read. */
export interface ChunkRequest {
  readonly keys: KeyRange;
  /** The revision that is read; 0 or less: the newest. */
  readonly revision: number;
  /** Without values. */
  readonly keysOnly: boolean;
  /** Maximum keys of the part, at least 1; Infinity for all. */
  readonly limit: number;
  /** The part ends after the record with which it reaches so many bytes, whatever its limit. */
  readonly maxBytes: number;
}

/** What a part came to, without its records. */
export interface ChunkSummary {
  /** The store's newest revision. */
  readonly revision: number;
  readonly keys: number;
  /** Bytes of the records, as fields of a RangeResponse. */
  readonly sizeBytes: number;
  /** The last key of the part if the range has more keys; undefined where the part is the last. */
  readonly last: string | undefined;
}

/**
 * Reads one part in steps, and passes its records to `into` in key order. The view's revision must
 * stay readable until the last step. @throws EtcdError FutureRev, Compacted
 */
export function* rangeChunk(
  view: ReadView,
  { keys, revision, keysOnly, limit, maxBytes }: ChunkRequest,
  into: RecordSink,
): Steps<ChunkSummary> {
  view.counts.ranges++;
  const at = view.resolve(revision);
  const newest = view.revision;
  let asked = 0;
  let given = 0;
  let sizeBytes = 0;
  let latest: string | undefined;
  let hasMore = false;
  const needs = (index: KeyIndex): boolean => asked++ < limit && (!keysOnly || !isKnown(index, at));
  const visit: VisitKey = (key, index, record) => {
    hasMore = given === limit || sizeBytes >= maxBytes;
    if (hasMore) return false;
    const whole = record ?? keyOf(key, index);
    const sent = record !== undefined && keysOnly ? withoutValue(record) : whole;
    into.push(sent);
    given++;
    // A tag, the length, the record.
    sizeBytes += 1 + varintSize(sent.length) + sent.length;
    latest = key;
    return true;
  };
  yield* view.each(keys, at, visit, needs);
  return { revision: newest, keys: given, sizeBytes, last: hasMore ? latest : undefined };
}

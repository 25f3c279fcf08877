/**
 * A page of a range: its first records in key order, bounded in keys and bytes. Unlike `range` it
 * does not count the keys behind the page, so that reading a range of n keys page by page visits n
 * keys.
 *
 *     page(key, revision 0)        -> records a, b, c; revision 9; more
 *     page(c + "\0", revision 9)   -> records d, e;    revision 12
 */
import type { RangeRequest } from "@quorate/proto";
import { type KeyIndex, keyRange, type ReadView, type VisitKey } from "../mvcc/index.ts";
import type { Steps } from "../steps.ts";
import { isKnown, keyOf, type RecordSink, withoutValue } from "./range.ts";

/** Bounds of one page. One record is always returned, whatever its size. */
export interface PageBounds {
  readonly maxKeys: number;
  /** Of the records with their values; with keys_only of what the index has of them. */
  readonly maxBytes: number;
}

/** A page without its records. */
export interface PageSummary {
  /** The store's revision. */
  readonly revision: number;
  /** The range has keys behind the page. */
  readonly more: boolean;
}

/** What a key counts besides its bytes where its value is not read. */
const KEY_OVERHEAD_BYTES = 64;

/**
 * Reads a page through a view, in steps. The request's limit, order and filters are ignored.
 * @param into receives the records in key order
 * @throws EtcdError FutureRev, Compacted
 */
export function* pageInto(
  view: ReadView,
  request: Pick<RangeRequest, "key" | "rangeEnd" | "revision" | "keysOnly">,
  into: RecordSink,
  { maxKeys, maxBytes }: PageBounds,
): Steps<PageSummary> {
  view.counts.ranges++;
  const { keysOnly } = request;
  const at = view.resolve(request.revision);
  const { revision } = view;
  let admitted = 0;
  let admittedBytes = 0;
  let isFull = false;
  // Called in the order of the keys, ahead of `visit`.
  const needs = (index: KeyIndex): boolean => {
    if (isFull) return false;
    const known = keysOnly && isKnown(index, at);
    admittedBytes += known ? KEY_OVERHEAD_BYTES : index.sizeAt(index.find(at));
    isFull = ++admitted >= maxKeys || admittedBytes >= maxBytes;
    return !known;
  };
  let given = 0;
  let more = false;
  const visit: VisitKey = (key, index, record) => {
    if (given === admitted) {
      more = true;
      return false;
    }
    given++;
    if (record === undefined) into.push(keyOf(key, index));
    else into.push(keysOnly ? withoutValue(record) : record);
    return true;
  };
  yield* view.each(keyRange(request.key, request.rangeEnd), at, visit, needs);
  return { revision, more };
}

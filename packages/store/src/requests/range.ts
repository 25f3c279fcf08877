/**
 * Range: reading keys, with every option of the request.
 *
 * The rules are etcd's, also where they surprise: `count` is what is in the range whatever the limit and the filters; the bounds on
 * revisions come before the limit; a sort by something else than the key, given without an order, means ascending, but then only the
 * first limit + 1 keys in key order are sorted. Equal sort values keep key order.
 *
 * Records are read only where they are needed: not for counting, not for keys whose latest change is asked for with keys_only, and not
 * for what the limit cuts off, unless it is sorted by value or filtered by a created revision that only the record has.
 *
 * A range of more than one key runs in steps (steps.ts), and other requests may change the store in between. It reads one revision all the
 * while.
 */
import {
  compare,
  EMPTY,
  fromLatin1,
  KeyValue,
  RangeRequest_SortOrder as Order,
  type RangeRequest,
  type RangeResponse,
  RangeRequest_SortTarget as Target,
} from "@quorate/proto";
import { isLatest, type KeyIndex, type KeyRange, keyRange, type Mvcc, type ReadView, type VisitKey } from "../mvcc/index.ts";
import { runSteps, STEP_KEYS, type Steps } from "../steps.ts";
import { headerAt } from "./header.ts";
import { FirstRows, LastRows, type RowBuffer, SortedRows } from "./rows.ts";

/** Reads what is applied, without a pause. @throws EtcdError FutureRev, Compacted */
export function applyRange(mvcc: Mvcc, request: RangeRequest): RangeResponse {
  return rangeNow(mvcc.view, request);
}

/** Reads through a view without a pause. @throws EtcdError FutureRev, Compacted */
export function rangeNow(view: ReadView, request: RangeRequest): RangeResponse {
  return isPlainGet(request) ? get(view, request) : runSteps(range(view, request));
}

/** True for a request that reads one key and returns it as it is: what takes the shortest way. */
export function isPlainGet(request: RangeRequest): boolean {
  return request.rangeEnd.length === 0 && !request.countOnly && !request.keysOnly && !hasRevisionBounds(request);
}

function get(view: ReadView, request: RangeRequest): RangeResponse {
  view.counts.ranges++;
  const keys = keyRange(request.key, request.rangeEnd);
  const found = view.get(keys.key, view.resolve(request.revision));
  const kvs = found === undefined ? [] : [view.record(found)];
  return { header: headerAt(view.revision), kvs, more: false, count: kvs.length };
}

/**
 * Reads through a view, in steps; in a transaction that is one which sees its changes. The revision that is read is settled at the first
 * step, and must stay readable until the last.
 * @throws EtcdError FutureRev, Compacted
 */
export function* range(view: ReadView, request: RangeRequest): Steps<RangeResponse> {
  if (isPlainGet(request)) return get(view, request);
  view.counts.ranges++;
  const at = view.resolve(request.revision);
  const keys = keyRange(request.key, request.rangeEnd);
  const header = headerAt(view.revision);
  if (request.countOnly) return { header, kvs: [], more: false, count: yield* view.count(keys, at) };
  const { limit } = request;
  const inKeyOrder = isInKeyOrder(request);
  if (inKeyOrder && request.sortTarget === Target.KEY && !hasRevisionBounds(request) && !request.keysOnly) {
    const { records, total } = yield* view.records(keys, at, limit);
    return { header, kvs: records, more: limit > 0 && total > limit, count: total };
  }
  const rows = collectorFor(request);
  const count = yield* collect(view, request, keys, at, rows);
  const lastCut = rows.cut();
  if (lastCut !== undefined) yield* lastCut;
  return { header, kvs: yield* answer(view, request, at, rows.result()), more: limit > 0 && rows.total > limit, count };
}

/** A key that may be part of the answer. */
interface Row {
  readonly key: string;
  readonly index: KeyIndex;
  /** What the request sorts by, where that is not the key. */
  readonly by: number | Uint8Array;
  /** The key's record, if it was read for the sort or for a filter. */
  readonly record: Uint8Array | undefined;
}

/** True if the answer has the keys as the index gives them. */
function isInKeyOrder({ sortOrder, sortTarget }: RangeRequest): boolean {
  return sortOrder === Order.NONE || (sortTarget === Target.KEY && sortOrder === Order.ASCEND);
}

function hasRevisionBounds(request: RangeRequest): boolean {
  return request.minModRevision !== 0 || request.maxModRevision !== 0 || request.minCreateRevision !== 0 || request.maxCreateRevision !== 0;
}

/** What keeps the rows of the answer, in its order. */
function collectorFor(request: RangeRequest): RowBuffer<Row> {
  const { limit, sortTarget } = request;
  const sign = request.sortOrder === Order.DESCEND ? -1 : 1;
  if (sortTarget === Target.KEY) return sign < 0 ? new LastRows(limit) : new FirstRows(limit);
  if (sortTarget === Target.VALUE) return new SortedRows(limit, (a, b) => sign * compare(a.by as Uint8Array, b.by as Uint8Array));
  return new SortedRows(limit, (a, b) => sign * ((a.by as number) - (b.by as number)));
}

/** Adds the keys of the range that pass the request's filters to `rows`; returns how many keys the range has without the filters. */
function* collect(view: ReadView, request: RangeRequest, keys: KeyRange, at: number, rows: RowBuffer<Row>): Steps<number> {
  // In key order, one more than the limit tells whether there is more; a sort without an order sees no more than that either.
  const isCut = request.limit > 0 && isInKeyOrder(request) && !hasRevisionBounds(request);
  const most = isCut ? request.limit + 1 : Number.POSITIVE_INFINITY;
  let needed = 0;
  let count = 0;
  const needs = (index: KeyIndex): boolean => needed++ < most && needsRecord(request, index, at);
  const visit: VisitKey = (key, index, record) => {
    if (count++ >= most || !isWithinBounds(request, index, at, record)) return true;
    rows.add({ key, index, by: sortValue(request, index, at, record), record }, record?.length ?? 0);
    return true;
  };
  yield* view.each(keys, at, visit, needs, () => (rows.isFull ? rows.cut() : undefined));
  return count;
}

/** True if the key's record is needed to decide whether it is part of the answer, or where in it. */
function needsRecord(request: RangeRequest, index: KeyIndex, at: number): boolean {
  const { sortTarget } = request;
  if (!isWithinModBounds(request, index, at)) return false;
  if (sortTarget === Target.VALUE) return true;
  const isCreatedAsked = request.minCreateRevision !== 0 || request.maxCreateRevision !== 0 || sortTarget === Target.CREATE;
  return (isCreatedAsked || sortTarget === Target.VERSION) && !isLatest(index, at);
}

function isWithinModBounds(request: RangeRequest, index: KeyIndex, at: number): boolean {
  if (request.maxModRevision === 0 && request.minModRevision === 0) return true;
  const mod = index.mainAt(index.find(at));
  return (request.maxModRevision === 0 || mod <= request.maxModRevision) && (request.minModRevision === 0 || mod >= request.minModRevision);
}

function isWithinBounds(request: RangeRequest, index: KeyIndex, at: number, record: Uint8Array | undefined): boolean {
  if (!isWithinModBounds(request, index, at)) return false;
  if (request.maxCreateRevision === 0 && request.minCreateRevision === 0) return true;
  const created = record === undefined ? index.created : KeyValue.decode(record).createRevision;
  if (request.maxCreateRevision !== 0 && created > request.maxCreateRevision) return false;
  return request.minCreateRevision === 0 || created >= request.minCreateRevision;
}

function sortValue({ sortTarget }: RangeRequest, index: KeyIndex, at: number, record: Uint8Array | undefined): number | Uint8Array {
  switch (sortTarget) {
    case Target.VALUE:
      return KeyValue.decode(record!).value;
    case Target.VERSION:
      return record === undefined ? index.version : KeyValue.decode(record).version;
    case Target.CREATE:
      return record === undefined ? index.created : KeyValue.decode(record).createRevision;
    case Target.MOD:
      return index.mainAt(index.find(at));
    default:
      return 0;
  }
}

/** The records of the rows, as the request wants them. */
function* answer(view: ReadView, request: RangeRequest, at: number, rows: readonly Row[]): Steps<Uint8Array[]> {
  const kvs = new Array<Uint8Array>(rows.length);
  for (let start = 0; start < rows.length; start += STEP_KEYS) {
    if (start > 0) yield;
    const end = Math.min(start + STEP_KEYS, rows.length);
    const places: number[] = [];
    const missing: KeyIndex[] = [];
    for (let i = start; i < end; i++) {
      const { key, index, record } = rows[i];
      if (record !== undefined) kvs[i] = request.keysOnly ? withoutValue(record) : record;
      // The index has all but the value, unless a later change came or a lease hangs on the key.
      else if (request.keysOnly && isLatest(index, at) && !index.leased) kvs[i] = keyOf(key, index);
      else {
        places.push(i);
        missing.push(index);
      }
    }
    yield* view.load(missing, at, (record, i) => {
      kvs[places[i]] = request.keysOnly ? withoutValue(record) : record;
      return true;
    });
  }
  return kvs;
}

function withoutValue(record: Uint8Array): Uint8Array {
  const kv = KeyValue.decode(record);
  kv.value = EMPTY;
  return KeyValue.encode(kv);
}

function keyOf(key: string, index: KeyIndex): Uint8Array {
  return KeyValue.encode({ key: fromLatin1(key), createRevision: index.created, modRevision: index.main, version: index.version });
}

/**
 * Range: reading keys, with every option of the request.
 *
 * The rules are etcd's, even surprising ones: `count` is the number of keys in the range, whatever
 * the limit and the filters; the bounds on revisions apply before the limit; a sort by another
 * field than the key without an order means ascending, but then only the first limit + 1 keys in
 * key order are sorted. Equal sort values keep key order.
 *
 * Records are read only if needed: not for counting, not with keys_only for keys at their latest
 * change, and not for keys beyond the limit, unless they are sorted by value or filtered by a
 * created revision that only the record has.
 *
 * A range of more than one key runs in steps (steps.ts), and other requests may change the store in
 * between. It reads one revision throughout.
 */
import {
  compare,
  defined,
  EMPTY,
  type ErrorName,
  fromLatin1,
  KeyValue,
  RangeRequest_SortOrder as Order,
  type RangeRequest,
  type RangeResponse,
  RangeRequest_SortTarget as Target,
} from "@quorate/proto";
import { headerAt } from "../backend/revision.ts";
import { runSteps, STEP_KEYS, type Steps } from "../backend/steps.ts";
import {
  isLatest,
  type KeyIndex,
  type KeyRange,
  keyRange,
  type Mvcc,
  type ReadView,
  type VisitKey,
} from "../mvcc/index.ts";
import { LastRows, type RowBuffer, SortedRows } from "./rows.ts";

const SORT_ORDERS: ReadonlySet<number> = new Set(Object.values(Order));
const SORT_TARGETS: ReadonlySet<number> = new Set(Object.values(Target));

/** The error of a range that no state makes valid; undefined for a valid one. */
export function checkRange(request: RangeRequest): ErrorName | undefined {
  if (request.key.length === 0) return "EmptyKey";
  if (!SORT_ORDERS.has(request.sortOrder) || !SORT_TARGETS.has(request.sortTarget))
    return "InvalidSortOption";
  return undefined;
}

/** Reads the applied state, without a pause. @throws EtcdError FutureRev, Compacted */
export function applyRange(mvcc: Mvcc, request: RangeRequest): RangeResponse {
  return rangeNow(mvcc.view, request);
}

/** Reads through a view without a pause. @throws EtcdError FutureRev, Compacted */
export function rangeNow(view: ReadView, request: RangeRequest): RangeResponse {
  return isPlainGet(request) ? get(view, request) : runSteps(range(view, request));
}

/** True for a request that reads one key without options, which takes the shortest path. */
export function isPlainGet(request: RangeRequest): boolean {
  return (
    request.rangeEnd.length === 0 &&
    !request.countOnly &&
    !request.keysOnly &&
    !hasRevisionBounds(request)
  );
}

/** Maximum bytes of a small range's records; one record always fits. */
const SMALL_RANGE_BYTES: number = 64 << 10;

/**
 * Reads a range of few keys without options, without steps. Undefined for any other; nothing was
 * counted then. @param mostKeys maximum number of keys that it visits @throws EtcdError FutureRev,
 * Compacted
 */
export function rangeIfSmall(
  view: ReadView,
  request: RangeRequest,
  mostKeys: number,
): RangeResponse | undefined {
  const { sortTarget, keysOnly, limit } = request;
  if (
    keysOnly ||
    sortTarget !== Target.KEY ||
    request.sortOrder === Order.DESCEND ||
    hasRevisionBounds(request)
  )
    return undefined;
  const at = view.resolve(request.revision);
  const indexes = view.few(
    keyRange(request.key, request.rangeEnd),
    at,
    mostKeys,
    SMALL_RANGE_BYTES,
  );
  if (indexes === undefined) return undefined;
  view.counts.ranges++;
  const answered = limit > 0 && limit < indexes.length ? limit : indexes.length;
  const kvs: Uint8Array[] = [];
  if (!request.countOnly)
    for (let i = 0; i < answered; i++) kvs.push(view.recordAt(indexes[i], at));
  const more = !request.countOnly && answered < indexes.length;
  return { header: headerAt(view.revision), kvs, more, count: indexes.length };
}

/**
 * The record of one key; undefined if there was none at the revision, of which 0 is the newest.
 * @throws EtcdError FutureRev, Compacted
 */
export function readKey(view: ReadView, key: string, revision: number): Uint8Array | undefined {
  view.counts.ranges++;
  const found = view.get(key, view.resolve(revision));
  return found === undefined ? undefined : view.record(found);
}

function get(view: ReadView, request: RangeRequest): RangeResponse {
  const record = readKey(view, keyRange(request.key, request.rangeEnd).key, request.revision);
  const kvs = record === undefined ? [] : [record];
  return { header: headerAt(view.revision), kvs, more: false, count: kvs.length };
}

/** Receives the records of a response in order. */
export interface RecordSink {
  push(record: Uint8Array): void;
}

/** A range's response without its records. */
export interface RangeSummary {
  /** The store's revision. */
  readonly revision: number;
  readonly more: boolean;
  readonly count: number;
}

/**
 * Reads through a view, in steps; in a transaction the view includes its changes. The first step
 * fixes the revision, which must stay readable until the last. @throws EtcdError FutureRev,
 * Compacted
 */
export function* range(view: ReadView, request: RangeRequest): Steps<RangeResponse> {
  if (isPlainGet(request)) return get(view, request);
  const kvs: Uint8Array[] = [];
  const { revision, more, count } = yield* rangeInto(view, request, kvs);
  return { header: headerAt(revision), kvs, more, count };
}

/** Like `range`, but passes the records to `into` as they are found. */
export function* rangeInto(
  view: ReadView,
  request: RangeRequest,
  into: RecordSink,
): Steps<RangeSummary> {
  view.counts.ranges++;
  const at = view.resolve(request.revision);
  const keys = keyRange(request.key, request.rangeEnd);
  const { revision } = view;
  if (request.countOnly) return { revision, more: false, count: yield* view.count(keys, at) };
  if (request.sortTarget === Target.KEY && request.sortOrder !== Order.DESCEND) {
    return { revision, ...(yield* inKeyOrder(view, request, keys, at, into)) };
  }
  const { limit } = request;
  const rows = collectorFor(view, request);
  try {
    const count = yield* collect(view, request, keys, at, rows);
    const lastCut = rows.cut();
    if (lastCut !== undefined) yield* lastCut;
    yield* answer(view, request, at, rows.result(), into);
    return { revision, more: limit > 0 && rows.total > limit, count };
  } finally {
    rows.drop();
  }
}

/**
 * The response in the order of the index: nothing is collected, and after the limit keys are only
 * counted.
 */
function* inKeyOrder(
  view: ReadView,
  request: RangeRequest,
  keys: KeyRange,
  at: number,
  into: RecordSink,
): Steps<Pick<RangeSummary, "more" | "count">> {
  const { keysOnly } = request;
  const most = request.limit > 0 ? request.limit : Number.POSITIVE_INFINITY;
  const isFiltered = hasRevisionBounds(request);
  const isCreatedAsked = request.minCreateRevision !== 0 || request.maxCreateRevision !== 0;
  let asked = 0;
  let given = 0;
  let count = 0;
  let last: string | undefined;
  const needs = (index: KeyIndex): boolean => {
    if (isFiltered && !isWithinModBounds(request, index, at)) return false;
    // Beyond the limit, a record decides at most whether there is more: the index has the created
    // revision of the latest change alone.
    if (isCreatedAsked && given >= most) return !isLatest(index, at);
    // Without a filter by created revision, every visited key is returned.
    if (!isCreatedAsked && asked++ >= most) return false;
    return !keysOnly || !isKnown(index, at);
  };
  const visit: VisitKey = (key, index, record) => {
    count++;
    if (isFiltered && !isWithinBounds(request, index, at, record)) return true;
    if (given === most) {
      last = key;
      return false;
    }
    given++;
    if (record === undefined) into.push(keyOf(key, index));
    else into.push(keysOnly ? withoutValue(record) : record);
    return true;
  };
  yield* view.each(keys, at, visit, needs);
  if (last === undefined || keys.single) return { more: false, count };
  return { more: true, count: count + (yield* view.count({ ...keys, key: `${last}\0` }, at)) };
}

/** Estimated memory of a row besides a record. */
const ROW_BYTES = 96;

/** A key that may be part of the response. */
interface Row {
  readonly key: string;
  readonly index: KeyIndex;
  /** The sort value, if that is not the key. */
  readonly by: number | Uint8Array;
  /** The key's record, if the sort or a filter needed it. */
  readonly record: Uint8Array | undefined;
}

/**
 * True if the index has everything but the value: the change is the latest, and the key has no
 * lease.
 */
export function isKnown(index: KeyIndex, at: number): boolean {
  return isLatest(index, at) && !index.leased;
}

function hasRevisionBounds(request: RangeRequest): boolean {
  return (
    request.minModRevision !== 0 ||
    request.maxModRevision !== 0 ||
    request.minCreateRevision !== 0 ||
    request.maxCreateRevision !== 0
  );
}

/** Collects the rows of a response that is not in key order. */
function collectorFor(view: ReadView, request: RangeRequest): RowBuffer<Row> {
  const { limit, sortTarget } = request;
  const charge = (bytes: number): void => view.charge(bytes);
  const sign = request.sortOrder === Order.DESCEND ? -1 : 1;
  if (sortTarget === Target.KEY) return new LastRows(limit, charge);
  if (sortTarget === Target.VALUE)
    return new SortedRows(
      limit,
      charge,
      (a, b) => sign * compare(a.by as Uint8Array, b.by as Uint8Array),
    );
  return new SortedRows(limit, charge, (a, b) => sign * ((a.by as number) - (b.by as number)));
}

/**
 * Adds the keys of the range that pass the request's filters to `rows`; returns the number of keys
 * in the range without the filters.
 */
function* collect(
  view: ReadView,
  request: RangeRequest,
  keys: KeyRange,
  at: number,
  rows: RowBuffer<Row>,
): Steps<number> {
  // A sort without an order sees one key more than the limit (see above).
  const isCut =
    request.limit > 0 && request.sortOrder === Order.NONE && !hasRevisionBounds(request);
  const most = isCut ? request.limit + 1 : Number.POSITIVE_INFINITY;
  let needed = 0;
  let count = 0;
  const needs = (index: KeyIndex): boolean => needed++ < most && needsRecord(request, index, at);
  const visit: VisitKey = (key, index, record) => {
    if (count++ >= most || !isWithinBounds(request, index, at, record)) return true;
    rows.add(
      { key, index, by: sortValue(request, index, at, record), record },
      ROW_BYTES + (record?.length ?? 0),
    );
    return true;
  };
  yield* view.each(keys, at, visit, needs, () => (rows.isFull ? rows.cut() : undefined));
  return count;
}

/** True if the key's record is needed to decide whether, and where, it is part of the response. */
function needsRecord(request: RangeRequest, index: KeyIndex, at: number): boolean {
  const { sortTarget } = request;
  if (!isWithinModBounds(request, index, at)) return false;
  if (sortTarget === Target.VALUE) return true;
  const isCreatedAsked =
    request.minCreateRevision !== 0 ||
    request.maxCreateRevision !== 0 ||
    sortTarget === Target.CREATE;
  return (isCreatedAsked || sortTarget === Target.VERSION) && !isLatest(index, at);
}

function isWithinModBounds(request: RangeRequest, index: KeyIndex, at: number): boolean {
  if (request.maxModRevision === 0 && request.minModRevision === 0) return true;
  const mod = index.mainAt(index.find(at));
  return (
    (request.maxModRevision === 0 || mod <= request.maxModRevision) &&
    (request.minModRevision === 0 || mod >= request.minModRevision)
  );
}

function isWithinBounds(
  request: RangeRequest,
  index: KeyIndex,
  at: number,
  record: Uint8Array | undefined,
): boolean {
  if (!isWithinModBounds(request, index, at)) return false;
  if (request.maxCreateRevision === 0 && request.minCreateRevision === 0) return true;
  const created = record === undefined ? index.created : KeyValue.decode(record).createRevision;
  if (request.maxCreateRevision !== 0 && created > request.maxCreateRevision) return false;
  return request.minCreateRevision === 0 || created >= request.minCreateRevision;
}

function sortValue(
  { sortTarget }: RangeRequest,
  index: KeyIndex,
  at: number,
  record: Uint8Array | undefined,
): number | Uint8Array {
  switch (sortTarget) {
    case Target.VALUE:
      return KeyValue.decode(defined(record, "the record")).value;
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

/** Passes the records of the rows to `into`, in the form of the request. */
function* answer(
  view: ReadView,
  request: RangeRequest,
  at: number,
  rows: readonly Row[],
  into: RecordSink,
): Steps<void> {
  const { keysOnly } = request;
  const isAtHand = ({ index, record }: Row): boolean =>
    record !== undefined || (keysOnly && isKnown(index, at));
  const give = ({ key, index, record }: Row): void => {
    if (record === undefined) into.push(keyOf(key, index));
    else into.push(keysOnly ? withoutValue(record) : record);
  };
  for (let next = 0; next < rows.length; ) {
    if (next > 0) yield;
    // Alternates between a run of rows with records in memory, and a run of rows without.
    let end = Math.min(next + STEP_KEYS, rows.length);
    while (next < end && isAtHand(rows[next])) give(rows[next++]);
    const start = next;
    const missing: KeyIndex[] = [];
    let missingBytes = 0;
    for (
      end = Math.min(start + STEP_KEYS, rows.length);
      next < end && missingBytes < view.batchBytes && !isAtHand(rows[next]);
      next++
    ) {
      const { index } = rows[next];
      missing.push(index);
      missingBytes += index.sizeAt(index.find(at));
    }
    yield* view.load(missing, at, (record) => {
      into.push(keysOnly ? withoutValue(record) : record);
      return true;
    });
  }
}

/** A record as keys_only has it. */
export function withoutValue(record: Uint8Array): Uint8Array {
  const kv = KeyValue.decode(record);
  kv.value = EMPTY;
  return KeyValue.encode(kv);
}

/** The record of a key that is known from the index, without its value. */
export function keyOf(key: string, index: KeyIndex): Uint8Array {
  return KeyValue.encode({
    key: fromLatin1(key),
    createRevision: index.created,
    modRevision: index.main,
    version: index.version,
  });
}

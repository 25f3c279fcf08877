/**
 * Range: reading keys, with every option of the request.
 *
 * The rules are etcd's, also where they surprise: `count` is what is in the range whatever the limit and the filters; the bounds on
 * revisions come before the limit; a sort by something else than the key, given without an order, means ascending, but then only the
 * first limit + 1 keys in key order are sorted. Equal sort values keep key order.
 *
 * Records are read only where they are needed: not for counting, not for keys whose latest change is asked for with keys_only, and not
 * for what the limit cuts off, unless it is sorted by value or filtered by a created revision that only the record has.
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
import type { Found, Mvcc, ReadView } from "../mvcc/index.ts";
import { keyRange } from "../mvcc/index.ts";
import { headerAt } from "./header.ts";

/** Reads what is applied. @throws EtcdError FutureRev, Compacted */
export function applyRange(mvcc: Mvcc, request: RangeRequest): RangeResponse {
  return range(mvcc.view, request);
}

/** Reads through a view; in a transaction that is one which sees its changes. @throws EtcdError FutureRev, Compacted */
export function range(view: ReadView, request: RangeRequest): RangeResponse {
  view.counts.ranges++;
  const at = view.resolve(request.revision);
  const keys = keyRange(request.key, request.rangeEnd);
  const header = headerAt(view.revision);
  if (request.countOnly) return { header, kvs: [], more: false, count: view.count(keys, at) };
  const { limit } = request;
  const inKeyOrder = request.sortOrder === Order.NONE || (request.sortTarget === Target.KEY && request.sortOrder === Order.ASCEND);
  const filtered = hasRevisionBounds(request);
  if (inKeyOrder && request.sortTarget === Target.KEY && !filtered && !request.keysOnly) {
    const { records, total } = view.records(keys, at, limit);
    return { header, kvs: records, more: limit > 0 && total > limit, count: total };
  }
  // One more than the limit tells whether there is more.
  const hits = view.find(keys, at, limit > 0 && inKeyOrder && !filtered ? limit + 1 : 0);
  const rows = filtered ? hits.found.filter((found) => isWithinBounds(view, request, found)) : hits.found;
  const order = request.sortOrder === Order.NONE && request.sortTarget !== Target.KEY ? Order.ASCEND : request.sortOrder;
  const sorted = order === Order.NONE ? rows : sort(view, rows, request.sortTarget, order);
  const more = limit > 0 && sorted.length > limit;
  const answered = more ? sorted.slice(0, limit) : sorted;
  const kvs = answered.map(request.keysOnly ? (found) => withoutValue(view, found) : (found) => view.record(found));
  return { header, kvs, more, count: hits.total };
}

function hasRevisionBounds(request: RangeRequest): boolean {
  return request.minModRevision !== 0 || request.maxModRevision !== 0 || request.minCreateRevision !== 0 || request.maxCreateRevision !== 0;
}

function isWithinBounds(view: ReadView, request: RangeRequest, found: Found): boolean {
  const mod = modRevision(found);
  if (request.maxModRevision !== 0 && mod > request.maxModRevision) return false;
  if (request.minModRevision !== 0 && mod < request.minModRevision) return false;
  if (request.maxCreateRevision === 0 && request.minCreateRevision === 0) return true;
  const created = createRevision(view, found);
  if (request.maxCreateRevision !== 0 && created > request.maxCreateRevision) return false;
  return request.minCreateRevision === 0 || created >= request.minCreateRevision;
}

function sort(view: ReadView, rows: Found[], target: Target, order: Order): Found[] {
  // The rows come in key order, and no two have one key.
  if (target === Target.KEY) return order === Order.DESCEND ? rows.reverse() : rows;
  if (target === Target.VALUE) {
    return sortBy(
      rows.map((found) => KeyValue.decode(view.record(found)).value),
      rows,
      compare,
      order,
    );
  }
  const numberOf = target === Target.VERSION ? version : target === Target.CREATE ? createRevision : modOf;
  return sortBy(
    rows.map((found) => numberOf(view, found)),
    rows,
    (a, b) => a - b,
    order,
  );
}

function sortBy<T>(by: readonly T[], rows: readonly Found[], compareBy: (a: T, b: T) => number, order: Order): Found[] {
  const sign = order === Order.DESCEND ? -1 : 1;
  const places = rows.map((_, i) => i);
  places.sort((a, b) => sign * compareBy(by[a], by[b]));
  return places.map((i) => rows[i]);
}

function modRevision({ index, place }: Found): number {
  return index.mainAt(place);
}

function modOf(_view: ReadView, found: Found): number {
  return modRevision(found);
}

function createRevision(view: ReadView, found: Found): number {
  return view.isLatest(found) ? found.index.created : KeyValue.decode(view.record(found)).createRevision;
}

function version(view: ReadView, found: Found): number {
  return view.isLatest(found) ? found.index.version : KeyValue.decode(view.record(found)).version;
}

/** The record without its value. The index has all of it, unless a later change came or a lease hangs on the key. */
function withoutValue(view: ReadView, found: Found): Uint8Array {
  const { key, index } = found;
  if (!view.isLatest(found) || index.leased) {
    const kv = KeyValue.decode(view.record(found));
    kv.value = EMPTY;
    return KeyValue.encode(kv);
  }
  return KeyValue.encode({ key: fromLatin1(key), createRevision: index.created, modRevision: index.main, version: index.version });
}

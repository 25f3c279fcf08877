/** The comparisons of a transaction. */
import {
  type Compare,
  compare,
  defined,
  EMPTY,
  KeyValue,
  Compare_CompareResult as Result,
  Compare_CompareTarget as Target,
  toLatin1,
} from "@quorate/proto";
import { runSteps, type Steps } from "../backend/steps.ts";
import { isLatest, type KeyIndex, keyRange, type ReadView, type VisitKey } from "../mvcc/index.ts";

/** True if every comparison holds on the newest state; without a pause. */
export function compareAllNow(view: ReadView, compares: readonly Compare[]): boolean {
  const at = view.revision;
  return compares.every((one) =>
    one.rangeEnd.length === 0 ? holdsForKey(view, one, at) : runSteps(holdsForRange(view, one, at)),
  );
}

/**
 * True if every comparison holds as of revision `at`, in steps. @param at the newest revision at
 * the start; writes during a pause do not count
 */
export function* compareAll(
  view: ReadView,
  compares: readonly Compare[],
  at: number = view.revision,
): Steps<boolean> {
  for (const one of compares) {
    if (
      !(one.rangeEnd.length === 0
        ? holdsForKey(view, one, at)
        : yield* holdsForRange(view, one, at))
    )
      return false;
  }
  return true;
}

function holdsForKey(view: ReadView, one: Compare, at: number): boolean {
  const found = view.get(toLatin1(one.key), at);
  if (found === undefined) return holdsForNone(one);
  const record = needsRecord(one, found.index, at) ? view.record(found) : undefined;
  return isResult(one.result, compareFound(one, found.index, at, record));
}

/**
 * True if the comparison holds for every key of its range. Stops at the first key for which it does
 * not.
 */
function* holdsForRange(view: ReadView, one: Compare, at: number): Steps<boolean> {
  let any = false;
  let all = true;
  const visit: VisitKey = (_key, index, record) => {
    any = true;
    all = isResult(one.result, compareFound(one, index, at, record));
    return all;
  };
  yield* view.each(keyRange(one.key, one.rangeEnd), at, visit, (index) =>
    needsRecord(one, index, at),
  );
  return any ? all : holdsForNone(one);
}

/**
 * The result for a key that does not exist: a comparison of the value fails, and the others compare
 * with zero. "Created at 0" therefore requires that the key does not exist.
 */
function holdsForNone(one: Compare): boolean {
  return one.target !== Target.VALUE && isResult(one.result, compareMissing(one));
}

/** True if the compared field of the key is not in the index. */
function needsRecord(one: Compare, index: KeyIndex, at: number): boolean {
  switch (one.target) {
    case Target.VALUE:
      return true;
    case Target.VERSION:
    case Target.CREATE:
      return !isLatest(index, at);
    case Target.LEASE:
      return !isLatest(index, at) || index.leased;
    default:
      return false;
  }
}

/**
 * Compares the key's field with the request's value: negative, 0 or positive. @param record set if
 * needsRecord requires it
 */
function compareFound(
  one: Compare,
  index: KeyIndex,
  at: number,
  record: Uint8Array | undefined,
): number {
  const kv = record === undefined ? undefined : KeyValue.decode(record);
  switch (one.target) {
    case Target.VALUE:
      return compare(
        defined(kv, "the record").value,
        one.targetUnion?.case === "value" ? one.targetUnion.value : EMPTY,
      );
    case Target.VERSION:
      return (kv ?? index).version - wantedNumber(one, "version");
    case Target.CREATE:
      return (
        (kv === undefined ? index.created : kv.createRevision) - wantedNumber(one, "createRevision")
      );
    case Target.MOD:
      return index.mainAt(index.find(at)) - wantedNumber(one, "modRevision");
    case Target.LEASE:
      return compareBig(kv?.lease ?? 0n, wantedLease(one));
    default:
      return 0;
  }
}

function compareMissing(one: Compare): number {
  switch (one.target) {
    case Target.VERSION:
      return -wantedNumber(one, "version");
    case Target.CREATE:
      return -wantedNumber(one, "createRevision");
    case Target.MOD:
      return -wantedNumber(one, "modRevision");
    case Target.LEASE:
      return compareBig(0n, wantedLease(one));
    default:
      return 0;
  }
}

/** The request's number; 0 if it has none, or one for another target. */
function wantedNumber(
  { targetUnion }: Compare,
  kind: "version" | "createRevision" | "modRevision",
): number {
  return targetUnion?.case === kind ? targetUnion.value : 0;
}

function wantedLease({ targetUnion }: Compare): bigint {
  return targetUnion?.case === "lease" ? targetUnion.value : 0n;
}

function compareBig(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** An unknown comparison always holds, as in etcd. */
function isResult(result: Result, compared: number): boolean {
  switch (result) {
    case Result.EQUAL:
      return compared === 0;
    case Result.NOT_EQUAL:
      return compared !== 0;
    case Result.GREATER:
      return compared > 0;
    case Result.LESS:
      return compared < 0;
    default:
      return true;
  }
}

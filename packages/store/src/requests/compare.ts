/** The comparisons of a transaction. */
import { type Compare, compare, EMPTY, KeyValue, Compare_CompareResult as Result, Compare_CompareTarget as Target } from "@quorate/proto";
import type { Found, ReadView } from "../mvcc/index.ts";
import { keyRange } from "../mvcc/index.ts";

/** True if every comparison holds on the newest state. */
export function compareAll(view: ReadView, compares: readonly Compare[]): boolean {
  return compares.every((one) => holds(view, one));
}

/**
 * True if the comparison holds for every key of its range. Where there is no key, one on the value fails, and the others see zero:
 * "created at 0" is how a client says that a key must not exist.
 */
function holds(view: ReadView, one: Compare): boolean {
  const { found } = view.find(keyRange(one.key, one.rangeEnd));
  if (found.length === 0) return one.target !== Target.VALUE && isResult(one.result, compareMissing(one));
  return found.every((key) => isResult(one.result, compareFound(view, one, key)));
}

/** A key's side against the request's: negative, 0 or positive. */
function compareFound(view: ReadView, one: Compare, found: Found): number {
  const { index } = found;
  switch (one.target) {
    case Target.VALUE:
      return compare(KeyValue.decode(view.record(found)).value, one.targetUnion?.case === "value" ? one.targetUnion.value : EMPTY);
    case Target.VERSION:
      return index.version - wantedNumber(one, "version");
    case Target.CREATE:
      return index.created - wantedNumber(one, "createRevision");
    case Target.MOD:
      return index.main - wantedNumber(one, "modRevision");
    case Target.LEASE:
      return compareBig(index.leased ? KeyValue.decode(view.record(found)).lease : 0n, wantedLease(one));
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

/** The request's number; 0 if it gives none, or one of another kind than its target. */
function wantedNumber({ targetUnion }: Compare, kind: "version" | "createRevision" | "modRevision"): number {
  return targetUnion?.case === kind ? targetUnion.value : 0;
}

function wantedLease({ targetUnion }: Compare): bigint {
  return targetUnion?.case === "lease" ? targetUnion.value : 0n;
}

function compareBig(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** An unknown kind of result holds always, as in etcd. */
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

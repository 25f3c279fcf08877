/**
 * The keys that a set of roles permits, merged: disjoint intervals in order, found by binary
 * search.
 *
 *     read  [a, c)  [c, f)  point x       ->  [a, f)  [x, x\0)
 *     covers("b", "e")  yes: a range may need several permissions together
 *     covers("e", "g")  no: f is not covered
 *
 * etcd: server/auth/range_perm_cache.go. An interval's end is a key, or OPEN for no end.
 */
import { type authpb, toLatin1 } from "@quorate/proto";

/** The end of an interval without one: every key is below it. */
const OPEN: unique symbol = Symbol("open");
type End = string | typeof OPEN;

interface Interval {
  readonly begin: string;
  readonly end: End;
}

/** What may be done with a key. */
export type KeyAccess = "read" | "write";

/** authpb.Permission.Type, by number. */
const READ = 0;
const WRITE = 1;
const READ_WRITE = 2;

function isOpenEnd(rangeEnd: Uint8Array): boolean {
  return rangeEnd.length === 1 && rangeEnd[0] === 0;
}

function reaches(end: End, other: End): boolean {
  if (end === OPEN) return true;
  return other !== OPEN && end >= other;
}

/** The interval of a permission or a request; undefined for a key that is no key. */
function intervalOf(key: Uint8Array, rangeEnd: Uint8Array): Interval | undefined {
  if (key.length === 0) return undefined;
  const begin = toLatin1(key);
  if (rangeEnd.length === 0) return { begin, end: `${begin}\0` };
  return { begin, end: isOpenEnd(rangeEnd) ? OPEN : toLatin1(rangeEnd) };
}

/** Those of permissions that were merged before: a change of a role makes few new ones. */
const KNOWN = new WeakMap<authpb.Permission, Interval>();

/** Does a part of the merge ahead of it, when a role is read or changed. */
export function prepareMerge(permissions: readonly authpb.Permission[]): void {
  for (const permission of permissions) intervalOfPermission(permission);
}

function intervalOfPermission(permission: authpb.Permission): Interval | undefined {
  const known = KNOWN.get(permission);
  if (known !== undefined) return known;
  const interval = intervalOf(permission.key, permission.rangeEnd);
  if (interval !== undefined) KNOWN.set(permission, interval);
  return interval;
}

/** Disjoint intervals in order; two that touch are one. */
class Intervals {
  readonly #begins: string[] = [];
  readonly #ends: End[] = [];

  constructor(intervals: Interval[]) {
    // Each role's are in order: what is sorted is a few runs.
    intervals.sort((a, b) => (a.begin < b.begin ? -1 : a.begin > b.begin ? 1 : 0));
    for (const { begin, end } of intervals) {
      // An empty interval permits nothing (etcd refuses to grant one).
      if (end !== OPEN && end <= begin) continue;
      const last = this.#ends.length - 1;
      if (last >= 0 && reaches(this.#ends[last], begin)) {
        if (!reaches(this.#ends[last], end)) this.#ends[last] = end;
        continue;
      }
      this.#begins.push(begin);
      this.#ends.push(end);
    }
  }

  get size(): number {
    return this.#begins.length;
  }

  covers({ begin, end }: Interval): boolean {
    const begins = this.#begins;
    let low = 0;
    let high = begins.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (begins[middle] <= begin) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return false;
    const reached = this.#ends[low - 1];
    return (reached === OPEN || reached > begin) && reaches(reached, end);
  }
}

/** What a set of roles permits. It does not change; a change of a role makes another one. */
export class PermissionSet {
  readonly #read: Intervals;
  readonly #write: Intervals;

  /** @param permissions of all roles, in any order; a type that is not known permits nothing */
  constructor(permissions: Iterable<authpb.Permission>) {
    const read: Interval[] = [];
    const write: Interval[] = [];
    for (const permission of permissions) {
      const { permType } = permission;
      const interval = intervalOfPermission(permission);
      if (interval === undefined) continue;
      if (permType === READ || permType === READ_WRITE) read.push(interval);
      if (permType === WRITE || permType === READ_WRITE) write.push(interval);
    }
    this.#read = new Intervals(read);
    this.#write = new Intervals(write);
  }

  /** Intervals, for the bound of what is kept. */
  get size(): number {
    return this.#read.size + this.#write.size;
  }

  /**
   * True if every key of a range is permitted; takes O(log n) of the intervals.
   * @param rangeEnd as in requests: empty for the key alone, one zero byte for no end
   */
  covers(access: KeyAccess, key: Uint8Array, rangeEnd: Uint8Array): boolean {
    const interval = intervalOf(key, rangeEnd);
    if (interval === undefined) return false;
    return (access === "read" ? this.#read : this.#write).covers(interval);
  }

  /** True if one key, as latin1, is permitted. */
  coversKey(access: KeyAccess, key: string): boolean {
    const intervals = access === "read" ? this.#read : this.#write;
    return intervals.covers({ begin: key, end: `${key}\0` });
  }
}

/**
 * True for a range that a permission can be granted for: a key, and an end that is after it, empty
 * or open (etcd: isValidPermissionRange).
 */
export function isGrantable(key: Uint8Array, rangeEnd: Uint8Array): boolean {
  if (key.length === 0) return false;
  if (rangeEnd.length === 0 || isOpenEnd(rangeEnd)) return true;
  return toLatin1(key) < toLatin1(rangeEnd);
}

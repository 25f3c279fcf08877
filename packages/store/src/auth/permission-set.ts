/**
 * The keys that a set of roles permits, merged: disjoint intervals in order, found by binary
 * search.
 *
 *     read  [a, c)  [c, f)  point x       ->  [a, f)  [x, x\0)
 *     covers("b", "e")  yes: a range may need several permissions together
 *     covers("e", "g")  no: f is not covered
 *
 * etcd: server/auth/range_perm_cache.go.
 */
import { type authpb, toLatin1 } from "@quorate/proto";
import {
  type Coverage,
  type Interval,
  Intervals,
  intervalOf,
  MergingIntervals,
} from "../mvcc/intervals.ts";
import { keyRange } from "../mvcc/read-view.ts";

/** What may be done with a key. */
export type KeyAccess = "read" | "write";

/** authpb.Permission.Type, by number. */
const READ = 0;
const WRITE = 1;
const READ_WRITE = 2;

function isOpenEnd(rangeEnd: Uint8Array): boolean {
  return rangeEnd.length === 1 && rangeEnd[0] === 0;
}

/** The interval of a permission or a request; undefined for a key that is no key. */
function intervalOfKeys(key: Uint8Array, rangeEnd: Uint8Array): Interval | undefined {
  return key.length === 0 ? undefined : intervalOf(keyRange(key, rangeEnd));
}

/** Those of permissions that are known: a change of a role makes few new ones. */
const KNOWN = new WeakMap<authpb.Permission, Interval>();

function intervalOfPermission(permission: authpb.Permission): Interval | undefined {
  const known = KNOWN.get(permission);
  if (known !== undefined) return known;
  const interval = intervalOfKeys(permission.key, permission.rangeEnd);
  if (interval !== undefined) KNOWN.set(permission, interval);
  return interval;
}

/** What roles permit. It does not change; a change of a role makes another one. */
export class PermissionSet {
  readonly #read: Coverage;
  readonly #write: Coverage;

  private constructor(read: Coverage, write: Coverage) {
    this.#read = read;
    this.#write = write;
  }

  /** @param permissions of one role; a type that is not known permits nothing */
  static of(permissions: readonly authpb.Permission[]): PermissionSet {
    const read: Interval[] = [];
    const write: Interval[] = [];
    for (const permission of permissions) {
      const { permType } = permission;
      const interval = intervalOfPermission(permission);
      if (interval === undefined) continue;
      if (permType === READ || permType === READ_WRITE) read.push(interval);
      if (permType === WRITE || permType === READ_WRITE) write.push(interval);
    }
    return new PermissionSet(Intervals.of(read), Intervals.of(write));
  }

  /** What several roles permit together; it is merged by and by. @param roles each made by `of` */
  static together(roles: readonly PermissionSet[]): PermissionSet {
    const [first, ...others] = roles;
    if (first !== undefined && others.length === 0) return first;
    const lists = (coverages: readonly Coverage[]) =>
      new MergingIntervals(coverages.filter((one) => one instanceof Intervals));
    return new PermissionSet(
      lists(roles.map((role) => role.#read)),
      lists(roles.map((role) => role.#write)),
    );
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
    const interval = intervalOfKeys(key, rangeEnd);
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

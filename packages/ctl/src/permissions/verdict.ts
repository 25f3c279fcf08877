/**
 * Whether permissions cover an operation, and which ones do: the verdict that etcd reaches
 * (server/auth/range_perm_cache.go), with its reasons. Permissions of one user merge: a range is
 * allowed when those of all roles together leave no key of it out.
 *
 *     read [a, z)    reader: [a, m)   writer: [k, z)      yes, by both
 *     read [a, z)    reader: [a, m)   writer: [n, z)      no: [m, n) is left out
 *
 * Keys are latin1 strings, a char a byte, so string order is byte order.
 */
import { authpb, toLatin1 } from "@quorate/proto";

const { Permission_Type } = authpb;

/** Keys from `key` to before `end`; `end` undefined for all keys from `key` on. */
export interface KeyRange {
  readonly key: string;
  readonly end: string | undefined;
}

/** What an operation does with keys. */
export interface Need extends KeyRange {
  readonly access: "READ" | "WRITE";
}

/** A role with its permissions. */
export interface RoleGrants {
  readonly role: string;
  readonly permissions: readonly authpb.Permission[];
}

/** A permission that the verdict rests on. */
export interface Grant extends KeyRange {
  readonly role: string;
  readonly type: "READ" | "WRITE" | "READWRITE";
}

/** Whether one need is met. */
export interface Verdict {
  readonly need: Need;
  readonly allowed: boolean;
  /** The permissions that cover it, in the order of keys; where it is denied, those that help. */
  readonly by: readonly Grant[];
  /** What no permission covers; empty where it is allowed. */
  readonly missing: readonly KeyRange[];
  /** Permissions for these keys that allow the other access alone. */
  readonly others: readonly Grant[];
}

/** The range of a key and a range end as a request has them: no end is one key, a zero is open. */
export function keyRange(key: Uint8Array, rangeEnd: Uint8Array): KeyRange {
  const start = toLatin1(key);
  if (rangeEnd.length === 0) return { key: start, end: `${start}\0` };
  const end = toLatin1(rangeEnd);
  return { key: start, end: end === "\0" ? undefined : end };
}

/** Holds `need` against the permissions of a user's roles. */
export function judgeNeed(need: Need, roles: readonly RoleGrants[]): Verdict {
  const near = grantsOf(roles).filter((grant) => meets(grant, need));
  const isOfUse = ({ type }: Grant): boolean => type === "READWRITE" || type === need.access;
  const useful = near.filter(isOfUse).sort(byKey);
  const { by, missing } = cover(need, useful);
  return {
    need,
    allowed: missing.length === 0,
    by,
    missing,
    others: near.filter((grant) => !isOfUse(grant)),
  };
}

function grantsOf(roles: readonly RoleGrants[]): Grant[] {
  return roles.flatMap(({ role, permissions }) =>
    permissions.map(({ permType, key, rangeEnd }) => ({
      role,
      type: typeName(permType),
      ...keyRange(key, rangeEnd),
    })),
  );
}

function typeName(type: number): Grant["type"] {
  if (type === Permission_Type.READWRITE) return "READWRITE";
  return type === Permission_Type.WRITE ? "WRITE" : "READ";
}

/** Goes through the range from its beginning; of the permissions there, the longest comes next. */
function cover(need: KeyRange, useful: readonly Grant[]): Pick<Verdict, "by" | "missing"> {
  const by: Grant[] = [];
  const missing: KeyRange[] = [];
  let at: string | undefined = need.key;
  let next = 0;
  while (at !== undefined && isBefore(at, need.end)) {
    let best: Grant | undefined;
    for (let grant = useful[next]; grant !== undefined && grant.key <= at; grant = useful[++next]) {
      if (best === undefined || isLonger(grant, best)) best = grant;
    }
    if (best !== undefined && isBefore(at, best.end)) {
      by.push(best);
      at = best.end;
      continue;
    }
    const gapEnd: string | undefined = useful[next]?.key;
    const end = gapEnd === undefined || !isBefore(gapEnd, need.end) ? need.end : gapEnd;
    missing.push({ key: at, end });
    at = end;
  }
  return { by, missing };
}

function byKey(a: Grant, b: Grant): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

function isLonger(a: KeyRange, b: KeyRange): boolean {
  return b.end !== undefined && (a.end === undefined || a.end > b.end);
}

/** Whether a key is before the end of a range. */
function isBefore(key: string, end: string | undefined): boolean {
  return end === undefined || key < end;
}

function meets(a: KeyRange, b: KeyRange): boolean {
  return isBefore(a.key, b.end) && isBefore(b.key, a.end);
}

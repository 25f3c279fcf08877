/**
 * What each request needs permission for, at every level of it. Written by hand from etcd's rules
 * (server/etcdserver/apply/auth.go), on decoded messages: what a member makes of them is judged by
 * it.
 */
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AuthRoleGetRequest,
  AuthUserGetRequest,
  DeleteRangeRequest,
  type InternalRaftRequest,
  LeaseRevokeRequest,
  PutRequest,
  RangeRequest,
  type RequestOp,
  TxnRequest,
  toLatin1,
} from "@quorate/proto";
import { authKindOf } from "./auth-kinds.ts";
import type { KeyAccess, Need } from "./auth-model.ts";

/** The keys that are attached to a lease, by its id in decimal. */
export type KeysOf = (lease: string) => readonly string[];

/** In place of an id: every lease. */
export const ALL_LEASES = "all";

interface Keys {
  readonly key: Uint8Array;
  readonly rangeEnd?: Uint8Array;
}

function keys(access: KeyAccess, { key, rangeEnd }: Keys): Need {
  const end = rangeEnd === undefined ? "" : toLatin1(rangeEnd);
  return { kind: "range", access, key: toLatin1(key), end };
}

/** Those of a read. */
export function rangeNeeds(request: Keys): Need[] {
  return [keys("read", request)];
}

export function putNeeds({ key, lease, prevKv }: PutRequest, keysOf: KeysOf): Need[] {
  return [
    keys("write", { key }),
    ...(lease === 0n ? [] : [leaseNeed("write", `${lease}`, keysOf)]),
    ...(prevKv ? [keys("read", { key })] : []),
  ];
}

export function deleteNeeds(request: DeleteRangeRequest): Need[] {
  return [keys("write", request), ...(request.prevKv ? [keys("read", request)] : [])];
}

/** Both branches, whichever is taken, and what is within them. */
export function txnNeeds({ compare, success, failure }: TxnRequest, keysOf: KeysOf): Need[] {
  const work = [...compare, ...success, ...failure].filter(
    (one) => !("request" in one) || one.request !== undefined,
  );
  if (work.length === 0) return [{ kind: "user" }];
  return [
    ...compare.map((one) => keys("read", one)),
    ...[...success, ...failure].flatMap((op) => opNeeds(op, keysOf)),
  ];
}

function opNeeds({ request }: RequestOp, keysOf: KeysOf): Need[] {
  switch (request?.case) {
    case "requestRange":
      return rangeNeeds(request.value);
    case "requestPut":
      return putNeeds(request.value, keysOf);
    case "requestDeleteRange":
      return deleteNeeds(request.value);
    case "requestTxn":
      return txnNeeds(request.value, keysOf);
    default:
      return [];
  }
}

/** A permission for each key that is attached to a lease. */
export function leaseNeed(access: KeyAccess, lease: string, keysOf: KeysOf): Need {
  return { kind: "lease", access, keys: keysOf(lease) };
}

const OPEN_KINDS = [
  "leaseCheckpoint",
  "clusterVersionSet",
  "clusterMemberAttrSet",
  "authUserCreations",
  "authenticate",
  "authStatus",
] as const;

/** What an entry needs. */
export function entryNeeds(internal: InternalRaftRequest, keysOf: KeysOf): Need[] {
  const { put, deleteRange, txn, range, leaseGrant, leaseRevoke, compaction, alarm } = internal;
  if (put !== undefined) return putNeeds(PutRequest.decode(put), keysOf);
  if (deleteRange !== undefined) return deleteNeeds(DeleteRangeRequest.decode(deleteRange));
  if (txn !== undefined) return txnNeeds(TxnRequest.decode(txn), keysOf);
  if (range !== undefined) return rangeNeeds(RangeRequest.decode(range));
  if (leaseGrant !== undefined) return [{ kind: "user" }];
  if (leaseRevoke !== undefined) {
    const { ID } = LeaseRevokeRequest.decode(leaseRevoke);
    return [{ kind: "user" }, leaseNeed("write", `${ID}`, keysOf)];
  }
  if (compaction !== undefined) return [{ kind: "root" }];
  if (alarm !== undefined) return alarmNeeds(AlarmRequest.decode(alarm));
  if (OPEN_KINDS.some((kind) => internal[kind] !== undefined)) return [];
  return authNeeds(internal);
}

/** A user to list alarms, the role root to raise or end one. */
export function alarmNeeds({ action }: AlarmRequest): Need[] {
  return [{ kind: action === AlarmRequest_AlarmAction.GET ? "user" : "root" }];
}

function authNeeds(internal: InternalRaftRequest): Need[] {
  const { authUserGet, authRoleGet } = internal;
  if (authUserGet !== undefined)
    return [{ kind: "this-user", name: AuthUserGetRequest.decode(authUserGet).name }];
  if (authRoleGet !== undefined)
    return [{ kind: "this-role", name: AuthRoleGetRequest.decode(authRoleGet).role }];
  return authKindOf(internal) === undefined ? [] : [{ kind: "root" }];
}

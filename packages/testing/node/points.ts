/**
 * Points of a cluster's content to which tests return. Keys get the values and leases of the point
 * by ordinary transactions of the difference: revisions go on, and watches see it.
 */
import { opDelete, opPut } from "@quorate/client";
import { MEMBER_CALLER, type Member } from "@quorate/member";
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  AuthDisableRequest,
  AuthRoleDeleteRequest,
  AuthUserDeleteRequest,
  defined,
  equals,
  fromLatin1,
  KeyValue,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  type RequestOp,
  TxnRequest,
} from "@quorate/proto";
import type { Applied, NeedsRecord, RequestKind, VisitKey } from "@quorate/store";

/** A key of a point. */
interface Kept {
  readonly value: Uint8Array;
  readonly lease: bigint;
}

/** What a cluster holds. */
export interface Point {
  /** A key that has not changed since is as it was. */
  readonly revision: number;
  /** By key in latin1. */
  readonly keys: ReadonlyMap<string, Kept>;
  /** Seconds to live by lease. */
  readonly leases: ReadonlyMap<bigint, number>;
}

export const EMPTY: Point = { revision: 0, keys: new Map(), leases: new Map() };

const ALL_KEYS = { single: false, key: "", to: undefined } as const;

/** Runs `look` on all that is committed, on this thread at once. */
function looking<T>(member: Member, look: () => T): Promise<T> {
  return member.read(MEMBER_CALLER, { access: { kind: "status" }, linearizable: true, run: look });
}

/** What the cluster holds now, read through its leader. */
export function pointOf(member: Member): Promise<Point> {
  return looking(member, () => {
    const { mvcc } = member.store;
    const revision = mvcc.currentRevision;
    const keys = new Map<string, Kept>();
    const visit: VisitKey = (key, _index, record) => {
      keys.set(key, keptOf(defined(record, "the record")));
      return true;
    };
    for (const _ of mvcc.view.each(ALL_KEYS, revision, visit, () => true));
    return { revision, keys, leases: leasesOf(member) };
  });
}

function keptOf(record: Uint8Array): Kept {
  const { value, lease } = KeyValue.decode(record);
  return { value: value.slice(), lease };
}

function leasesOf(member: Member): ReadonlyMap<bigint, number> {
  return new Map([...member.store.lessor.all()].map(({ id, ttlSeconds }) => [id, ttlSeconds]));
}

/** Brings the cluster back to a point, without users and alarms. */
export async function returnTo(member: Member, point: Point, maxTxnOps: number): Promise<void> {
  const { auth, alarms } = member.store;
  if (auth.isEnabled) await propose(member, "authDisable", AuthDisableRequest.encode({}));
  for (const name of auth.userNames())
    await propose(member, "authUserDelete", AuthUserDeleteRequest.encode({ name }));
  for (const role of auth.roleNames())
    await propose(member, "authRoleDelete", AuthRoleDeleteRequest.encode({ role }));
  const { leases, changes } = await looking(member, () => ({
    leases: leasesOf(member),
    changes: differences(member, point),
  }));
  // All at once, for one round of Raft: they are applied in this order.
  const steps: Promise<unknown>[] = [];
  for (const ID of leases.keys())
    if (!point.leases.has(ID))
      steps.push(propose(member, "leaseRevoke", LeaseRevokeRequest.encode({ ID })));
  for (const [ID, TTL] of point.leases)
    if (!leases.has(ID))
      steps.push(propose(member, "leaseGrant", LeaseGrantRequest.encode({ ID, TTL })));
  for (let at = 0; at < changes.length; at += maxTxnOps) {
    const success = changes.slice(at, at + maxTxnOps);
    steps.push(propose(member, "txn", TxnRequest.encode(TxnRequest.create({ success }))));
  }
  await Promise.all(steps);
  for (const { memberId, type } of alarms.list()) {
    const action = AlarmRequest_AlarmAction.DEACTIVATE;
    await propose(
      member,
      "alarm",
      AlarmRequest.encode({ action, memberID: memberId, alarm: type }),
    );
  }
}

/** Deletions first: they make room. Only records of keys that have changed since are read. */
function differences(member: Member, point: Point): RequestOp[] {
  const { mvcc } = member.store;
  const revision = mvcc.currentRevision;
  if (point.keys.size === 0) return mvcc.keyCount === 0 ? [] : [opDelete("", { fromKey: true })];
  const deletes: RequestOp[] = [];
  const puts: RequestOp[] = [];
  const found = new Set<string>();
  const visit: VisitKey = (key, _index, record) => {
    const kept = point.keys.get(key);
    if (kept === undefined) {
      deletes.push(opDelete(fromLatin1(key)));
      return true;
    }
    found.add(key);
    if (record !== undefined && !isSame(keptOf(record), kept)) puts.push(putOf(key, kept));
    return true;
  };
  const hasChanged: NeedsRecord = (index) => index.mainAt(index.find(revision)) > point.revision;
  for (const _ of mvcc.view.each(ALL_KEYS, revision, visit, hasChanged));
  if (found.size < point.keys.size)
    for (const [key, kept] of point.keys) if (!found.has(key)) puts.push(putOf(key, kept));
  return [...deletes, ...puts];
}

function isSame(now: Kept, then: Kept): boolean {
  return now.lease === then.lease && equals(now.value, then.value);
}

function putOf(key: string, { value, lease }: Kept): RequestOp {
  return opPut(fromLatin1(key), value, { lease });
}

async function propose<K extends RequestKind>(
  member: Member,
  kind: K,
  bytes: Uint8Array,
): Promise<Extract<Applied<K>, { error: undefined }>["response"]> {
  const applied = await member.propose(MEMBER_CALLER, kind, bytes);
  if (applied.error !== undefined) throw applied.error;
  return applied.response as never;
}

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
  equals,
  fromLatin1,
  KeyValue,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  RangeRequest,
  type RequestOp,
  TxnRequest,
  toLatin1,
} from "@quorate/proto";
import type { Applied, RequestKind } from "@quorate/store";

/** A key of a point. */
interface Kept {
  readonly value: Uint8Array;
  readonly lease: bigint;
}

/** What a cluster holds. */
export interface Point {
  /** By key in latin1. */
  readonly keys: ReadonlyMap<string, Kept>;
  /** Seconds to live by lease. */
  readonly leases: ReadonlyMap<bigint, number>;
}

export const EMPTY: Point = { keys: new Map(), leases: new Map() };

/** What the cluster holds now, read through its leader. */
export async function pointOf(member: Member): Promise<Point> {
  const request = RangeRequest.create({ key: new Uint8Array(1), rangeEnd: new Uint8Array(1) });
  const { kvs } = await propose(member, "range", RangeRequest.encode(request));
  const keys = kvs.map((bytes): [string, Kept] => {
    const { key, value, lease } = KeyValue.decode(bytes);
    return [toLatin1(key), { value: value.slice(), lease }];
  });
  const leases = [...member.store.lessor.all()].map((one): [bigint, number] => [
    one.id,
    one.ttlSeconds,
  ]);
  return { keys: new Map(keys), leases: new Map(leases) };
}

/** Brings the cluster back to a point, without users and alarms. */
export async function returnTo(member: Member, point: Point, maxTxnOps: number): Promise<void> {
  const { auth, alarms } = member.store;
  if (auth.isEnabled) await propose(member, "authDisable", AuthDisableRequest.encode({}));
  for (const name of auth.userNames())
    await propose(member, "authUserDelete", AuthUserDeleteRequest.encode({ name }));
  for (const role of auth.roleNames())
    await propose(member, "authRoleDelete", AuthRoleDeleteRequest.encode({ role }));
  const now = await pointOf(member);
  await Promise.all(
    [...now.leases.keys()]
      .filter((ID) => !point.leases.has(ID))
      .map((ID) => propose(member, "leaseRevoke", LeaseRevokeRequest.encode({ ID }))),
  );
  await Promise.all(
    [...point.leases]
      .filter(([ID]) => !now.leases.has(ID))
      .map(([ID, TTL]) => propose(member, "leaseGrant", LeaseGrantRequest.encode({ ID, TTL }))),
  );
  const changes = differences(now, point);
  for (let at = 0; at < changes.length; at += maxTxnOps) {
    const success = changes.slice(at, at + maxTxnOps);
    await propose(member, "txn", TxnRequest.encode(TxnRequest.create({ success })));
  }
  for (const { memberId, type } of alarms.list()) {
    const action = AlarmRequest_AlarmAction.DEACTIVATE;
    await propose(
      member,
      "alarm",
      AlarmRequest.encode({ action, memberID: memberId, alarm: type }),
    );
  }
}

/** Deletions first: they make room. */
function differences(now: Point, then: Point): RequestOp[] {
  const deleted = [...now.keys.keys()]
    .filter((key) => !then.keys.has(key))
    .map((key) => opDelete(fromLatin1(key)));
  const put = [...then.keys]
    .filter(([key, { value, lease }]) => {
      const held = now.keys.get(key);
      return held === undefined || held.lease !== lease || !equals(held.value, value);
    })
    .map(([key, { value, lease }]) => opPut(fromLatin1(key), value, { lease }));
  return [...deleted, ...put];
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

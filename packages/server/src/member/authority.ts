/**
 * The seam for users and roles on the serving side; the side of apply is `RequestGate` in
 * packages/store. A member without an authority serves every caller.
 *
 *     propose   identify -> header {username, auth_revision} -> Raft -> RequestGate at apply
 *     read      admit -> ReadIndex round -> admit -> read -> Admission.confirm   (etcd: doSerialize)
 *     watch     admit when it is created, and again when users or roles have changed
 */
import type {
  HashKVRequest,
  LeaseTimeToLiveRequest,
  MemberAddRequest,
  MemberRemoveRequest,
  MemberUpdateRequest,
  RangeRequest,
  TxnRequest,
} from "@quorate/proto";
import type { KeyRange } from "@quorate/store";
import type { Caller, Identity } from "./caller.ts";

/** What is read or done outside of the log, and what permission depends on, by kind. */
export interface AccessRequests {
  range: RangeRequest;
  txn: TxnRequest;
  watch: KeyRange;
  leaseTimeToLive: LeaseTimeToLiveRequest;
  leaseLeases: undefined;
  leaseKeepAlive: bigint;
  alarms: undefined;
  status: undefined;
  hash: undefined;
  hashKV: HashKVRequest;
  snapshot: undefined;
  defragment: undefined;
  moveLeader: undefined;
  downgrade: undefined;
  memberList: undefined;
  memberAdd: MemberAddRequest;
  memberRemove: MemberRemoveRequest;
  memberUpdate: MemberUpdateRequest;
  memberPromote: undefined;
}

export type AccessKind = keyof AccessRequests;

/** One request for access: its kind, and the message that permission depends on. */
export type Access = {
  readonly [K in AccessKind]: { readonly kind: K; readonly request: AccessRequests[K] };
}[AccessKind];

/** A verdict that holds as long as users and roles stay as they are. */
export interface Admission {
  /**
   * @throws EtcdError AuthOldRevision where users or roles have changed since (etcd: doSerialize)
   */
  confirm(): void;
}

export interface Authority {
  /**
   * The identity for the header of a proposal; undefined while authentication is off, or where the
   * caller brings no evidence. May wait: a simple token is valid from an index on.
   * @throws EtcdError InvalidAuthToken and what else the evidence is refused for
   */
  identify(caller: Caller): Identity | undefined | Promise<Identity | undefined>;
  /**
   * Permits an access by the users and roles that are applied here now.
   * @throws EtcdError PermissionDenied, UserEmpty, AuthOldRevision, InvalidAuthToken
   */
  admit(caller: Caller, access: Access): Admission | Promise<Admission>;
}

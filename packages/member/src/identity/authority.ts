/**
 * The seam for users and roles on the serving side; the side of apply is in packages/store
 * (src/apply.ts).
 *
 *     propose   identify -> header {username, auth_revision} -> Raft -> authorize at apply
 *     read      ReadIndex round -> admit -> read -> confirm   (etcd: doSerialize)
 *     watch     admit when it is created, and again when users or roles have changed
 */
import type {
  DeleteRangeRequest,
  LeaseTimeToLiveRequest,
  RangeRequest,
  TxnRequest,
} from "@quorate/proto";
import type { KeyRange } from "@quorate/store";
import type { Caller, Identity } from "./caller.ts";

/** Reads and operations outside of the log by kind, with the message that permission depends on. */
export interface AccessRequests {
  range: RangeRequest;
  txn: TxnRequest;
  /** The estimate of its response; the deletion itself goes through the log. */
  deleteRange: DeleteRangeRequest;
  leaseTimeToLive: LeaseTimeToLiveRequest;
  /** Keys that the leader has for a lease: this member may not know of them yet. */
  leaseKeys: readonly Uint8Array[];
  /** The lease's id. */
  leaseKeepAlive: bigint;
  leaseLeases: undefined;
  alarms: undefined;
  health: undefined;
  status: undefined;
  hash: undefined;
  hashKV: undefined;
  snapshot: undefined;
  defragment: undefined;
  moveLeader: undefined;
  downgrade: undefined;
  memberList: undefined;
  memberAdd: undefined;
  memberRemove: undefined;
  memberUpdate: undefined;
  memberPromote: undefined;
}

export type AccessKind = keyof AccessRequests;

/** One request for access: its kind, and the message that permission depends on, if any. */
export type Access = {
  readonly [K in AccessKind]: AccessRequests[K] extends undefined
    ? { readonly kind: K }
    : { readonly kind: K; readonly request: AccessRequests[K] };
}[AccessKind];

/**
 * The store that an access needs: "servable", one that clients may be shown; "readable", any that
 * is in its place; "none".
 */
export const NEEDED_STORE: { readonly [K in AccessKind]: "servable" | "readable" | "none" } = {
  range: "servable",
  txn: "servable",
  deleteRange: "none",
  leaseTimeToLive: "none",
  leaseKeys: "none",
  leaseKeepAlive: "none",
  leaseLeases: "servable",
  alarms: "readable",
  health: "readable",
  status: "readable",
  hash: "readable",
  hashKV: "readable",
  snapshot: "servable",
  defragment: "readable",
  moveLeader: "none",
  downgrade: "none",
  memberList: "readable",
  memberAdd: "none",
  memberRemove: "none",
  memberUpdate: "none",
  memberPromote: "none",
};

/** A verdict that holds as long as users and roles stay as they are. */
export interface Admission {
  /**
   * @throws EtcdError AuthOldRevision where users or roles have changed since (etcd: doSerialize)
   */
  confirm(): void;
}

/** What the caller of a stream of watches may see. */
export interface WatchAuthority {
  /** Resolves when the caller can be recognised; undefined: now. */
  ready(): Promise<void> | undefined;
  /**
   * Why the caller may not watch a range, in the words of cancel_reason; undefined: it may. By the
   * users and roles that are applied here now.
   */
  forbids(range: KeyRange): string | undefined;
  /** The same for a watch that was permitted when it was made. */
  revoked(range: KeyRange): string | undefined;
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
  /** For one stream of watches. */
  watching(caller: Caller): WatchAuthority;
}

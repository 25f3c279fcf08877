/**
 * Rules of etcd that every member follows in a cluster with members of etcd's, written from etcd's
 * apply (server/etcdserver: apply_v2.go, apply/uber_apply.go; server/lease/lessor.go):
 *
 *   ETCD-1 followed   each store follows etcd's rules, however its member came by it
 *   ETCD-2 v2 store   attributes of a member in a request of the v2 store are that member's
 *   ETCD-3 minimum    a lease has the minimum time to live, also if less was asked for
 *   ETCD-4 alarms     no alarm ends unless an operator asked for it
 */
import {
  AlarmRequest,
  AlarmRequest_AlarmAction,
  etcdserverpb,
  InternalRaftRequest,
  LeaseGrantRequest,
  type raftpb,
  toLatin1,
} from "@quorate/proto";
import type { AppliedEntry, Store } from "@quorate/store";
import { violate } from "../base/violation.ts";

const ATTRIBUTES = /^\/0\/members\/([0-9a-f]+)\/attributes$/;

export class EtcdRules {
  /** etcd: ceil(3 * electionTicks / 2 * heartbeat). */
  readonly leastTtlSeconds: number;
  /** What members of etcd proposed, as text. */
  readonly #written = new Set<string>();
  /** Ends of alarms that operators asked for. */
  #asked = 0;
  #ended = 0;
  #lastIndex = 0;

  constructor({ electionMs, heartbeatMs }: { electionMs: number; heartbeatMs: number }) {
    const ticks = Math.floor((3 * Math.floor(electionMs / heartbeatMs)) / 2);
    this.leastTtlSeconds = Math.ceil((ticks * heartbeatMs) / 1000);
  }

  /** A member of etcd proposes this. */
  wrote(data: Uint8Array): void {
    this.#written.add(toLatin1(data));
  }

  /** An operator asks a member to end an alarm. */
  askedForEnd(): void {
    this.#asked++;
  }

  /** The request of the v2 store in an entry that etcd wrote; undefined for any other. */
  v2Of({ data }: raftpb.Entry): etcdserverpb.Request | undefined {
    if (!this.#written.has(toLatin1(data))) return undefined;
    try {
      const { v2, header } = InternalRaftRequest.decode(data);
      if (v2 !== undefined) return etcdserverpb.Request.decode(v2);
      if (header !== undefined) return undefined;
    } catch {
      // It is the request itself.
    }
    return etcdserverpb.Request.decode(data);
  }

  /** A member has opened a store. */
  opened(name: string, { followsEtcd }: Store): void {
    if (!followsEtcd) violate("ETCD-1", `the store of ${name} does not follow etcd's rules`);
  }

  /** A member has applied an entry. */
  applied(
    name: string,
    store: Store,
    entry: raftpb.Entry,
    applied: AppliedEntry | undefined,
  ): void {
    const { index, data } = entry;
    if (applied === undefined || data.length === 0 || applied.error !== undefined) return;
    const v2 = this.v2Of(entry);
    const memberId = v2?.Method === "PUT" ? ATTRIBUTES.exec(v2.Path)?.[1] : undefined;
    if (v2 !== undefined) {
      const member =
        memberId === undefined ? undefined : store.membership.member(BigInt(`0x${memberId}`));
      if (member === undefined) return;
      const { clientURLs } = JSON.parse(v2.Val) as { clientURLs: string[] };
      if (member.clientUrls.join() !== clientURLs.join())
        violate("ETCD-2", `${name} has ${member.clientUrls.join()} after ${index}, not ${v2.Val}`);
      return;
    }
    const { leaseGrant, alarm } = InternalRaftRequest.decode(data);
    if (leaseGrant !== undefined) {
      const { ID, TTL } = LeaseGrantRequest.decode(leaseGrant);
      const ttl = store.lessor.get(ID)?.ttlSeconds;
      if (ttl !== Math.max(TTL, this.leastTtlSeconds))
        violate(
          "ETCD-3",
          `${name} has a lease of ${ttl} s after ${index}, asked for were ${TTL} s`,
        );
    }
    if (alarm === undefined || index <= this.#lastIndex) return;
    this.#lastIndex = index;
    if (AlarmRequest.decode(alarm).action !== AlarmRequest_AlarmAction.DEACTIVATE) return;
    if (++this.#ended > this.#asked)
      violate("ETCD-4", `an alarm ends at ${index}, and no operator asked for it`);
  }
}

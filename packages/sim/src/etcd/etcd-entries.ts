/**
 * What members of etcd put into the log, and members of Quorate do not: requests of etcd's v2 store
 * (3.5), tests of versions (3.6), and leases whose time to live is below the minimum, which each
 * member raises when it applies the grant.
 */
import {
  DowngradeVersionTestRequest,
  etcdserverpb,
  InternalRaftRequest,
  LeaseGrantRequest,
} from "@quorate/proto";
import { Actor, type ActorDeps } from "../base/actor.ts";
import type { Safety } from "../check/safety.ts";
import type { Node } from "../node.ts";

const EVERY_MS = 400;

export interface EtcdEntriesDeps extends ActorDeps {
  readonly safety: Safety;
}

export class EtcdEntries extends Actor<EtcdEntriesDeps> {
  #made = 0;

  start(): void {
    if (this.options.etcdMembers > 0) this.#work().catch((error) => this.deps.fail(error));
  }

  async #work(): Promise<void> {
    const { scheduler, nodes } = this.deps;
    while (!this.isStopped) {
      await scheduler.delay(2 * this.random.unit() * EVERY_MS);
      const theirs = nodes.filter((node) => node.isEtcd && node.member !== undefined);
      if (!this.isStopped && theirs.length > 0)
        this.#propose(theirs[this.random.below(theirs.length)]);
    }
  }

  #propose(node: Node): void {
    const { safety, story } = this.deps;
    const { raft, memberId } = node;
    if (raft === undefined) return;
    const ID = ((memberId & 0xffffn) << 48n) | (this.random.uint64() >> 16n);
    const data = this.#entry(node, ID);
    story.record("etcd", () => `has ${node.name} propose as etcd does`, data);
    safety.etcd?.wrote(data);
    raft.propose([data]);
  }

  #entry(node: Node, ID: bigint): Uint8Array {
    const { random } = this;
    const v2 = (fields: Partial<etcdserverpb.Request>) => {
      const bytes = etcdserverpb.Request.encode(etcdserverpb.Request.create({ ID, ...fields }));
      return random.below(2) === 0
        ? bytes
        : InternalRaftRequest.encode({ header: { ID, username: "", authRevision: 0 }, v2: bytes });
    };
    switch (random.below(4)) {
      case 0: {
        const clientURLs = [`http://etcd-${this.#made++}:2379`];
        return v2({
          Method: "PUT",
          Path: `/0/members/${node.memberId.toString(16)}/attributes`,
          Val: JSON.stringify({ name: node.name, clientURLs }),
        });
      }
      case 1:
        return v2({ Method: ["QGET", "SYNC", "DELETE"][random.below(3)], Path: "/1/key" });
      case 2:
        return InternalRaftRequest.encode({
          header: { ID, username: "", authRevision: 0 },
          downgradeVersionTest: DowngradeVersionTestRequest.encode({ ver: "3.6.0" }),
        });
      default: {
        const lease = (random.uint64() >> 1n) | 1n;
        return InternalRaftRequest.encode({
          header: { ID, username: "", authRevision: 0 },
          leaseGrant: LeaseGrantRequest.encode({ ID: lease, TTL: 1 }),
        });
      }
    }
  }
}

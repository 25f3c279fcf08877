/** The members of a simulated cluster: the network between them, and the judges of all of them. */
import type { Random } from "@quorate/host";
import type { ServerConfig } from "@quorate/server";
import type { SimOptions } from "./base/options.ts";
import type { Scheduler } from "./base/scheduler.ts";
import { CorruptionCheck } from "./check/corruption.ts";
import type { EtcdRules } from "./check/etcd-rules.ts";
import { HashCheck } from "./check/hashes.ts";
import { LeaseCheck } from "./check/lease-lives.ts";
import { RaftCheck } from "./check/raft.ts";
import { Safety } from "./check/safety.ts";
import { Network } from "./network.ts";
import { Node } from "./node.ts";
import type { Story } from "./report/story.ts";
import { leaseCheckOptionsOf } from "./step-limits.ts";

export interface ClusterDeps {
  readonly scheduler: Scheduler;
  readonly story: Story;
  readonly random: Random;
  /** Something is wrong that no event would show. */
  fail(error: unknown): void;
}

export class Cluster {
  readonly raftCheck = new RaftCheck();
  readonly corruptionCheck = new CorruptionCheck();
  readonly leaseCheck: LeaseCheck;
  readonly safety: Safety;
  readonly hashCheck: HashCheck;
  readonly network: Network;
  readonly #options: SimOptions;
  readonly #deps: ClusterDeps;

  constructor(options: SimOptions, deps: ClusterDeps, etcd?: EtcdRules) {
    const { scheduler, random } = deps;
    const now = () => scheduler.nowMs;
    const leastTtlSeconds = etcd?.leastTtlSeconds;
    this.leaseCheck = new LeaseCheck({ ...leaseCheckOptionsOf(options), leastTtlSeconds }, now);
    this.safety = new Safety(this.leaseCheck, this.corruptionCheck, now, etcd);
    this.hashCheck = new HashCheck(this.safety);
    const ofNetwork = { random: random.fork("network"), safety: this.safety };
    this.network = new Network(options, { ...deps, ...ofNetwork });
    this.#options = options;
    this.#deps = { ...deps, random: random.fork("nodes") };
  }

  /** A machine of the cluster, which is not started. */
  node(name: string, config: ServerConfig): Node {
    const { network, safety, raftCheck, hashCheck, corruptionCheck } = this;
    const judges = { safety, raftCheck, hashCheck, corruptionCheck };
    return new Node(name, { ...this.#deps, ...judges, options: this.#options, network, config });
  }
}

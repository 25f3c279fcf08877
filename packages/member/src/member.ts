/**
 * One member of a cluster, for services and endpoints. Its ways in are those of EntryPoints. Its
 * parts are put together in assemble.ts, begun and closed in lifecycle.ts.
 *
 *     const member = await Member.start(config, deps);   // opens or makes the data directory
 *     await member.ready;                                 // it has published itself: it can serve
 *     const applied = await member.propose(caller, "put", bytes);    // through Raft, applied here
 *     await member.read(caller, { access, linearizable: true, run });
 *     await member.stop();                                // syncs, closes
 *
 * It knows no sockets: transport and engines are passed in.
 */
import type { Clock, Logger } from "@quorate/host";
import type { ResponseHeader } from "@quorate/proto";
import type { Store } from "@quorate/store";
import { assemble, type MemberInputs, type MemberParts, storeOptionsOf } from "./assemble.ts";
import { bootstrap } from "./bootstrap.ts";
import type { MemberConfig } from "./config/member-config.ts";
import type { Corruption } from "./corruption/index.ts";
import type { MemberDeps } from "./deps.ts";
import { EntryPoints } from "./entry-points.ts";
import type { AccessControl } from "./identity/access-control.ts";
import type { Leases } from "./lease/leases.ts";
import { Lifecycle } from "./lifecycle.ts";
import type { Leadership, Reconfiguration } from "./membership/index.ts";
import { metricsOf, walObserver } from "./metric-sources.ts";
import type { MemberMetrics } from "./metrics/member-metrics.ts";
import type { Slices } from "./reads/slices.ts";
import type { Space } from "./space/index.ts";
import type { WatchHub } from "./watch/index.ts";

export class Member extends EntryPoints {
  readonly id: bigint;
  readonly clusterId: bigint;
  readonly config: MemberConfig;
  readonly metrics: MemberMetrics;
  readonly clock: Clock;
  /** Logger for services. */
  readonly logger: Logger;
  readonly watches: WatchHub;
  readonly leases: Leases;
  readonly space: Space;
  readonly slices: Slices;
  readonly corruption: Corruption;
  /** Users and roles. */
  readonly auth: AccessControl;
  /** The least time to live of a lease, in seconds: 1.5 election timeouts, rounded up. */
  readonly minLeaseTtlSeconds: number;
  readonly #parts: MemberParts;
  readonly #lifecycle: Lifecycle;

  /** Opens or makes the data directory and begins to take part in the cluster. */
  static async start(config: MemberConfig, deps: MemberDeps): Promise<Member> {
    let member: Member | undefined;
    const metrics = metricsOf(config, () => member);
    const state = await bootstrap(config, {
      disk: deps.disk,
      keyspaces: deps.keyspaces,
      clock: deps.clock,
      logger: deps.logger,
      walSegmentBytes: deps.walSegmentBytes,
      storeOptions: storeOptionsOf(config, deps),
      callPeer: deps.callPeer,
      names: deps.names,
      openRegistry: deps.openRegistry,
      ...walObserver(metrics),
    });
    member = new Member({ config, deps, metrics, state });
    await member.#lifecycle.begin(state.removal);
    return member;
  }

  private constructor(inputs: MemberInputs) {
    const parts = assemble(inputs);
    super(parts.entry);
    this.#parts = parts;
    this.#lifecycle = new Lifecycle(parts);
    this.id = parts.memberId;
    this.clusterId = parts.clusterId;
    this.config = parts.config;
    this.metrics = parts.metrics;
    this.clock = parts.deps.clock;
    this.logger = parts.deps.logger.child("v3rpc");
    this.watches = parts.watches;
    this.leases = parts.leases;
    this.space = parts.space;
    this.slices = parts.slices;
    this.corruption = parts.corruption;
    this.auth = parts.auth;
    this.minLeaseTtlSeconds = parts.minLeaseTtlSeconds;
  }

  /** Resolves when users and roles of the store are those of the cluster and may be shown. */
  async current(): Promise<void> {
    await this.#parts.reads.wait();
    await this.#parts.readiness.servable();
  }

  /** An id for a lease whose client has none in mind. */
  newLeaseId(): bigint {
    return this.#parts.requestIds.nextLeaseId();
  }

  // --- Its standing ---

  /**
   * Resolves when the member has published itself and the cluster's version is known; never
   * rejects.
   */
  get ready(): Promise<void> {
    return this.#parts.publication.ready;
  }

  get reconfiguration(): Reconfiguration {
    return this.#parts.reconfiguration;
  }

  get leadership(): Leadership {
    return this.#parts.leadership;
  }

  /** The store in use; it may be replaced by another from one turn to the next. */
  get store(): Store {
    return this.#parts.store.current;
  }

  /** Whether clients may be shown what is in the store now. */
  get isServable(): boolean {
    return this.#parts.readiness.isServable;
  }

  /** 0n where none is known. */
  get leader(): bigint {
    return this.#parts.leader.leader;
  }

  get isLeader(): boolean {
    return this.#parts.leader.isLeader;
  }

  get isLearner(): boolean {
    return this.#parts.raft.confState.learners.includes(this.id);
  }

  get term(): number {
    return this.#parts.raft.term;
  }

  get commitIndex(): number {
    return this.#parts.raft.commitIndex;
  }

  get appliedIndex(): number {
    return this.#parts.raft.appliedIndex;
  }

  /** Read index rounds that were sent more than once, and linearizable reads that failed. */
  get readIndexes(): { readonly slow: number; readonly failed: number } {
    const { slowRounds: slow, failed } = this.#parts.reads;
    return { slow, failed };
  }

  get pendingProposals(): number {
    return this.#parts.proposals.waitingCount;
  }

  /** A header with this member's ids and term, and the revision given. */
  header(revision: number): ResponseHeader {
    return {
      clusterId: this.clusterId,
      memberId: this.id,
      revision,
      raftTerm: this.#parts.raft.term,
    };
  }

  // --- The end ---

  /**
   * Hands leadership to the member that is most up to date, if this one leads; resolves when
   * another leads or the time is up.
   */
  handOver(): Promise<void> {
    return this.#parts.leadership.handOver();
  }

  /** Ends the member in order: everything applied is on disk when it resolves. */
  stop(): Promise<void> {
    return this.#lifecycle.stop();
  }
}

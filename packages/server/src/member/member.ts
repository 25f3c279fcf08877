/**
 * One member of a cluster: its log, store, Raft machine, loop and transport put together, and what
 * services ask of it.
 *
 *     const member = await Member.start(config, deps);   // opens or makes the data directory,
 *                                                        begins to take part
 *     await member.ready;                                 // it has published itself: it can serve
 *     const applied = await member.propose("put", bytes); // through Raft, and applied here
 *     await member.linearizable(); member.store.range(...)
 *     await member.stop();                                // hands leadership over, syncs, closes
 *
 * It knows no sockets: transport and engines are given to it.
 */
import type { Clock, Logger, Timer } from "@quorate/host";
import { AlarmRequest, errorOf, type ResponseHeader, type raftpb } from "@quorate/proto";
import { Raft } from "@quorate/raft";
import type { StreamCall } from "@quorate/rpc";
import type {
  Applied,
  AppliedEntry,
  RequestKind,
  RequestLimits,
  RequestOf,
  Store,
} from "@quorate/store";
import type { PeerCall, Transport, TransportListener } from "@quorate/transport";
import { SnapshotFiles, type Wal } from "@quorate/wal";
import { AccessControl } from "../auth/access-control.ts";
import type { ServerConfig } from "../config/index.ts";
import { Corruption } from "../corruption/index.ts";
import { LEASE_CHECKPOINT_INTERVAL_MS, LeaseKeeper } from "../lease/keeper.ts";
import { Leases } from "../lease/leases.ts";
import {
  type ClusterKeeping,
  clusterKeeping,
  type Leadership,
  type Reconfiguration,
  type Removal,
} from "../membership/index.ts";
import { versionProblem } from "../membership/versions.ts";
import type { MemberMetrics } from "../metrics/member-metrics.ts";
import { SLICE_LIMITS, Slices } from "../reads/slices.ts";
import { Space } from "../space/index.ts";
import { WatchHub, type WatchStream } from "../watch/index.ts";
import { AppliedEntries } from "./applied-entries.ts";
import { APPLY_LIMITS, Applier } from "./applier.ts";
import type { Access } from "./authority.ts";
import { type Bootstrapped, bootstrap } from "./bootstrap.ts";
import { type Caller, MEMBER_CALLER } from "./caller.ts";
import { Configuration } from "./configuration.ts";
import type { MemberDeps } from "./deps.ts";
import { electionRandom } from "./election-random.ts";
import { EntryPoints, type ReadRequest } from "./entry-points.ts";
import { noFaults } from "./fault-points.ts";
import { lateTransport } from "./late-transport.ts";
import {
  LOG_LIMITS,
  MAX_QUEUED_PROPOSAL_BYTES,
  MAX_WAITING_PROPOSALS,
  MAX_WAITING_READS,
  RAFT_LIMITS,
  READ_RETRY_MS,
} from "./limits.ts";
import { MemberLoop } from "./loop.ts";
import { type MalformedReport, malformedReport } from "./malformed-report.ts";
import {
  countPromotion,
  metricsOf,
  nameMember,
  saveTiming,
  walObserver,
} from "./metric-sources.ts";
import { PeerMessages } from "./peer-messages.ts";
import { Proposals } from "./proposals.ts";
import { Publication } from "./publication.ts";
import { firstRound, Reads } from "./reads.ts";
import { RequestIds } from "./request-ids.ts";
import { othersHave, SlowDisk } from "./slow-disk.ts";
import { Snapshots } from "./snapshots.ts";
import { StoreExchange } from "./store-exchange.ts";
import { StoreRef } from "./store-ref.ts";
import { timeoutReason } from "./timeout-reason.ts";

export class Member {
  readonly id: bigint;
  readonly clusterId: bigint;
  readonly config: ServerConfig;
  readonly metrics: MemberMetrics;
  readonly clock: Clock;
  /** For what the services have to tell. */
  readonly logger: Logger;
  readonly watches: WatchHub;
  readonly leases: Leases;
  readonly space: Space;
  readonly slices: Slices;
  readonly corruption: Corruption;
  /** Users and roles. */
  readonly auth: AccessControl;
  /**
   * The least time to live of a lease, in seconds: one and a half election timeouts, rounded up.
   */
  readonly minLeaseTtlSeconds: number;

  readonly #deps: MemberDeps;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #wal: Wal;
  readonly #raft: Raft;
  readonly #loop: MemberLoop<AppliedEntry>;
  readonly #proposals: Proposals<AppliedEntry>;
  readonly #reads: Reads;
  readonly #requestIds: RequestIds;
  readonly #snapshots: Snapshots;
  readonly #files: SnapshotFiles;
  readonly #keeper: LeaseKeeper;
  readonly #configuration: Configuration;
  readonly #publication: Publication;
  readonly #slowDisk: SlowDisk;
  readonly #applied: AppliedEntries;
  readonly #entry: EntryPoints;
  readonly #peerMessages: PeerMessages;
  readonly #malformed: MalformedReport;
  readonly #cluster: ClusterKeeping;
  #transport!: Transport;
  readonly #storeRef: StoreRef;
  readonly #exchange: StoreExchange;
  #flushTimer: Timer | undefined;
  #flushes = 0;
  #leaderElectedMs = 0;
  #ended = false;

  /** Opens or makes the data directory and begins to take part in the cluster. */
  static async start(config: ServerConfig, deps: MemberDeps): Promise<Member> {
    let member: Member | undefined;
    const metrics = metricsOf(config, () => member);
    const state = await bootstrap(config, {
      ...{ disk: deps.disk, keyspaces: deps.keyspaces, clock: deps.clock, logger: deps.logger },
      walSegmentBytes: deps.walSegmentBytes,
      stepKeys: deps.applyLimits?.stepKeys,
      callPeer: deps.callPeer,
      names: deps.names,
      ...walObserver(metrics),
    });
    member = new Member(config, deps, metrics, state);
    try {
      await member.#begin(state.removal);
    } catch (error) {
      await member.#close({ flush: false });
      throw error;
    }
    return member;
  }

  private constructor(
    config: ServerConfig,
    deps: MemberDeps,
    metrics: MemberMetrics,
    state: Bootstrapped,
  ) {
    this.config = config;
    this.metrics = metrics;
    this.id = state.memberId;
    this.clusterId = state.clusterId;
    this.#deps = deps;
    this.clock = deps.clock;
    this.#clock = deps.clock;
    this.#logger = deps.logger.child("server");
    this.logger = deps.logger.child("v3rpc");
    this.#storeRef = new StoreRef(state.store);
    this.#wal = state.wal;
    this.#requestIds = new RequestIds(this.id, deps.clock.wallMs());
    const requestLimits: RequestLimits = { maxTxnOps: config.maxTxnOps, versionProblem };
    const border = { limits: requestLimits, clock: deps.clock, logger: this.#logger };
    this.#peerMessages = new PeerMessages({
      ...border,
      memberId: this.id,
      refused: metrics.peerMessagesRefused,
    });
    this.#malformed = malformedReport(metrics.malformedEntries, this.#logger);
    const timeoutMs = 5000 + 2 * config.electionTimeoutMs;
    const wake = () => this.#loop.wake();
    this.#proposals = new Proposals<AppliedEntry>(
      { maxWaiting: MAX_WAITING_PROPOSALS, maxQueuedBytes: MAX_QUEUED_PROPOSAL_BYTES, timeoutMs },
      { clock: deps.clock, wake, timeoutReason: (startedMs) => this.#timeoutReason(startedMs) },
    );
    this.#reads = new Reads(
      { maxWaiting: MAX_WAITING_READS, timeoutMs, retryMs: READ_RETRY_MS },
      { clock: deps.clock, wake, firstRound: firstRound(deps.random) },
    );
    const raftLogger = deps.logger.child("raft");
    this.#raft = new Raft(
      {
        id: this.id,
        electionTicks: config.electionTicks,
        heartbeatTicks: 1,
        randomBelow: electionRandom(deps.random),
        preVote: config.preVote,
        checkQuorum: true,
        readOnly: "quorum",
        ...RAFT_LIMITS,
        logger: (level, message, fields) =>
          raftLogger[level](message, fields as Parameters<Logger["info"]>[1]),
      },
      {
        hardState: state.hardState,
        snapshot: state.snapshot,
        entries: state.entries,
        applied: state.store.position.index,
        confState: state.store.position.confState,
      },
    );
    deps.onRaft?.(this.#raft);
    this.#files = new SnapshotFiles(deps.disk, config.snapDir, saveTiming(metrics, deps.clock));
    const faults = deps.faults ?? noFaults;
    const listener = this.#transportListener();
    this.#openTransport = () =>
      deps.openTransport({
        memberId: this.id,
        clusterId: this.clusterId,
        listener,
        metrics,
        questions: this.#cluster.links,
      });
    const transport = lateTransport(() => this.#transport);
    this.#applied = new AppliedEntries({
      ...{ metrics, logger: this.#logger, warningMs: config.warningApplyDurationMs },
      malformed: this.#malformed,
      settle: (requestId, applied) => this.#proposals.settle(requestId, applied),
      succeeded: (kind) => this.#succeeded(kind),
    });
    this.#loop = new MemberLoop<AppliedEntry>(
      {
        raft: this.#raft,
        wal: this.#wal,
        transport,
        proposals: this.#proposals,
        reads: this.#reads,
        clock: deps.clock,
        logger: this.#logger,
        metrics,
        faults,
        applier: new Applier({
          clock: deps.clock,
          limits: deps.applyLimits ?? APPLY_LIMITS,
          faults,
          canApply: () => !this.store.isFull,
          begin: (entry) => this.store.begin(entry, this.#isAwaited),
          applied: (entry, applied, startMs, nowMs) =>
            this.#applied.applied(entry, applied, startMs, nowMs),
          applyConfChange: (entry) => this.#applyConfChange(entry),
          sliceEnded: (index, bytes) => this.#sliceEnded(index, bytes),
        }),
        saveSnapshot: (snapshot) => this.#saveSnapshot(snapshot),
        install: (snapshot) => this.#install(snapshot),
        sendSnapshot: (message) => this.#snapshots.send(message),
        leaderChanged: (leader, isLeader) => this.#leaderChanged(leader, isLeader),
        refused: (message, reason) => this.#peerMessages.refuse(message, reason),
        fatal: (error) => this.#fatal(error),
      },
      { tickMs: config.heartbeatIntervalMs, appliedIndex: state.store.position.index },
    );
    this.#snapshots = new Snapshots(
      {
        snapshotCount: config.snapshotCount,
        catchUpEntries: config.snapshotCatchUpEntries,
        maxWalFiles: config.maxWalFiles,
        ...LOG_LIMITS,
      },
      {
        memberId: this.id,
        store: () => this.store,
        wal: this.#wal,
        files: this.#files,
        transport,
        loop: () => this.#loop as MemberLoop<unknown>,
        clock: deps.clock,
        disk: deps.disk,
        keyspaces: deps.keyspaces,
        config,
        logger: deps.logger.child("server/snapshots"),
        faults,
        received: (durationMs) => metrics.snapshotStoreDuration.observe(durationMs / 1000),
        fatal: (error) => this.#fatal(error),
      },
      state.snapshot.index,
    );
    const ids = { memberId: this.id, clusterId: this.clusterId };
    this.#configuration = new Configuration({
      ...ids,
      farewellMs: config.electionTimeoutMs,
      clock: deps.clock,
      maxLearners: config.maxLearners,
      remotes: state.remotes,
      raft: this.#raft,
      store: () => this.store,
      transport,
      logger: this.#logger,
      settled: (result) => this.#proposals.settle(result.requestId, result),
      removed: (index, voters) => this.#cluster.departure.applied({ index, voters }),
      malformed: this.#malformed,
    });
    this.#publication = new Publication({
      clock: deps.clock,
      ...ids,
      config,
      metrics,
      logger: this.#logger,
      store: () => this.store,
      hasEnded: () => this.#ended,
      propose: (kind, request) => this.propose(MEMBER_CALLER, kind, request),
    });
    this.watches = new WatchHub(
      {
        progressNotifyIntervalMs: config.watchProgressNotifyIntervalMs,
        maxRequestBytes: config.maxRequestBytes,
        limits: deps.watchLimits,
      },
      {
        clock: deps.clock,
        random: deps.random.fork("watch-progress"),
        header: (revision) => this.header(revision),
        events: metrics.watchEvents,
        fatal: (error) => this.#fatal(error),
      },
    );
    this.watches.attach(state.store.mvcc);
    this.minLeaseTtlSeconds = Math.ceil(
      (Math.floor((3 * config.electionTicks) / 2) * config.heartbeatIntervalMs) / 1000,
    );
    this.#keeper = new LeaseKeeper(
      {
        minTtlSeconds: this.minLeaseTtlSeconds,
        extendMs: config.electionTicks * config.heartbeatIntervalMs,
        confirmedForMs: config.heartbeatIntervalMs,
        checkpointIntervalMs:
          config.featureGates.get("LeaseCheckpoint") === true
            ? LEASE_CHECKPOINT_INTERVAL_MS
            : undefined,
      },
      {
        clock: deps.clock,
        logger: deps.logger.child("lease"),
        counters: { renewed: metrics.leasesRenewed, expired: metrics.leasesExpired },
        lessor: () => this.store.lessor,
        confirm: () => this.linearizable(),
        propose: (term, kind, requests) => this.#entry.proposeInTerm(term, kind, requests),
      },
    );
    this.store.lessor.observer = this.#keeper;
    const call: PeerCall =
      deps.callPeer ?? (() => Promise.reject(new Error("this member cannot ask others")));
    this.#cluster = clusterKeeping({
      ...ids,
      config,
      timeoutMs,
      clock: deps.clock,
      logger: this.#logger,
      call,
      store: () => this.store,
      peers: () => this.#transport.peers(),
      leader: () => this.leader,
      isLearner: () => this.isLearner,
      status: () => this.#raft.status(),
      nextRequestId: () => this.#requestIds.next(),
      proposeChange: (change) =>
        this.#ended
          ? "not-a-member"
          : this.#loop.withRaft((raft) => raft.proposeConfChange(change)),
      propose: (kind, request) => this.propose(MEMBER_CALLER, kind, request),
      wait: (requestId) => this.#proposals.wait(requestId),
      linearizable: () => this.linearizable(),
      promoted: (error) => countPromotion(metrics, error),
      transfer: (to) => this.#loop.withRaft((raft) => raft.transferLeadership(to)),
      hasEnded: () => this.#ended,
      stopServing: () => this.#refuseAll(),
      end: (error) => this.#end(error),
    });
    this.leases = new Leases({
      clock: deps.clock,
      keeper: this.#keeper,
      call,
      timeoutMs,
      ...{
        lessor: () => this.store.lessor,
        revision: () => this.store.mvcc.currentRevision,
        slices: () => this.slices,
      },
      isLeader: () => this.isLeader,
      leaderUrls: () =>
        this.isLeader ? undefined : this.store.membership.member(this.leader)?.peerUrls,
      linearizable: () => this.linearizable(),
    });
    this.space = new Space({
      memberId: this.id,
      config,
      store: () => this.store,
      isLeader: () => this.isLeader,
      propose: (kind, request) => this.propose(MEMBER_CALLER, kind, request),
      flush: () => this.#flush(),
      readable: () => this.readable(),
      clock: deps.clock,
      logger: deps.logger,
      metrics,
      fatal: (error) => this.#fatal(error),
    });
    this.slices = new Slices(deps.sliceLimits ?? SLICE_LIMITS, {
      clock: deps.clock,
      answers: deps.answerLimits,
    });
    this.auth = new AccessControl({
      clock: deps.clock,
      secrets: deps.secrets,
      bcryptCost: config.bcryptCost,
      tokenTtlSeconds: config.authTokenTtlSeconds,
      clientCertAuth: config.clientTls?.clientCertAuth ?? false,
      store: () => this.store,
      appliedIndex: () => this.appliedIndex,
      linearizable: () => this.linearizable(),
      run: async (caller, steps) => this.slices.run(caller, steps),
      recheckWatches: () => this.watches.recheck(),
    });
    this.auth.attach(this.store);
    this.#entry = new EntryPoints(
      { limits: requestLimits, maxRequestBytes: config.maxRequestBytes },
      {
        raft: this.#raft,
        loop: this.#loop,
        proposals: this.#proposals,
        reads: this.#reads,
        requestIds: this.#requestIds,
        store: this.#storeRef,
        quota: this.space.keeper,
        readiness: this,
        watches: this.watches,
        authority: this.auth.authority,
        hasEnded: () => this.#ended,
      },
    );
    this.#exchange = new StoreExchange({
      disk: deps.disk,
      keyspaces: deps.keyspaces,
      storeDir: config.storeDir,
      stepKeys: deps.applyLimits?.stepKeys,
      faults,
      store: () => this.store,
      detach: async () => {
        await Promise.all([this.watches.detach(), this.slices.detach()]);
        await this.space.detach();
        await this.#snapshots.close();
      },
      opened: (store) => {
        this.#storeRef.attach(store);
        store.lessor.observer = this.#keeper;
        this.auth.attach(store);
      },
      attach: () => {
        if (this.#ended) return;
        this.slices.attach();
        this.corruption.alarmsChanged();
        if (!this.corruption.isHealing) this.watches.attach(this.store.mvcc);
        this.space.attach();
      },
      fatal: (error) => this.#fatal(error),
    });
    this.corruption = new Corruption({
      host: this,
      call,
      logger: this.#logger,
      snapshots: () => this.#snapshots,
      propose: (request) => this.propose(MEMBER_CALLER, "alarm", AlarmRequest.encode(request)),
      hasEnded: () => this.#ended,
      entriesAfter: (index) => this.#raft.appliedFrom(index + 1),
      standStill: (task) => this.#loop.standStill(task),
      exchange: (index, replay) => this.#exchange.run(index, replay),
      replayConfChange: (store, entry) => this.#configuration.replay(store, entry),
    });
    this.#slowDisk = new SlowDisk(config.slowFsyncHandoverMs, {
      clock: deps.clock,
      logger: this.#logger,
      metrics,
      syncingSinceMs: () => this.#wal.syncingSinceMs,
      othersAreDone: () => othersHave(this.#raft.status(), this.#loop.unsyncedIndex),
      isLeader: () => this.isLeader,
      handOver: () => this.handOver(),
    });
  }

  readonly #openTransport: () => Promise<Transport>;

  /** @param removal of a member that an earlier process has seen removed */
  async #begin(removal: Removal | undefined): Promise<void> {
    nameMember(this.metrics, this.id, this.config);
    if (removal === undefined) await this.corruption.initialCheck();
    this.#transport = await this.#openTransport();
    this.#configuration.connectPeers();
    this.#flushTimer = this.#clock.every(this.config.backendBatchIntervalMs, () => this.#flush());
    if (removal !== undefined) {
      // It answers its peers, and serves nobody.
      this.#loop.start();
      this.#cluster.departure.applied(removal);
      return;
    }
    this.space.start();
    this.corruption.start();
    this.#loop.start();
    this.#slowDisk.start();
    if (this.#configuration.isAlone) this.#loop.withRaft((raft) => raft.campaign());
    if (this.config.autoPromote) this.#cluster.autoPromotion.start();
    this.#publication.publish().catch((error: unknown) => this.#fatal(error));
  }

  // --- What services ask ---

  /**
   * Resolves when the member has published itself and the cluster's version is known; never
   * rejects.
   */
  get ready(): Promise<void> {
    return this.#publication.ready;
  }

  get reconfiguration(): Reconfiguration {
    return this.#cluster.reconfiguration;
  }

  get leadership(): Leadership {
    return this.#cluster.leadership;
  }

  get store(): Store {
    return this.#storeRef.current;
  }

  get leader(): bigint {
    return this.#loop.leader;
  }

  get isLeader(): boolean {
    return this.#loop.leader === this.id;
  }

  get isLearner(): boolean {
    return this.#raft.confState.learners.includes(this.id);
  }

  get term(): number {
    return this.#raft.term;
  }

  get commitIndex(): number {
    return this.#raft.commitIndex;
  }

  get appliedIndex(): number {
    return this.#loop.appliedIndex;
  }

  /** Read index rounds that were asked more than once, and linearizable reads that failed. */
  get readIndexes(): { readonly slow: number; readonly failed: number } {
    return { slow: this.#reads.slowRounds, failed: this.#reads.failed };
  }

  get pendingProposals(): number {
    return this.#proposals.waitingCount;
  }

  /** A header with this member's ids and term, and the revision given. */
  header(revision: number): ResponseHeader {
    return { clusterId: this.clusterId, memberId: this.id, revision, raftTerm: this.#raft.term };
  }

  /** As EntryPoints.propose. */
  propose<K extends RequestKind>(
    caller: Caller,
    kind: K,
    request: Uint8Array,
    decoded?: RequestOf<K>,
  ): Promise<Applied<K>> {
    return this.#entry.propose(caller, kind, request, decoded);
  }

  /** As EntryPoints.spaceRefusal. */
  spaceRefusal<K extends RequestKind>(kind: K, message: RequestOf<K>): Promise<never> | undefined {
    return this.#entry.spaceRefusal(kind, message);
  }

  /** As EntryPoints.read. */
  read<T>(caller: Caller, request: ReadRequest<T>): Promise<T> {
    return this.#entry.read(caller, request);
  }

  /** As EntryPoints.permit. */
  permit(caller: Caller, access: Access): Promise<void> | undefined {
    return this.#entry.permit(caller, access);
  }

  /** Renews a lease for a caller that may: its time in seconds, 0 if there is no such lease. */
  renewLease(caller: Caller, id: bigint): number | Promise<number> {
    return this.#entry.renew(caller, id, () => this.leases.renew(id));
  }

  /** As EntryPoints.watch. */
  watch(caller: Caller, call: StreamCall): WatchStream {
    return this.#entry.watch(caller, call);
  }

  /** As EntryPoints.operate. */
  operate<T>(caller: Caller, access: Access, run: () => Promise<T>): Promise<T> {
    return this.#entry.operate(caller, access, run);
  }

  /** An id for a lease whose client has none in mind. */
  newLeaseId(): bigint {
    return this.#entry.newLeaseId();
  }

  /** Resolves when a read of the store by the member itself is linearizable. */
  linearizable(): Promise<void> {
    return this.#entry.linearizable();
  }

  /**
   * Resolves when the store may be read, which is at once unless a received snapshot is being put
   * in place.
   */
  async readable(): Promise<void> {
    await this.#exchange.over();
  }

  /**
   * Resolves when clients may be shown what is in the store: it may be read, and this member is not
   * about to replace it by another's.
   */
  async servable(): Promise<void> {
    await this.#exchange.over();
    await this.corruption.healed();
  }

  /** Whether `servable` would resolve at once. */
  get isServable(): boolean {
    return !this.#exchange.isRunning && !this.corruption.isHealing;
  }

  // --- Applying ---

  readonly #isAwaited = (requestId: bigint): boolean => this.#proposals.awaits(requestId);

  #succeeded(kind: RequestKind): void {
    if (kind === "compaction") this.space.compactionScheduled();
    else if (kind === "clusterVersionSet") this.#publication.versionMayBeKnown();
    if (kind !== "alarm") return;
    this.space.alarmsChanged();
    this.corruption.alarmsChanged();
  }

  #sliceEnded(index: number, bytes: number): void {
    this.space.keeper.applied();
    this.#snapshots.applied(index, bytes);
    if (this.store.isFlushDue) this.#flush();
  }

  #applyConfChange(entry: raftpb.Entry): void {
    this.#configuration.apply(entry);
    if (this.leader !== 0n || !this.#configuration.isAlone) return;
    this.#clock.endOfTurn(() => {
      if (!this.#ended) this.#loop.withRaft((raft) => raft.campaign());
    });
  }

  #flush(): void {
    // While a received store takes its place, this one is closed, and what it has not written is
    // not wanted any more.
    if (this.#exchange.isRunning || this.store.pendingOps === 0 || this.#flushes >= 2) return;
    this.#flushes++;
    const faults = this.#deps.faults ?? noFaults;
    const flush = async () => {
      const startMs = this.#clock.monotonicMs();
      faults("before-backend-flush");
      await this.store.flush();
      faults("after-backend-flush");
      this.#flushes--;
      this.metrics.backendCommitDuration.observe((this.#clock.monotonicMs() - startMs) / 1000);
      this.#loop.wake();
    };
    flush().catch((error: unknown) => this.#fatal(error));
  }

  // --- Snapshots from a leader ---

  async #saveSnapshot(snapshot: raftpb.Snapshot): Promise<void> {
    const { index, term, confState } = snapshot.metadata;
    (this.#deps.faults ?? noFaults)("before-snapshot-save");
    this.#snapshots.installing(index);
    this.#files.save(snapshot);
    await this.#wal.saveSnapshot({ index, term, confState });
  }

  async #install(snapshot: raftpb.Snapshot): Promise<void> {
    // The log has its mark, so that the next start puts it in place.
    if (this.#ended) return;
    const { index, term } = snapshot.metadata;
    this.#logger.info("applying snapshot", {
      "incoming-snapshot-index": index,
      "current-applied-index": this.appliedIndex,
    });
    this.metrics.snapshotApplyInProgress.value = 1;
    await this.#exchange.run(index);
    this.#snapshots.installed(index);
    this.#configuration.connectPeers();
    this.metrics.snapshotApplyInProgress.value = 0;
    this.#logger.info("applied snapshot", { "snapshot-index": index, "snapshot-term": term });
    this.#publication.versionMayBeKnown();
  }

  #transportListener(): TransportListener {
    return {
      received: (messages) => {
        this.#cluster.departure.heard(messages);
        this.#loop.received(this.#peerMessages.admit(messages));
      },
      snapshotReceived: (stream) => this.#snapshots.receive(stream),
      unreachable: (id) => this.#loop.withRaft((raft) => raft.reportUnreachable(id)),
      snapshotSent: (id, taken) => this.#snapshots.sent(id, taken),
    };
  }

  // --- Leadership and the cluster's version ---

  #leaderChanged(leader: bigint, isLeader: boolean): void {
    if (isLeader) this.#keeper.leads(this.#raft.term);
    else this.#keeper.steppedDown();
    if (leader === 0n) return;
    this.metrics.leaderChanges.add();
    this.#leaderElectedMs = this.#clock.monotonicMs();
    if (isLeader) this.#cluster.versions.lead();
  }

  #timeoutReason(startedMs: number): Error {
    this.metrics.proposalsFailed.add();
    return errorOf(timeoutReason(startedMs, this.#leaderElectedMs, this, this.#transport.peers()));
  }

  // --- The end ---

  /**
   * Hands leadership to the member that is most up to date, if this one leads; resolves when
   * another leads or the time is up.
   */
  handOver(): Promise<void> {
    return this.#cluster.leadership.handOver();
  }

  /** Ends the member in order: everything applied is on disk when it resolves. */
  async stop(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#refuseAll();
    await this.#close({ flush: true });
  }

  /** Ends what clients wait for, and refuses what they ask from now on. */
  #refuseAll(): void {
    this.#proposals.failAll(errorOf("Stopped"));
    this.#reads.failAll(errorOf("Stopped"));
    this.slices.close(errorOf("Stopped"));
  }

  #fatal(error: unknown): void {
    this.#end(error);
  }

  #end(error: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#loop.stop();
    this.#refuseAll();
    this.#close({ flush: error === undefined })
      .catch(() => {})
      .then(() => this.#deps.onEnd(error));
  }

  async #close(options: { flush: boolean }): Promise<void> {
    this.#loop.stop();
    this.#keeper.steppedDown();
    this.auth.close();
    this.#cluster.autoPromotion.stop();
    this.#cluster.versions.stop();
    this.#flushTimer?.cancel();
    this.corruption.stop();
    this.#slowDisk.stop();
    await this.#transport?.close();
    // What is closed below must be the store that is there in the end.
    await this.#exchange.over().catch(() => {});
    await Promise.all([this.watches.detach(), this.slices.drained()]);
    await this.space.stop();
    await this.#snapshots.close();
    try {
      if (options.flush) this.#loop.writeHardState();
      await this.store.close(options);
    } finally {
      await this.#wal.close();
    }
  }
}

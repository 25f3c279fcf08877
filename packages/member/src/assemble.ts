/**
 * The composition root: the parts of a member, built in the order of their dependencies. Each gets
 * its collaborators when it is made; what lies above is not known to what lies below. The one call
 * that goes up is a wake-up: the loop, which is made last, waits for the turns
 * (LoopTurns).
 *
 *     callers      store, turns, Raft, the queues of proposals and reads
 *     peers        what comes from other members: messages, snapshots; the transport
 *     state        watches, slices, users, leases, space: what holds on to the store
 *     cluster      configuration, leadership, versions, corruption
 *     loop         applying, the loop, and what looks at it
 */
import type { Logger } from "@quorate/host";
import { Raft } from "@quorate/raft";
import type { RequestLimits, StoreOptions } from "@quorate/store";
import type { PeerCall } from "@quorate/transport";
import { SnapshotFiles, type Wal } from "@quorate/wal";
import { APPLY_LIMITS, AppliedEntries, Applier } from "./apply/applier.ts";
import { Configuration, malformedReport } from "./apply/configuration.ts";
import { Flusher, LogMarks } from "./apply/persistence.ts";
import { SentSnapshots } from "./apply/sent-snapshots.ts";
import { SnapshotInstall } from "./apply/snapshot-install.ts";
import { SnapshotReceiver } from "./apply/snapshot-receiver.ts";
import { SnapshotSender } from "./apply/snapshot-sender.ts";
import { StoreExchange } from "./apply/store-exchange.ts";
import type { Bootstrapped } from "./bootstrap.ts";
import { MEMBER_BOUNDS } from "./bounds.ts";
import type { MemberConfig } from "./config/member-config.ts";
import { Corruption } from "./corruption/index.ts";
import type { MemberDeps, MemberTransport } from "./deps.ts";
import { AccessControl } from "./identity/access-control.ts";
import { LEASE_CHECKPOINT_INTERVAL_MS, LeaseKeeper } from "./lease/keeper.ts";
import { Leases } from "./lease/leases.ts";
import { Deliveries } from "./loop/deliveries.ts";
import { FirstElection } from "./loop/first-election.ts";
import { LeaderView } from "./loop/leader-view.ts";
import { Lifetime } from "./loop/lifetime.ts";
import { DEFAULT_LOG_MEMORY, type LogMemory, READ_RETRY_MS } from "./loop/limits.ts";
import { MemberLoop } from "./loop/loop.ts";
import { PeerMessages, PeerPort } from "./loop/peer-messages.ts";
import { Proposals, RequestIds, Timeouts } from "./loop/proposals.ts";
import { firstRound, Reads } from "./loop/reads.ts";
import { LoopTurns, Standstill, UnwrittenCommit } from "./loop/turns.ts";
import { FeatureSupport } from "./membership/features.ts";
import {
  AutoPromotion,
  Departure,
  Leadership,
  Reconfiguration,
  VersionMonitor,
} from "./membership/index.ts";
import { versionProblem } from "./membership/versions.ts";
import { saveTiming } from "./metric-sources.ts";
import type { MemberMetrics } from "./metrics/member-metrics.ts";
import { Publication } from "./publication.ts";
import { SLICE_LIMITS, Slices } from "./reads/slices.ts";
import { StoreRef } from "./reads/store-ref.ts";
import { othersHave, SlowDisk } from "./slow-disk.ts";
import { Space } from "./space/index.ts";
import { WatchHub } from "./watch/index.ts";

/** What a member is made from. */
export interface MemberInputs {
  readonly config: MemberConfig;
  readonly deps: MemberDeps;
  readonly metrics: MemberMetrics;
  readonly state: Bootstrapped;
}

/** The parts of a member that its owner uses, begins and ends. */
export interface MemberParts extends MemberInputs {
  readonly memberId: bigint;
  readonly clusterId: bigint;
  /** What requests may hold. */
  readonly limits: RequestLimits;
  /** The least time to live of a lease, in seconds. */
  readonly minLeaseTtlSeconds: number;
  /** Whether the log may hold roles of tokens, and notes of when users are made. */
  readonly tokenRoles: FeatureSupport;
  readonly userCreations: FeatureSupport;
  readonly store: StoreRef;
  readonly wal: Wal;
  readonly raft: Raft;
  readonly turns: LoopTurns;
  readonly lifetime: Lifetime;
  readonly leader: LeaderView;
  readonly requestIds: RequestIds;
  readonly deliveries: Deliveries;
  readonly proposals: Proposals;
  readonly reads: Reads;
  readonly slices: Slices;
  readonly watches: WatchHub;
  readonly auth: AccessControl;
  readonly keeper: LeaseKeeper;
  readonly leases: Leases;
  readonly exchange: StoreExchange;
  readonly flusher: Flusher;
  readonly space: Space;
  readonly transport: MemberTransport;
  readonly departure: Departure;
  readonly sent: SentSnapshots;
  readonly unwritten: UnwrittenCommit;
  readonly configuration: Configuration;
  readonly leadership: Leadership;
  readonly reconfiguration: Reconfiguration;
  readonly versions: VersionMonitor;
  readonly autoPromotion: AutoPromotion;
  readonly publication: Publication;
  readonly corruption: Corruption;
  readonly loop: MemberLoop;
  readonly slowDisk: SlowDisk;
  readonly firstElection: FirstElection;
}

/** Builds the parts of a member; nothing runs before Lifecycle.begin. */
export function assemble(inputs: MemberInputs): MemberParts {
  const { config, deps, metrics, state } = inputs;
  const { memberId, clusterId, wal } = state;
  const { clock, disk, keyspaces, faults } = deps;
  const logger = deps.logger.child("server");
  const limits: RequestLimits = { maxTxnOps: config.maxTxnOps, versionProblem };
  const logMemory = deps.logMemory ?? DEFAULT_LOG_MEMORY;
  const bounds = deps.bounds ?? MEMBER_BOUNDS;
  const call: PeerCall =
    deps.callPeer ?? (() => Promise.reject(new Error("this member cannot ask others")));
  /** How long a request may take (etcd: MemberConfig.ReqTimeout). */
  const timeoutMs = 5000 + 2 * config.electionTimeoutMs;
  const malformed = malformedReport(metrics.malformedEntries, logger);

  // --- Callers ---

  const store = new StoreRef(state.store);
  const files = new SnapshotFiles(disk, config.snapDir, saveTiming(metrics, clock));
  const turns = new LoopTurns(clock);
  const standstill = new Standstill(turns);
  const unwritten = new UnwrittenCommit(wal);
  const leader = new LeaderView(memberId, store);
  const requestIds = new RequestIds(memberId, clock.wallMs());
  const slices = new Slices(deps.sliceLimits ?? SLICE_LIMITS, {
    clock,
    answers: deps.answerLimits,
  });
  const deliveries = new Deliveries();
  const reads = new Reads(
    { maxWaiting: bounds.loop.maxWaitingReads, timeoutMs, retryMs: READ_RETRY_MS },
    { clock, turns, deliveries, firstRound: firstRound(deps.random) },
  );
  const raft = raftOf(inputs, logMemory);
  const proposals = new Proposals(
    {
      bounds: bounds.loop,
      maxQueuedBytes: logMemory.maxQueuedBytes,
      timeoutMs,
      successionMs: config.electionTimeoutMs,
      requestLimits: limits,
      maxRequestBytes: config.maxRequestBytes,
      areRevokesPreferred: config.featureGates.get("PriorityRequest") === true,
    },
    { clock, turns, raft, store, requestIds, deliveries },
  );
  const lifetime = new Lifetime({ turns, proposals, reads, slices });

  // --- Peers ---

  const departure = new Departure({
    memberId,
    dataDir: config.dataDir,
    electionTimeoutMs: config.electionTimeoutMs,
    clock,
    logger,
    lifetime,
  });
  const messages = new PeerMessages({
    memberId,
    limits,
    raft,
    turns,
    lifetime,
    departure,
    clock,
    logger,
    refused: metrics.peerMessagesRefused,
  });
  const snapshotLogger = deps.logger.child("server/snapshots");
  const receiver = new SnapshotReceiver({
    raft,
    messages,
    clock,
    disk,
    keyspaces,
    config,
    metrics,
    logger: snapshotLogger,
  });
  const sent = new SentSnapshots({ clock, raft, turns, lifetime });
  const port = new PeerPort({
    clusterId,
    config,
    logger,
    call,
    store,
    raft,
    turns,
    messages,
    receiver,
    sent,
    departure,
  });
  const transport = deps.makeTransport({
    memberId,
    clusterId,
    listener: port,
    metrics,
    questions: port,
  });
  const marks = new LogMarks(
    {
      snapshotCount: config.snapshotCount,
      catchUpEntries: config.snapshotCatchUpEntries,
      maxWalFiles: config.maxWalFiles,
      maxLogBytes: logMemory.maxLogBytes,
      maxCatchUpBytes: logMemory.maxCatchUpBytes,
      maxSnapshotFiles: bounds.loop.maxSnapshotFiles,
      byteMarkEveryBytes: bounds.loop.byteMarkEveryBytes,
    },
    {
      store,
      wal,
      files,
      raft,
      turns,
      unwritten,
      sent,
      receiver,
      lifetime,
      faults,
      logger: snapshotLogger,
    },
    state.snapshot.index,
  );
  const sender = new SnapshotSender({
    memberId,
    store,
    raft,
    transport,
    sent,
    marks,
    lifetime,
    logger: snapshotLogger,
  });

  // --- State ---

  const watches = new WatchHub(
    {
      progressNotifyIntervalMs: config.watchProgressNotifyIntervalMs,
      maxRequestBytes: config.maxRequestBytes,
      limits: deps.watchLimits,
    },
    {
      memberId,
      clusterId,
      clock,
      raft,
      lifetime,
      random: deps.random.fork("watch-progress"),
      events: metrics.watchEvents,
    },
  );
  const auth = new AccessControl({
    clock,
    store,
    raft,
    reads,
    slices,
    watches,
    secrets: deps.secrets,
    bcryptCost: config.bcryptCost,
    trustedProxies: config.trustedProxies,
    tokenTtlSeconds: config.authTokenTtlSeconds,
    clientCertAuth: config.clientTls?.clientCertAuth ?? false,
  });
  const exchange = new StoreExchange({
    disk,
    keyspaces,
    faults,
    store,
    lifetime,
    storeDir: config.storeDir,
    storeOptions: storeOptionsOf(config, deps),
  });
  const flusher = new Flusher(config.backendBatchIntervalMs, {
    clock,
    store,
    exchange,
    faults,
    turns,
    lifetime,
    duration: metrics.backendCommitDuration,
  });
  const space = new Space({
    memberId,
    config,
    store,
    leader,
    proposals,
    flusher,
    exchange,
    lifetime,
    clock,
    metrics,
    logger: deps.logger,
    observer: deps.observer,
  });
  const minLeaseTtlSeconds = minLeaseTtlSecondsOf(config);
  const isCheckpointing = config.featureGates.get("LeaseCheckpoint") === true;
  const keeper = new LeaseKeeper(
    {
      minTtlSeconds: minLeaseTtlSeconds,
      extendMs: config.electionTicks * config.heartbeatIntervalMs,
      confirmedForMs: config.heartbeatIntervalMs,
      checkpointIntervalMs: isCheckpointing ? LEASE_CHECKPOINT_INTERVAL_MS : undefined,
      bounds: bounds.lease,
    },
    {
      clock: deps.leaseClock ?? clock,
      store,
      reads,
      proposals,
      logger: deps.logger.child("lease"),
      counters: { renewed: metrics.leasesRenewed, expired: metrics.leasesExpired },
      beforeRevoke: deps.beforeRevoke,
    },
  );
  const { authority } = auth;
  const leases = new Leases({
    clock,
    call,
    timeoutMs,
    store,
    leader,
    reads,
    keeper,
    slices,
    authority,
    bounds: bounds.lease,
  });

  // --- Cluster ---

  const configuration = new Configuration({
    memberId,
    clusterId,
    clock,
    logger,
    store,
    raft,
    turns,
    lifetime,
    leader,
    proposals,
    transport,
    departure,
    malformed,
    maxLearners: config.maxLearners,
    remotes: state.remotes,
    disconnectDelayMs: config.electionTimeoutMs,
  });
  const leadership = new Leadership({
    memberId,
    clock,
    logger,
    store,
    raft,
    turns,
    lifetime,
    leader,
    electionTimeoutMs: config.electionTimeoutMs,
  });
  const reconfiguration = new Reconfiguration({
    memberId,
    clock,
    logger,
    metrics,
    call,
    timeoutMs,
    store,
    raft,
    turns,
    lifetime,
    leader,
    proposals,
    reads,
    strict: config.strictReconfigCheck,
    transport,
    requestIds,
    leadership,
  });
  const versions = new VersionMonitor({
    memberId,
    clock,
    logger,
    call,
    store,
    lifetime,
    leader,
    proposals,
  });
  const autoPromotion = new AutoPromotion({
    memberId,
    clock,
    logger,
    store,
    raft,
    reconfiguration,
  });
  const publication = new Publication({
    memberId,
    clusterId,
    config,
    clock,
    logger,
    metrics,
    store,
    lifetime,
    proposals,
  });
  const corruption = new Corruption({
    memberId,
    clusterId,
    config,
    clock,
    logger,
    call,
    store,
    raft,
    lifetime,
    leader,
    proposals,
    reads,
    exchange,
    standstill,
    configuration,
    receiver,
    marks,
    sender,
    leadership,
    watches,
  });

  // --- The loop ---

  const applier = new Applier({
    clock,
    faults,
    store,
    proposals,
    standstill,
    configuration,
    space,
    marks,
    flusher,
    limits: deps.applyLimits ?? APPLY_LIMITS,
    applied: new AppliedEntries({
      metrics,
      logger,
      malformed,
      proposals,
      space,
      publication,
      corruption,
      store,
      observer: deps.observer,
      warningMs: config.warningApplyDurationMs,
    }),
  });
  const snapshotInstall = new SnapshotInstall({
    files,
    wal,
    marks,
    exchange,
    configuration,
    publication,
    raft,
    lifetime,
    metrics,
    logger,
    faults,
  });
  const loop = new MemberLoop({
    clock,
    logger,
    metrics,
    raft,
    turns,
    lifetime,
    leader,
    proposals,
    reads,
    wal,
    unwritten,
    transport,
    applier,
    standstill,
    snapshotInstall,
    sender,
    keeper,
    versions,
    faults,
    observer: deps.observer,
    tickMs: config.heartbeatIntervalMs,
    bounds: bounds.loop,
    timeouts: new Timeouts({ metrics, config, leader, store, transport }),
  });
  const slowDisk = new SlowDisk(config.slowFsyncHandoverMs, {
    clock,
    logger,
    metrics,
    leader,
    leadership,
    syncingSinceMs: () => wal.syncingSinceMs,
    othersAreDone: () => othersHave(raft.status(), loop.unsyncedIndex),
  });
  const firstElection = new FirstElection(config.electionTicks, {
    clock,
    logger,
    transport,
    raft,
    turns,
  });

  const asking = { memberId, clock, call, store };
  return {
    ...inputs,
    memberId,
    clusterId,
    limits,
    minLeaseTtlSeconds,
    tokenRoles: new FeatureSupport("token-roles", asking),
    userCreations: new FeatureSupport("user-creations", asking),
    store,
    wal,
    raft,
    turns,
    lifetime,
    leader,
    requestIds,
    deliveries,
    proposals,
    reads,
    slices,
    watches,
    auth,
    keeper,
    leases,
    exchange,
    flusher,
    space,
    transport,
    departure,
    sent,
    unwritten,
    configuration,
    leadership,
    reconfiguration,
    versions,
    autoPromotion,
    publication,
    corruption,
    loop,
    slowDisk,
    firstElection,
  };
}

/** 1.5 election timeouts, rounded up. */
function minLeaseTtlSecondsOf({ electionTicks, heartbeatIntervalMs }: MemberConfig): number {
  return Math.ceil((Math.floor((3 * electionTicks) / 2) * heartbeatIntervalMs) / 1000);
}

/** What a member's store is opened with, at each of its starts and after a snapshot. */
export function storeOptionsOf(config: MemberConfig, deps: MemberDeps): StoreOptions {
  return {
    disk: deps.disk,
    sha256: deps.sha256,
    stepKeys: deps.applyLimits?.stepKeys,
    batchOps: config.backendBatchLimit,
    minLeaseTtlSeconds: minLeaseTtlSecondsOf(config),
    bounds: deps.bounds?.store,
    followsEtcd: deps.followsEtcd,
  };
}

function raftOf({ config, deps, state }: MemberInputs, logMemory: LogMemory): Raft {
  const raftLogger = deps.logger.child("raft");
  const elections = deps.random.fork("elections");
  const { index: applied, confState } = state.store.position;
  const raft = new Raft(
    {
      id: state.memberId,
      electionTicks: config.electionTicks,
      heartbeatTicks: 1,
      randomBelow: (bound) => elections.below(bound),
      preVote: config.preVote,
      checkQuorum: true,
      readOnly: "quorum",
      ...(deps.bounds ?? MEMBER_BOUNDS).raft,
      maxUncommittedBytes: logMemory.maxUncommittedBytes,
      logger: (level, message, fields) =>
        raftLogger[level](message, fields as Parameters<Logger["info"]>[1]),
    },
    {
      hardState: state.hardState,
      snapshot: state.snapshot,
      entries: state.entries,
      applied,
      confState,
    },
  );
  deps.onRaft?.(raft);
  return raft;
}

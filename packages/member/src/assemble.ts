/**
 * The composition root: the parts of a member, built in the order of their dependencies. No part is
 * used before it exists; where two parts need each other, the later one is handed to the earlier
 * one at the start (the transport and the loop take their listeners then).
 *
 *     foundation   store, lifetime, leader, transport
 *     consensus    Raft, the queues in front of it, the loop, requests
 *     state        watches, slices, exchange, space, leases: what holds on to the store
 *     cluster      membership, configuration, snapshots, publication
 *     entry        corruption, readiness, the ways in
 */
import type { Logger } from "@quorate/host";
import { AlarmRequest, errorOf } from "@quorate/proto";
import { Raft } from "@quorate/raft";
import type { AppliedEntry } from "@quorate/store";
import type { PeerCall } from "@quorate/transport";
import { SnapshotFiles } from "@quorate/wal";
import { Configuration } from "./apply/configuration.ts";
import { Flusher } from "./apply/flusher.ts";
import { Readiness } from "./apply/readiness.ts";
import { SnapshotInstall } from "./apply/snapshot-install.ts";
import { Snapshots } from "./apply/snapshots.ts";
import { StoreExchange } from "./apply/store-exchange.ts";
import type { Bootstrapped } from "./bootstrap.ts";
import type { MemberConfig } from "./config/member-config.ts";
import { Corruption } from "./corruption/index.ts";
import type { MemberDeps } from "./deps.ts";
import { EntryPoints } from "./entry-points.ts";
import { AccessControl } from "./identity/access-control.ts";
import { LEASE_CHECKPOINT_INTERVAL_MS, LeaseKeeper } from "./lease/keeper.ts";
import { Leases } from "./lease/leases.ts";
import { electionRandom } from "./loop/election-random.ts";
import { noFaults } from "./loop/fault-points.ts";
import { FirstElection } from "./loop/first-election.ts";
import { LeaderView } from "./loop/leader-view.ts";
import { Lifetime } from "./loop/lifetime.ts";
import {
  DEFAULT_LOG_MEMORY,
  MAX_SNAPSHOT_FILES,
  MAX_WAITING_PROPOSALS,
  MAX_WAITING_READS,
  RAFT_LIMITS,
  READ_RETRY_MS,
} from "./loop/limits.ts";
import { MemberLoop } from "./loop/loop.ts";
import { malformedReport } from "./loop/malformed-report.ts";
import { PeerMessages } from "./loop/peer-messages.ts";
import { PeerPort } from "./loop/peer-port.ts";
import { Proposals } from "./loop/proposals.ts";
import { RaftRequests } from "./loop/raft-requests.ts";
import { firstRound, Reads } from "./loop/reads.ts";
import { RequestIds } from "./loop/request-ids.ts";
import { timeoutReason } from "./loop/timeout-reason.ts";
import { WakeSignal } from "./loop/wake-signal.ts";
import { FeatureSupport } from "./membership/features.ts";
import { clusterKeeping } from "./membership/index.ts";
import { versionProblem } from "./membership/versions.ts";
import { countPromotion, saveTiming } from "./metric-sources.ts";
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

/** All parts of a member. */
export type MemberParts = ReturnType<typeof assemble>;

/** Builds the parts of a member; nothing runs before Lifecycle.begin. */
export function assemble(inputs: MemberInputs) {
  const base = foundation(inputs);
  const core = { ...base, ...consensus(base) };
  const stateful = { ...core, ...stateParts(core) };
  const clustered = { ...stateful, ...clusterParts(stateful) };
  return { ...clustered, ...entryParts(clustered) };
}

type Base = ReturnType<typeof foundation>;
type Core = Base & ReturnType<typeof consensus>;
type Stateful = Core & ReturnType<typeof stateParts>;
type Clustered = Stateful & ReturnType<typeof clusterParts>;

function foundation(inputs: MemberInputs) {
  const { config, deps, metrics, state } = inputs;
  const ids = { memberId: state.memberId, clusterId: state.clusterId };
  const port = new PeerPort();
  const call: PeerCall =
    deps.callPeer ?? (() => Promise.reject(new Error("this member cannot ask others")));
  const logger = deps.logger.child("server");
  return {
    ...inputs,
    ids,
    call,
    logger,
    port,
    clock: deps.clock,
    faults: deps.faults ?? noFaults,
    /** How long a request may take (etcd: MemberConfig.ReqTimeout). */
    timeoutMs: 5000 + 2 * config.electionTimeoutMs,
    requestLimits: { maxTxnOps: config.maxTxnOps, versionProblem },
    logMemory: deps.logMemory ?? DEFAULT_LOG_MEMORY,
    lifetime: new Lifetime(),
    signal: new WakeSignal(),
    leader: new LeaderView(ids.memberId),
    store: new StoreRef(state.store),
    wal: state.wal,
    files: new SnapshotFiles(deps.disk, config.snapDir, saveTiming(metrics, deps.clock)),
    transport: deps.makeTransport({ ...ids, listener: port, metrics, questions: port }),
    malformed: malformedReport(metrics.malformedEntries, logger),
  };
}

function consensus(base: Base) {
  const { config, deps, metrics, ids, clock, logger, timeoutMs, requestLimits: limits } = base;
  const { store, leader, signal, transport, lifetime, state, logMemory } = base;
  const requestIds = new RequestIds(ids.memberId, clock.wallMs());
  const proposals = new Proposals<AppliedEntry>(
    {
      maxWaiting: MAX_WAITING_PROPOSALS,
      maxQueuedBytes: logMemory.maxQueuedBytes,
      timeoutMs,
      successionMs: config.electionTimeoutMs,
    },
    {
      clock,
      wake: signal.wake,
      timeoutReason: (startedMs, isSucceeded) => {
        metrics.proposalsFailed.add();
        if (isSucceeded) return errorOf("TimeoutDueToLeaderFail");
        return errorOf(timeoutReason(startedMs, leader, config, store.current, transport.peers()));
      },
    },
  );
  const reads = new Reads(
    { maxWaiting: MAX_WAITING_READS, timeoutMs, retryMs: READ_RETRY_MS },
    { clock, wake: signal.wake, firstRound: firstRound(deps.random) },
  );
  const raft = raftOf(base);
  const loop = new MemberLoop<AppliedEntry>(
    {
      raft,
      wal: base.wal,
      transport,
      proposals,
      reads,
      leader,
      clock,
      logger,
      metrics,
      faults: base.faults,
      fatal: lifetime.end,
    },
    { tickMs: config.heartbeatIntervalMs, appliedIndex: state.store.position.index },
  );
  signal.listen(() => loop.wake());
  const requests = new RaftRequests(
    {
      limits,
      maxRequestBytes: config.maxRequestBytes,
      areRevokesPreferred: config.featureGates.get("PriorityRequest") === true,
    },
    { raft, loop, proposals, requestIds, lifetime },
  );
  const peerMessages = new PeerMessages({
    limits,
    clock,
    logger,
    memberId: ids.memberId,
    refused: metrics.peerMessagesRefused,
  });
  return { requestIds, proposals, reads, raft, loop, requests, peerMessages };
}

function raftOf({ config, deps, ids, state, logMemory }: Base): Raft {
  const raftLogger = deps.logger.child("raft");
  const { index: applied, confState } = state.store.position;
  const raft = new Raft(
    {
      id: ids.memberId,
      electionTicks: config.electionTicks,
      heartbeatTicks: 1,
      randomBelow: electionRandom(deps.random),
      preVote: config.preVote,
      checkQuorum: true,
      readOnly: "quorum",
      ...RAFT_LIMITS,
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

function stateParts(core: Core) {
  const { config, deps, metrics, ids, clock, faults, store, lifetime, raft, leader } = core;
  const { requests, reads, signal } = core;
  const watches = new WatchHub(
    {
      progressNotifyIntervalMs: config.watchProgressNotifyIntervalMs,
      maxRequestBytes: config.maxRequestBytes,
      limits: deps.watchLimits,
    },
    {
      clock,
      random: deps.random.fork("watch-progress"),
      header: (revision) => ({ ...ids, revision, raftTerm: raft.term }),
      events: metrics.watchEvents,
      fatal: lifetime.end,
    },
  );
  const slices = new Slices(deps.sliceLimits ?? SLICE_LIMITS, {
    clock,
    answers: deps.answerLimits,
  });
  const auth = new AccessControl({
    clock,
    secrets: deps.secrets,
    bcryptCost: config.bcryptCost,
    trustedProxies: config.trustedProxies,
    tokenTtlSeconds: config.authTokenTtlSeconds,
    clientCertAuth: config.clientTls?.clientCertAuth ?? false,
    store: () => store.current,
    appliedIndex: () => core.loop.appliedIndex,
    linearizable: () => reads.wait(),
    run: async (caller, steps) => slices.run(caller, steps),
    recheckWatches: () => watches.recheck(),
  });
  requests.authority = auth.authority;
  const exchange = new StoreExchange({
    disk: deps.disk,
    keyspaces: deps.keyspaces,
    storeDir: config.storeDir,
    faults,
    store,
    stepKeys: deps.applyLimits?.stepKeys,
    batchOps: config.backendBatchLimit,
    sha256: deps.sha256,
    fatal: lifetime.end,
  });
  const flusher = new Flusher(config.backendBatchIntervalMs, {
    clock,
    store,
    exchange,
    faults,
    wake: signal.wake,
    fatal: lifetime.end,
    duration: metrics.backendCommitDuration,
  });
  const space = new Space({
    memberId: ids.memberId,
    config,
    store,
    clock,
    logger: deps.logger,
    metrics,
    isLeader: () => leader.isLeader,
    propose: (kind, request) => requests.propose(kind, request),
    flush: () => flusher.flush(),
    readable: () => exchange.over(),
    fatal: lifetime.end,
  });
  const minLeaseTtlSeconds = Math.ceil(
    (Math.floor((3 * config.electionTicks) / 2) * config.heartbeatIntervalMs) / 1000,
  );
  const keeper = new LeaseKeeper(
    {
      minTtlSeconds: minLeaseTtlSeconds,
      extendMs: config.electionTicks * config.heartbeatIntervalMs,
      confirmedForMs: config.heartbeatIntervalMs,
      checkpointIntervalMs:
        config.featureGates.get("LeaseCheckpoint") === true
          ? LEASE_CHECKPOINT_INTERVAL_MS
          : undefined,
    },
    {
      clock,
      logger: deps.logger.child("lease"),
      counters: { renewed: metrics.leasesRenewed, expired: metrics.leasesExpired },
      lessor: () => store.current.lessor,
      confirm: () => reads.wait(),
      propose: (term, kind, bodies) => requests.proposeInTerm(term, kind, bodies),
      beforeRevoke: (id) => deps.beforeRevoke?.(store.current, id),
    },
  );
  return { watches, slices, auth, exchange, flusher, space, minLeaseTtlSeconds, keeper };
}

function clusterParts(core: Stateful) {
  const { config, deps, metrics, ids, clock, logger, call, timeoutMs, faults, state } = core;
  const { store, lifetime, raft, loop, leader, transport, requests, proposals, reads } = core;
  const common = { ...ids, config, clock, logger, metrics, store };
  const stopServing = () => {
    proposals.failAll(errorOf("Stopped"));
    reads.failAll(errorOf("Stopped"));
    core.slices.close(errorOf("Stopped"));
  };
  const cluster = clusterKeeping({
    ...common,
    timeoutMs,
    call,
    stopServing,
    end: lifetime.end,
    peers: () => transport.peers(),
    leader: () => leader.leader,
    isLearner: () => raft.confState.learners.includes(ids.memberId),
    status: () => raft.status(),
    nextRequestId: () => core.requestIds.next(),
    proposeChange: (change) =>
      lifetime.hasEnded
        ? "not-a-member"
        : loop.withRaft((machine) => machine.proposeConfChange(change)),
    propose: (kind, request) => requests.propose(kind, request),
    wait: (requestId) => proposals.wait(requestId),
    linearizable: () => reads.wait(),
    promoted: (error) => countPromotion(metrics, error),
    transfer: (to) => loop.withRaft((machine) => machine.transferLeadership(to)),
    hasEnded: () => lifetime.hasEnded,
  });
  const snapshots = new Snapshots(
    {
      snapshotCount: config.snapshotCount,
      catchUpEntries: config.snapshotCatchUpEntries,
      maxWalFiles: config.maxWalFiles,
      ...core.logMemory,
      maxSnapshotFiles: MAX_SNAPSHOT_FILES,
    },
    {
      memberId: ids.memberId,
      config,
      clock,
      store,
      wal: core.wal,
      files: core.files,
      transport,
      loop,
      disk: deps.disk,
      keyspaces: deps.keyspaces,
      faults,
      logger: deps.logger.child("server/snapshots"),
      received: (durationMs) => metrics.snapshotStoreDuration.observe(durationMs / 1000),
      fatal: lifetime.end,
    },
    state.snapshot.index,
  );
  const configuration = new Configuration({
    ...common,
    raft,
    transport,
    maxLearners: config.maxLearners,
    remotes: state.remotes,
    disconnectDelayMs: config.electionTimeoutMs,
    settled: (result) => proposals.settle(result.requestId, result),
    removed: (index, voters) => cluster.departure.applied({ index, voters }),
    malformed: core.malformed,
  });
  const publication = new Publication({
    ...common,
    hasEnded: () => lifetime.hasEnded,
    propose: (kind, request) => requests.propose(kind, request),
  });
  const snapshotInstall = new SnapshotInstall({
    files: core.files,
    wal: core.wal,
    snapshots,
    exchange: core.exchange,
    configuration,
    publication,
    loop,
    lifetime,
    metrics,
    logger,
    faults,
  });
  return { stopServing, cluster, snapshots, configuration, publication, snapshotInstall };
}

function entryParts(core: Clustered) {
  const { config, metrics, ids, clock, logger, call, timeoutMs, store, lifetime } = core;
  const { raft, loop, leader, requests, reads, exchange, snapshots, watches, cluster } = core;
  const handOver = () => cluster.leadership.handOver();
  const corruption = new Corruption({
    host: {
      ...ids,
      config,
      clock,
      store,
      watches,
      leader,
      loop,
      handOver,
      readable: () => exchange.over(),
      linearizable: () => reads.wait(),
    },
    call,
    logger,
    snapshots,
    propose: (request) => requests.propose("alarm", AlarmRequest.encode(request)),
    hasEnded: () => lifetime.hasEnded,
    entriesAfter: (index) => raft.appliedFrom(index + 1),
    standStill: (task) => loop.standStill(task),
    exchange: (index, replay) => exchange.run(index, replay),
    replayConfChange: (replayed, entry) => core.configuration.replay(replayed, entry),
  });
  const readiness = new Readiness(exchange, corruption);
  const asking = { memberId: ids.memberId, clock, call, store: () => store.current };
  const entry = new EntryPoints(core.requestLimits, {
    requests,
    reads,
    store,
    readiness,
    watches,
    quota: core.space.keeper,
    authority: core.auth.authority,
    tokenRoles: new FeatureSupport("token-roles", asking),
    userCreations: new FeatureSupport("user-creations", asking),
  });
  const leases = new Leases({
    clock,
    keeper: core.keeper,
    call,
    timeoutMs,
    store,
    slices: core.slices,
    isLeader: () => leader.isLeader,
    leaderUrls: () =>
      leader.isLeader ? undefined : store.current.membership.member(leader.leader)?.peerUrls,
    linearizable: () => reads.wait(),
  });
  const slowDisk = new SlowDisk(config.slowFsyncHandoverMs, {
    clock,
    logger,
    metrics,
    handOver,
    syncingSinceMs: () => core.wal.syncingSinceMs,
    othersAreDone: () => othersHave(raft.status(), loop.unsyncedIndex),
    isLeader: () => leader.isLeader,
  });
  const firstElection = new FirstElection(config.electionTicks, {
    clock,
    logger,
    activePeers: () =>
      core.transport.peers().filter((peer) => peer.activeSinceMs !== undefined).length,
    advanceElection: (ticks) => loop.withRaft((it) => it.advanceElection(ticks)),
  });
  return { corruption, readiness, entry, leases, slowDisk, firstElection };
}

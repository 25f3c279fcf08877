/** What runs of a theme are like, beside what their seeds draw. */
import type { FaultKind } from "./fault-kinds.ts";

/**
 * Mixed: all kinds by chance. Snapshots: members fall far behind, and crash while they are helped
 * up. Leases: long ones, outliving their leaders, in runs of a quarter of an hour. Handovers: short
 * leases, renewed at leaders that do not know yet that they lead no more. Raft: the log alone, in a
 * hurry: elections, changes of the membership and transfers, without watches and leases. Slow: five
 * minutes between distant sites, where cuts, pauses and syncs last longer than what members wait for.
 */
export const THEMES = ["mixed", "snapshots", "leases", "handovers", "raft", "slow"] as const;
export type Theme = (typeof THEMES)[number];

/** Of runs about snapshots: how often each fault is chosen, against the others. */
const SNAPSHOT_FAULTS: Partial<Record<FaultKind, number>> = {
  crashInstall: 8,
  isolate: 3,
  pause: 2,
  powerLoss: 2,
  kill: 1,
  allPowerLoss: 1,
  crashAtDisk: 2,
  moveLeader: 1,
  deaf: 1,
};

/**
 * Runs in which what is left of leases is noted in the log, every five minutes, and new leaders go
 * by it. Heartbeats are most of what happens in a quarter of an hour: they are as rare as between
 * distant sites.
 */
export const LEASE_RUNS = {
  clients: 1,
  thinkMs: 3000,
  faultPhaseMs: 900_000,
  heartbeatMs: 1000,
  electionMs: 10_000,
  faultEveryMs: 150_000,
  leaseClients: 6,
  leaseTtlSeconds: 310,
  clientTimeoutMs: 10_000,
  watchers: 1,
  progressNotifyMs: 100_000,
  batchIntervalMs: 1000,
  operatorEveryMs: 0,
  membershipEveryMs: 0,
};

const LEASE_FAULTS: Partial<Record<FaultKind, number>> = {
  moveLeader: 3,
  kill: 3,
  powerLoss: 2,
  pause: 2,
  isolate: 1,
  allPowerLoss: 1,
};

/**
 * What goes on at intervals goes on so much less often in a quarter of an hour: some hundred times
 * are enough for a run.
 */
export const LEASE_RUN_PACE = 20;

/** Leaders change all the time, and an old one hears of it late. */
export const HANDOVER_RUNS = {
  members: 3,
  clients: 1,
  thinkMs: 500,
  faultPhaseMs: 60_000,
  heartbeatMs: 100,
  electionMs: 1000,
  // A lease that is to end early must not be extended by yet another leader.
  faultEveryMs: 4000,
  leaseClients: 16,
  leaseTtlSeconds: 2,
  clientTimeoutMs: 2000,
  clientBreaks: 0,
  watchers: 0,
  drift: 0,
  turnMs: 0,
  slowSyncChance: 0,
  batchIntervalMs: 1000,
  operatorEveryMs: 0,
  membershipEveryMs: 0,
  quotaBytes: 0,
};

const HANDOVER_FAULTS: Partial<Record<FaultKind, number>> = {
  slowHandover: 8,
  moveLeader: 2,
  deaf: 1,
  oneWay: 1,
  pause: 1,
  kill: 1,
};

/**
 * Elections every few hundred milliseconds, logs that differ in their ends, configurations that are
 * committed late or never.
 */
export const RAFT_RUNS = {
  members: 5,
  clients: 3,
  thinkMs: 20,
  valueBytes: 0,
  faultPhaseMs: 3000,
  heartbeatMs: 10,
  electionMs: 50,
  faultEveryMs: 60,
  maxDownMs: 400,
  leaseClients: 0,
  leasedShare: 0,
  watchers: 0,
  quotaBytes: 0,
  operatorEveryMs: 0,
  membershipEveryMs: 60,
  churnEveryMs: 20,
  moves: false,
  replaceEveryMs: 0,
  strictReconfiguration: false,
  maxMembers: 7,
  slowSyncMs: 100,
  backendWriteMs: 2,
};

const RAFT_FAULTS: Partial<Record<FaultKind, number>> = {
  powerLoss: 3,
  kill: 2,
  crashAtPoint: 3,
  pause: 2,
  isolate: 4,
  split: 3,
  oneWay: 3,
  deaf: 2,
  mute: 2,
  slowLink: 2,
  stallLink: 2,
  stallAll: 1,
  moveLeader: 6,
  allPowerLoss: 1,
};

/**
 * An election timeout is 10 s, so a cut lasts up to 200 s: beyond almost all that members wait for
 * (docs/internals/timers.md).
 */
export const SLOW_RUNS = {
  members: 3,
  clients: 2,
  thinkMs: 2000,
  valueBytes: 600,
  faultPhaseMs: 300_000,
  heartbeatMs: 1000,
  electionMs: 10_000,
  faultEveryMs: 20_000,
  maxDownMs: 60_000,
  clientTimeoutMs: 10_000,
  watchers: 1,
  progressNotifyMs: 20_000,
  leaseClients: 2,
  leaseTtlSeconds: 60,
  batchIntervalMs: 1000,
  slowSyncMs: 15_000,
  operatorEveryMs: 20_000,
  membershipEveryMs: 40_000,
  replaceEveryMs: 0,
  maxMembers: 5,
};

const SLOW_FAULTS: Partial<Record<FaultKind, number>> = {
  isolate: 4,
  stallLink: 3,
  stallAll: 1,
  pause: 3,
  slowDisk: 3,
  oneWay: 2,
  deaf: 1,
  mute: 1,
  kill: 2,
  powerLoss: 1,
  crashInstall: 1,
  moveLeader: 1,
};

/** What the faults of a theme are, where its runs do not draw them. */
export const FAULTS_OF: Partial<Record<Theme, Partial<Record<FaultKind, number>>>> = {
  snapshots: SNAPSHOT_FAULTS,
  leases: LEASE_FAULTS,
  handovers: HANDOVER_FAULTS,
  raft: RAFT_FAULTS,
  slow: SLOW_FAULTS,
};

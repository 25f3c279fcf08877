/**
 * What a seed decides before its run starts. Runs are to differ in kind, not only in degree: many
 * things are off in many runs.
 */
import { SeededRandom } from "@quorate/host";
import { defined } from "@quorate/proto";
import { drawFaults, type FaultKind, LATER_DISK, weightsOf } from "./fault-kinds.ts";
import { drawLater, ETCD_RUNS } from "./later-options.ts";
import {
  FAULTS_OF,
  HANDOVER_RUNS,
  LEASE_RUN_PACE,
  LEASE_RUNS,
  RAFT_RUNS,
  SLOW_RUNS,
  type Theme,
} from "./themes.ts";

export interface SimOptions {
  readonly seed: number;
  readonly members: number;
  readonly clients: number;
  readonly keys: number;
  readonly valueBytes: number;
  readonly thinkMs: number;
  readonly faultPhaseMs: number;
  readonly heartbeatMs: number;
  readonly electionMs: number;
  readonly preVote: boolean;
  readonly snapshotCount: number;
  readonly catchUpEntries: number;
  readonly maxWals: number;
  readonly segmentBytes: number;
  readonly batchIntervalMs: number;
  readonly compactionBatch: number;
  /** Shares of what clients do. */
  readonly reads: number;
  readonly puts: number;
  readonly deletes: number;
  readonly txns: number;
  readonly compactions: number;
  readonly serializableShare: number;
  /**
   * Clients use all that requests can say: every comparison, transactions within transactions,
   * orders, limits, open ends, any bytes.
   */
  readonly wholeApi: boolean;
  readonly clientTimeoutMs: number;
  /**
   * The chance that the connection of a call breaks while it is on its way, or that of a stream
   * soon.
   */
  readonly clientBreaks: number;
  /** Calls of clients are bytes on connections of rpc, which are cut and changed. */
  readonly clientWires: boolean;
  /** Clients with watches, and with leases. */
  readonly watchers: number;
  readonly progressNotifyMs: number;
  readonly leaseClients: number;
  readonly leaseTtlSeconds: number;
  /** Share of the puts that name a lease, where there are some. */
  readonly leasedShare: number;
  // Network.
  readonly latencyMs: number;
  readonly jitterMs: number;
  readonly loss: number;
  readonly duplication: number;
  readonly reordering: number;
  /**
   * The chance that a byte of a write between members, or of a piece of a snapshot, changes on its
   * way.
   */
  readonly corruption: number;
  /** Whether the first member cannot be dialled, by anybody and for as long as the run lasts. */
  readonly oneWayDials: boolean;
  // Disks.
  readonly syncMs: number;
  readonly slowSyncChance: number;
  readonly slowSyncMs: number;
  readonly backendWriteMs: number;
  // Clocks.
  readonly drift: number;
  readonly turnMs: number;
  /**
   * Calls go through the rings of a front-end, whose wake-ups are late by up to so long, in any
   * order; 0: no front-ends.
   */
  readonly frontMs: number;
  /** Mean time between two faults of the world. */
  readonly faultEveryMs: number;
  /** The longest that a member which ended is left down. */
  readonly maxDownMs: number;
  /** How often each fault is chosen, against the others; 0 for never. */
  readonly faults: Readonly<Record<FaultKind, number>>;
  /** The space quota of a member; 0 for none that matters. */
  readonly quotaBytes: number;
  /** Mean time between two doings of the operator; 0: there is none. */
  readonly operatorEveryMs: number;
  /** Mean time between two changes of the membership; 0 for none. */
  readonly membershipEveryMs: number;
  /**
   * Mean time between two configuration changes that change nothing, through any member and with
   * others under way; 0 for none.
   */
  readonly churnEveryMs: number;
  readonly strictReconfiguration: boolean;
  /** Members that are added up to. */
  readonly maxMembers: number;
  /** What the faults of this run are about. */
  readonly theme: Theme;
  // Members that compare themselves. How often the leader asks; 0: never.
  readonly corruptCheckMs: number;
  /** How often it looks for compacted history to compare; 0: never. */
  readonly compactHashCheckMs: number;
  readonly initialCorruptCheck: boolean;
  readonly selfHeal: boolean;
  /** Mean time between two members whose stores are made to differ; 0: never. */
  readonly sabotageEveryMs: number;
  /** Whether a NOSPACE alarm ends by itself. */
  readonly quotaAutoDisarm: boolean;
  /** Whether members move to other addresses. */
  readonly moves: boolean;
  /** Mean time between two members that are replaced; 0: never. */
  readonly replaceEveryMs: number;
  readonly autoPromote: boolean;
  readonly maxLearners: number;
  /**
   * In the end of the faults all members but one are lost for good, and that is restarted as a
   * cluster of its own.
   */
  readonly losesMajority: boolean;
  /** Mean time between two snapshots that a client takes; 0: never. */
  readonly archiveEveryMs: number;
  /** Whether a cluster is restored from the last of them in the end. */
  readonly restores: boolean;
  /** Steps of one key each after which applying an entry pauses; 0: it does not pause. */
  readonly applySteps: number;
  /**
   * Reads of ranges pause after each key, and so many steps of them run in one turn; 0: as in a
   * real member, which is at once here.
   */
  readonly readSteps: number;
  /** Mean time between two malformed or heavy requests; 0: never. */
  readonly hostileEveryMs: number;
  /** Mean time between two malformed entries that a leader proposes unchecked; 0: never. */
  readonly poisonEveryMs: number;
  /**
   * How often each of the harsher faults of disks is chosen (LATER_DISK), against the others; 0:
   * never.
   */
  readonly harshDisks: number;
  /** Whether users and roles are enforced, and change while clients of all identities work. */
  readonly users: boolean;
  /** Mean time between two changes of users and roles. */
  readonly usersEveryMs: number;
  /** Whether tokens are signed, as JSON Web Tokens are, or the members' own. */
  readonly signedTokens: boolean;
  readonly tokenTtlSeconds: number;
  /** Mean time between two ranges that are read in parts; 0: never. */
  readonly streamEveryMs: number;
  /** --initial-election-tick-advance. */
  readonly electionAdvance: boolean;
  /** Proposals, the log in memory and watches may take little memory. */
  readonly smallBounds: boolean;
  /** Members do little at a time, and let little wait: batches, steps, messages in flight. */
  readonly smallSteps: boolean;
  /** A leader that hands over may hear nothing for longer than an election timeout. */
  readonly longDeafness: boolean;
  /**
   * Of the members that form the cluster, so many behave as etcd's do; 0: it is one of Quorate's
   * alone. No seed draws another number: those that need it say so.
   */
  readonly etcdMembers: number;
  /** Whether what reads the members' logs stops now and then. */
  readonly logStalls: boolean;
  /** The name of a planted bug. */
  readonly bug: string | undefined;
}

/** How options are to differ from those that a seed draws. */
export interface Changes {
  readonly set?: Partial<Omit<SimOptions, "seed" | "faults" | "bug">> | undefined;
  /** Faults that never strike. */
  readonly without?: readonly FaultKind[];
}

/** The options of a seed. */
export function optionsOf(seed: number, bug?: string, changes: Changes = {}): SimOptions {
  const drawn = draw(seed, bug, changes.set?.theme);
  const changed = { ...drawn, ...changes.set };
  const faults = { ...drawn.faults };
  for (const kind of LATER_DISK) faults[kind] = changed.harshDisks;
  for (const kind of changes.without ?? []) faults[kind] = 0;
  const { oneWayDials, etcdMembers } = changed;
  return {
    ...changed,
    ...sabotageOf(changed),
    ...(oneWayDials ? oneWayOf(changed) : {}),
    ...(etcdMembers > 0 ? ETCD_RUNS : {}),
    faults,
  };
}

/** Draws one of some choices. */
type One = <T>(...choices: T[]) => T;

/** @param forced the theme instead of the one that the seed draws */
function draw(seed: number, bug: string | undefined, forced: Theme | undefined): SimOptions {
  const random = new SeededRandom(BigInt(seed)).fork("options");
  const one: One = (...choices) => choices[random.below(choices.length)];
  const network = random.below(4) > 0;
  const disk = random.below(3) > 0;
  const crashes = random.below(5) > 0;
  const tempo = one(10, 30, 100, 100);
  const latencyMs = one(0.2, 1, 1, 5);
  const clients = one(1, 3, 5, 8, 16);
  const keys = one(1, 3, 6, 12);
  const valueBytes = one(0, 0, 20, 600, 3000);
  const common = [...new Array<Theme>(14).fill("mixed"), ...new Array<Theme>(5).fill("snapshots")];
  const theme = forced ?? rareTheme(seed) ?? one<Theme>(...common, "leases");
  const isSnapshots = theme === "snapshots";
  // The draws come in this order: another one makes other runs of all seeds.
  return themed({
    seed,
    theme,
    members: isSnapshots ? one(2, 3, 3, 3, 5) : one(1, 2, 3, 3, 3, 3, 3, 3, 3, 4, 5, 5, 5, 6, 7),
    clients,
    keys,
    valueBytes,
    // Few in a hurry or many at leisure: what is beyond some hundred operations a second only makes
    // runs long.
    thinkMs: Math.max(one(1, 20, 60, 200), clients * 3),
    faultPhaseMs: one(1000, 1000, 2000, 2000, 3000, 6000),
    heartbeatMs: tempo,
    electionMs: tempo * one(5, 10, 10),
    preVote: random.below(4) > 0,
    ...drawMembers(one, isSnapshots),
    ...drawRequests(one),
    latencyMs,
    ...drawMachines(one, { latencyMs, network, disk }),
    faultEveryMs: isSnapshots ? one(700, 1500) : one(150, 500, 1500, 4000),
    maxDownMs: 4000,
    faults:
      theme === "mixed"
        ? drawFaults(random, { network, disk, crashes })
        : weightsOf(defined(FAULTS_OF[theme], "the faults")),
    // Space for all keys and a few of their earlier values: it is used up now and then, and a
    // compaction always frees some.
    ...drawStreams(one, 20_000 + 3 * keys * (valueBytes + 300)),
    ...drawLater(seed, theme, network),
    bug,
  });
}

/** How members keep their logs and stores. */
function drawMembers(one: One, isSnapshots: boolean) {
  return {
    snapshotCount: isSnapshots ? one(3, 5, 10) : one(10, 10, 50, 10_000),
    catchUpEntries: isSnapshots ? 1 : one(1, 5, 20, 5000),
    maxWals: one(1, 1, 2, 5),
    segmentBytes: one(1024, 4096, 16_384, 64_000_000),
    batchIntervalMs: one(4, 20, 100, 1000),
    compactionBatch: one(2, 10, 1000),
  };
}

function drawRequests(one: One) {
  return {
    reads: one(1, 4, 10),
    puts: one(2, 4, 10),
    deletes: one(0, 1, 2),
    txns: one(0, 2, 6),
    compactions: one(0, 0, 0.1, 0.5),
    serializableShare: one(0, 0, 0.2, 0.5),
    clientTimeoutMs: one(300, 2000, 10_000),
  };
}

/** Network, disks and clocks. */
function drawMachines(
  one: One,
  { latencyMs, network, disk }: { latencyMs: number; network: boolean; disk: boolean },
) {
  return {
    jitterMs: one(0, latencyMs, 5 * latencyMs),
    loss: network ? one(0, 0, 0.01, 0.05, 0.2) : 0,
    duplication: network ? one(0, 0, 0.02, 0.2) : 0,
    reordering: network ? one(0, 0, 0.05, 0.3) : 0,
    syncMs: one(0, 0.2, 2, 10),
    slowSyncChance: disk ? one(0, 0, 0.02) : 0,
    slowSyncMs: one(100, 1000, 4000),
    backendWriteMs: one(0, 2, 20, 200),
    drift: one(0, 0, 0.001, 0.05),
    turnMs: one(0, 0, 0, 0.2, 2),
  };
}

/** Watches, leases, the quota and the membership. */
function drawStreams(one: One, tightBytes: number) {
  return {
    clientBreaks: one(0, 0, 0.01, 0.05),
    watchers: one(0, 1, 2, 4),
    progressNotifyMs: one(100, 500, 3000),
    leaseClients: one(0, 1, 2, 4),
    leaseTtlSeconds: one(1, 2, 3, 6),
    leasedShare: one(0, 0.1, 0.5),
    quotaBytes: one(0, 0, tightBytes),
    membershipEveryMs: one(0, 0, 0, 500, 2000),
    churnEveryMs: 0,
    strictReconfiguration: one(true, false, false),
    maxMembers: one(2, 3, 5, 7),
    operatorEveryMs: one(0, 300, 1000),
  };
}

/** What was drawn, as the run's theme changes it. */
function themed(drawn: SimOptions): SimOptions {
  const { theme, corruptCheckMs, compactHashCheckMs, archiveEveryMs } = drawn;
  const { hostileEveryMs, poisonEveryMs, sabotageEveryMs } = drawn;
  if (theme === "handovers") return { ...drawn, ...HANDOVER_RUNS };
  if (theme === "raft")
    return {
      ...drawn,
      ...RAFT_RUNS,
      archiveEveryMs: 0,
      corruptCheckMs: 0,
      compactHashCheckMs: 0,
      sabotageEveryMs: 0,
    };
  if (theme !== "leases" && theme !== "slow") return drawn;
  return {
    ...drawn,
    ...(theme === "leases" ? LEASE_RUNS : SLOW_RUNS),
    corruptCheckMs: LEASE_RUN_PACE * corruptCheckMs,
    compactHashCheckMs: LEASE_RUN_PACE * compactHashCheckMs,
    archiveEveryMs: LEASE_RUN_PACE * archiveEveryMs,
    hostileEveryMs: LEASE_RUN_PACE * hostileEveryMs,
    poisonEveryMs: LEASE_RUN_PACE * poisonEveryMs,
    sabotageEveryMs: LEASE_RUN_PACE * sabotageEveryMs,
  };
}

/**
 * Themes that came later, for seven seeds in twenty: from a stream of its own, so that the other
 * seeds draw what they drew before.
 */
function rareTheme(seed: number): Theme | undefined {
  const place = new SeededRandom(BigInt(seed)).fork("rare themes").below(20);
  return (["raft", "raft", "raft", "handovers", "handovers", "leases", "slow"] as const)[place];
}

/**
 * In runs in which stores are made to differ the leader looks for that, and the log reaches back
 * far enough for everybody: a snapshot of a leader whose store differs would make others like it.
 */
function sabotageOf({
  members,
  theme,
  corruptCheckMs,
  sabotageEveryMs,
}: SimOptions): Partial<SimOptions> {
  if (sabotageEveryMs === 0) return {};
  if (members < 3 || (theme !== "mixed" && theme !== "slow")) return { sabotageEveryMs: 0 };
  return {
    catchUpEntries: 5000,
    snapshotCount: 1_000_000,
    corruptCheckMs: corruptCheckMs === 0 ? (theme === "slow" ? 20_000 : 1000) : corruptCheckMs,
  };
}

/**
 * In runs with a member that no peer can dial, other members have to be there that can be dialled:
 * who joins asks them for the membership, and who compares stores asks each member. A learner
 * does not promote itself: it asks the leader, which may be the member that it cannot dial.
 */
function oneWayOf({ members, theme }: SimOptions): Partial<SimOptions> {
  if (members < 3 || (theme !== "mixed" && theme !== "snapshots")) return { oneWayDials: false };
  return { sabotageEveryMs: 0, autoPromote: false };
}

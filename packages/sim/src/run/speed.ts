/**
 * How much faster than real time a cluster is simulated: three members and eight clients, no faults
 * (they only make a cluster idle), the checkers at work, at several loads. What counts is processor
 * time of one thread, all of it: garbage collection and the judges too.
 */
import { FAULT_KINDS } from "../base/fault-kinds.ts";
import type { SimOptions } from "../base/options.ts";
import { runPool } from "./pool.ts";
import type { Order, Summary } from "./worker.ts";

/**
 * All that a seed decides, so that nothing of what is drawn some day comes into what is measured;
 * the compiler asks for what is new.
 */
const CALM: Omit<SimOptions, "seed" | "faults" | "bug" | "thinkMs" | "faultPhaseMs"> = {
  theme: "mixed",
  members: 3,
  clients: 8,
  keys: 12,
  valueBytes: 20,
  heartbeatMs: 100,
  electionMs: 1000,
  preVote: true,
  snapshotCount: 10_000,
  catchUpEntries: 5000,
  maxWals: 5,
  segmentBytes: 64_000_000,
  batchIntervalMs: 100,
  compactionBatch: 1000,
  reads: 4,
  puts: 4,
  deletes: 0,
  txns: 2,
  compactions: 0,
  serializableShare: 0,
  wholeApi: false,
  clientTimeoutMs: 10_000,
  clientBreaks: 0,
  watchers: 1,
  progressNotifyMs: 3000,
  leaseClients: 1,
  leaseTtlSeconds: 3,
  leasedShare: 0.1,
  quotaBytes: 0,
  quotaAutoDisarm: false,
  latencyMs: 1,
  jitterMs: 0,
  loss: 0,
  duplication: 0,
  reordering: 0,
  corruption: 0,
  drift: 0,
  turnMs: 0,
  frontMs: 0,
  faultEveryMs: 1000,
  maxDownMs: 4000,
  syncMs: 2,
  slowSyncChance: 0,
  slowSyncMs: 100,
  backendWriteMs: 2,
  membershipEveryMs: 0,
  churnEveryMs: 0,
  strictReconfiguration: true,
  maxMembers: 3,
  moves: false,
  replaceEveryMs: 0,
  autoPromote: false,
  oneWayDials: false,
  clientWires: false,
  maxLearners: 1,
  corruptCheckMs: 0,
  compactHashCheckMs: 0,
  initialCorruptCheck: false,
  selfHeal: false,
  sabotageEveryMs: 0,
  operatorEveryMs: 0,
  losesMajority: false,
  archiveEveryMs: 0,
  restores: false,
  applySteps: 0,
  readSteps: 0,
  hostileEveryMs: 0,
  poisonEveryMs: 0,
  harshDisks: 0,
  users: false,
  streamEveryMs: 0,
  electionAdvance: false,
  smallBounds: false,
  smallSteps: false,
  longDeafness: false,
  etcdMembers: 0,
  logStalls: false,
  usersEveryMs: 0,
  signedTokens: false,
  tokenTtlSeconds: 300,
};

/**
 * Mean pause of a client between two requests, in milliseconds, and for how long: so that each
 * makes some ten thousand operations.
 */
const LOADS: readonly { readonly thinkMs: number; readonly forMs: number }[] = [
  { thinkMs: 130, forMs: 240_000 },
  { thinkMs: 40, forMs: 90_000 },
  { thinkMs: 20, forMs: 60_000 },
  { thinkMs: 5, forMs: 30_000 },
];

/** Measures, and prints a table; the first run is for warming up and does not count. */
export async function measureSpeed(print: (line: string) => void): Promise<void> {
  const orderFor = (thinkMs: number, ms: number): Order => ({
    seed: 1,
    changes: { set: { ...CALM, thinkMs, faultPhaseMs: ms }, without: [...FAULT_KINDS] },
  });
  const orders = [
    orderFor(20, 20_000),
    ...LOADS.map(({ thinkMs, forMs }) => orderFor(thinkMs, forMs)),
  ];
  let isWarm = false;
  let start = process.cpuUsage();
  print(
    "operations a simulated second | simulated s | processor s | times real time | events | us an operation",
  );
  await runPool({
    workers: 1,
    next() {
      start = process.cpuUsage();
      return orders.shift();
    },
    done(summary) {
      const { user, system } = process.cpuUsage(start);
      if (summary.violation !== undefined) throw new Error(summary.violation);
      if (isWarm) print(row(summary, (user + system) / 1000));
      isWarm = true;
    },
  });
}

function row({ simulatedMs, answered, events }: Summary, cpuMs: number): string {
  const cells: [string | number, number][] = [
    [(answered / (simulatedMs / 1000)).toFixed(0), 29],
    [(simulatedMs / 1000).toFixed(1), 11],
    [(cpuMs / 1000).toFixed(2), 11],
    [(simulatedMs / cpuMs).toFixed(0), 15],
    [events, 6],
    [((1000 * cpuMs) / answered).toFixed(0), 15],
  ];
  return cells.map(([text, width]) => `${text}`.padStart(width)).join(" | ");
}

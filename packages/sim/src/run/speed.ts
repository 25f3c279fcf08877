/**
 * How much faster than real time a cluster is simulated: three members and eight clients, no faults (they only make a cluster idle), the
 * checkers at work, at several loads. What counts is processor time of one thread, all of it: garbage collection and the judges too.
 */
import { type Changes, FAULT_KINDS, optionsOf } from "../options.ts";
import type { RunResult } from "../world.ts";

const CALM: Changes["set"] = {
  ...{ members: 3, clients: 8, keys: 12, valueBytes: 20, heartbeatMs: 100, electionMs: 1000, preVote: true },
  ...{ snapshotCount: 10_000, catchUpEntries: 5000, maxWals: 5, segmentBytes: 64_000_000, batchIntervalMs: 100, compactionBatch: 1000 },
  ...{ reads: 4, puts: 4, deletes: 0, txns: 2, compactions: 0, serializableShare: 0, clientTimeoutMs: 10_000 },
  ...{ latencyMs: 1, jitterMs: 0, loss: 0, duplication: 0, reordering: 0, syncMs: 2, slowSyncChance: 0, backendWriteMs: 2 },
  ...{ drift: 0, turnMs: 0, clientBreaks: 0, watchers: 1, leaseClients: 1, leaseTtlSeconds: 3, leasedShare: 0.1 },
};

/** Mean pause of a client between two requests, in milliseconds. */
const THINK_MS = [130, 40, 20, 5];

/** Measures, and prints a table; the first run is for warming up and does not count. */
export async function measureSpeed(
  run: (options: ReturnType<typeof optionsOf>) => Promise<RunResult>,
  faultPhaseMs: number,
  print: (line: string) => void,
): Promise<void> {
  const optionsFor = (thinkMs: number, ms: number) =>
    optionsOf(1, undefined, { set: { ...CALM, thinkMs, faultPhaseMs: ms }, without: [...FAULT_KINDS] });
  await run(optionsFor(20, 10_000));
  print("operations a simulated second | simulated s | processor s | times real time | events | us an operation");
  for (const thinkMs of THINK_MS) {
    const start = process.cpuUsage();
    const result = await run(optionsFor(thinkMs, faultPhaseMs));
    const { user, system } = process.cpuUsage(start);
    if (result.violation !== undefined) throw new Error(result.violation);
    const cpuMs = (user + system) / 1000;
    const perSecond = result.answered / (result.simulatedMs / 1000);
    const speed = result.simulatedMs / cpuMs;
    const perOperation = (1000 * cpuMs) / result.answered;
    print(
      [
        perSecond.toFixed(0).padStart(29),
        (result.simulatedMs / 1000).toFixed(1).padStart(11),
        (cpuMs / 1000).toFixed(2).padStart(11),
        speed.toFixed(0).padStart(15),
        `${result.events}`.padStart(6),
        perOperation.toFixed(0).padStart(15),
      ].join(" | "),
    );
  }
}

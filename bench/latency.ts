/**
 * ./dev bench latency: how long a call takes at a rate that both programs sustain. Clusters of
 * ours and of etcd's in turn; calls are due at fixed times, whether the server is late or not.
 */

import {
  count,
  readArguments,
  refuse,
  switchOption,
  valueOption,
} from "../scripts/dev/command-line.ts";
import { TestClient } from "../test/support/client.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import type { Executable } from "../test/support/executables.ts";
import { Agents, agentEnv } from "./agents.ts";
import { leaderUrl } from "./calls.ts";
import { comparison, inTurn, programsOf } from "./comparison.ts";
import { callsNamed, type HeavyCall, type Scene, sceneOf } from "./hold/calls.ts";
import { distinctValues, putMany } from "./hold/fill.ts";
import { runCount } from "./load.ts";
import { type PacedResult, runPaced } from "./paced.ts";
import { align, median } from "./report.ts";
import { ground, preparation, type Row, rows } from "./rows.ts";
import { stories } from "./stories.ts";

const help = `./dev bench latency [OPTIONS]: latency at a fixed rate, ours and etcd's in turn`;

const { values: args } = readArguments(help, {
  ...comparison,
  rates: valueOption('calls a second, "2000,10000" by default', "2000,10000"),
  rows: valueOption(
    'loads of ./dev bench, by the beginning of their names, parted by ";"',
    "put random, 1000;get linearizable;mixed",
  ),
  size: valueOption("members, 1 by default; --tls encrypts", "1"),
  tls: switchOption(""),
  meanwhile: valueOption(
    'calls of ./dev bench hold, parted by ";": each load once beside each, made again and again',
    "",
  ),
  "warm-up": valueOption(
    "calls of each load at full speed before any is measured: members that have run for a while",
    "",
  ),
  trace: valueOption("tells what our members did during so many of the slowest calls", ""),
});

const WARM_UP_MS = 2000;
const countOrNone = (name: "warm-up" | "trace"): number =>
  args[name] === "" ? 0 : count(name, args[name]);
const warmUpCalls = countOrNone("warm-up");
const durationMs = count("seconds", args.seconds) * 1000;
const traced = countOrNone("trace");
const rates = args.rates.split(",").map((rate) => count("rates", rate));
const chosen = args.rows.split(";").map((name): Row => {
  const row = rows.find((one) => one.name.startsWith(name));
  return row ?? refuse(`--rows: no load begins with "${name}"`);
});

/** Calls that run beside a load; none at all is the first. */
const beside: readonly (HeavyCall | undefined)[] =
  args.meanwhile === ""
    ? [undefined]
    : args.meanwhile
        .split(";")
        .map((name) => callsNamed(name)[0] ?? refuse(`--meanwhile: no call is called "${name}"`));
/** So many keys are there for the calls beside. */
const KEYS_BESIDE = 100_000;
const VALUE_BYTES = 256;

interface Figure extends PacedResult {
  readonly program: string;
  readonly load: string;
  readonly rate: number;
}

/** Each load at each rate, on one cluster of a program. */
async function measure(program: Executable, figures: Figure[]): Promise<void> {
  const cluster = await startCluster({
    executable: program,
    size: count("size", args.size),
    tls: args.tls,
    env: traced > 0 ? agentEnv : {},
  });
  // etcd has no agent.
  const pids = cluster.members.map(({ pid }) => pid!);
  const agents = traced > 0 && program.name === "quorate" ? new Agents(pids) : undefined;
  try {
    await agents?.trace();
    const target = { urls: cluster.endpoints, identity: cluster.identity };
    const leader = await leaderUrl(cluster);
    const ready = ground(target, leader, 10_000, 256, 1);
    const { load, count: calls } = preparation(ready);
    await runCount(load, calls);
    if (args.meanwhile !== "") await fill(cluster, leader);
    if (warmUpCalls > 0) for (const row of chosen) await runCount(row.load(ready), warmUpCalls);
    const cases = chosen.flatMap((row) =>
      rates.flatMap((ratePerS) => beside.map((call) => ({ row, ratePerS, call }))),
    );
    for (const { row, ratePerS, call } of cases) {
      const timing = { ratePerS, warmUpMs: WARM_UP_MS, durationMs };
      const repeated = call === undefined ? undefined : new Repeated(call, cluster, leader);
      const result = await runPaced(row.load(ready), timing);
      const times = await repeated?.stop();
      const name = call === undefined ? row.name : `${row.name}, beside ${call.name}`;
      figures.push({ ...result, program: program.name, load: name, rate: ratePerS });
      const { p50Ms, p99Ms, p999Ms, longestMs, missed, failed } = result;
      const latencies = [p50Ms, p99Ms, p999Ms, longestMs].map((ms) => ms.toFixed(1)).join("/");
      console.error(
        `${program.name}, ${name}, ${ratePerS}/s: ${latencies} ms (p50/p99/p99.9/most), ` +
          `${missed} missed, ${failed} failed${times === undefined ? "" : `, ${times} calls beside`}`,
      );
      if (agents === undefined) continue;
      const told = stories(result.slowest, await agents.traced(), traced);
      console.error(told.map((line) => `  ${line}`).join("\n"));
    }
  } finally {
    agents?.close();
    await cluster.destroy();
  }
}

/** The keys that the calls beside a load read. */
async function fill(cluster: TestCluster, leader: string): Promise<void> {
  const client = new TestClient(new URL(leader).host, cluster.identity);
  try {
    await putMany(client, "k", { first: 0, total: KEYS_BESIDE }, distinctValues(VALUE_BYTES));
  } finally {
    client.close();
  }
}

/** A call that a client makes again and again until it is told to stop. */
class Repeated {
  readonly #client: TestClient;
  readonly #ended: Promise<number>;
  #isStopping = false;

  constructor(call: HeavyCall, cluster: TestCluster, leader: string) {
    const address = new URL(leader).host;
    this.#client = new TestClient(address, cluster.identity);
    this.#ended = this.#run(call, sceneOf(KEYS_BESIDE, address, cluster.identity));
    // Reported by stop().
    this.#ended.catch(() => {});
  }

  async #run(call: HeavyCall, scene: Scene): Promise<number> {
    let times = 0;
    for (; !this.#isStopping; times++) await call.run(this.#client, scene);
    return times;
  }

  /** Resolves with the number of calls that were made. */
  async stop(): Promise<number> {
    this.#isStopping = true;
    return this.#ended.finally(() => this.#client.close());
  }
}

const COLUMNS = ["p50Ms", "p99Ms", "p999Ms", "longestMs", "missed"] as const;

function table(figures: readonly Figure[]): string {
  const lines = [["load", "a second", "program", "p50 ms", "p99 ms", "p99.9 ms", "most", "missed"]];
  const groups = Map.groupBy(figures, ({ load, rate, program }) => `${load}\t${rate}\t${program}`);
  for (const name of [...groups.keys()].toSorted()) {
    const own = groups.get(name)!;
    const cells = COLUMNS.map((column) => median(own.map((one) => one[column])).toFixed(1));
    lines.push([...name.split("\t"), ...cells]);
  }
  return align(lines, [0, 2]);
}

const figures: Figure[] = [];
const programs = programsOf(args.only);
for (let round = 0; round < count("rounds", args.rounds); round++) {
  for (const program of inTurn(programs, round)) await measure(program, figures);
}
console.log(table(figures));

/**
 * ./dev bench pairs: two versions of this repository beside each other. One member of each runs;
 * the same loads go to the one and the other in turn, in short bursts, so that what else happens on
 * the machine meets both.
 *
 *     git worktree add /tmp/base COMMIT && (cd /tmp/base && npm ci)
 *     ./dev bench pairs --base /tmp/base --rows "put random;mixed"
 *     ./dev bench pairs --flags=--frontend-threads=2
 *
 * For each row the median over the pairs of bursts: calls a second and processor time a call, of
 * both, and the ratios of this version to the base. Processor time is what other programs disturb
 * least. "main us" is that of the members' main threads. "B" are the bytes that these allocate in
 * V8's heap for a call, "kept B" those that collections of young objects copy. The program ends
 * with code 1 where a row allocates a twentieth more than the base.
 */

import { join, resolve } from "node:path";
import {
  count,
  positive,
  readArguments,
  refuse,
  switchOption,
  valueOption,
} from "../scripts/dev/command-line.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import { Agents, agentEnv, type HeapUse } from "./agents.ts";
import { leaderUrl } from "./calls.ts";
import { runCount, runLoad } from "./load.ts";
import { align, median } from "./report.ts";
import { type Ground, ground, preparation, type Row, rows } from "./rows.ts";
import { cpuSeconds, mainThreadSeconds } from "./usage.ts";

const help = `./dev bench pairs --base DIR [OPTIONS]: this version beside the one in DIR`;

const { values: args } = readArguments(help, {
  base: valueOption(
    "a checkout of the other version, with its dependencies (default: this one)",
    "",
  ),
  "base-flags": valueOption("flags of the base's members, parted by blanks", ""),
  flags: valueOption("flags of this version's members", ""),
  rows: valueOption('only rows whose names hold one of these texts, parted by ";"', ""),
  pairs: valueOption("pairs of bursts for each row and start", "4"),
  starts: valueOption("members are started so many times: each is compiled differently", "3"),
  seconds: valueOption("of a burst", "1"),
  tls: switchOption("mutual TLS"),
  size: valueOption("members of each", "1"),
});
const OWN = join(import.meta.dirname, "..");
const flagsOf = (text: string) => text.split(" ").filter((flag) => flag !== "");
/** The versions, and the flags of their members. */
const versions = [
  { root: args.base === "" ? OWN : args.base, flags: flagsOf(args["base-flags"]) },
  { root: OWN, flags: flagsOf(args.flags) },
];
const pairs = count("pairs", args.pairs);
const starts = count("starts", args.starts);
const durationMs = 1000 * positive("seconds", args.seconds);
const size = count("size", args.size);
const wanted = args.rows.split(";").filter((text) => text !== "");
const chosen = rows.filter(
  ({ name }) => wanted.length === 0 || wanted.some((text) => name.includes(text)),
);
if (chosen.length === 0) refuse(`no row is called "${args.rows}"`);
/** The first burst of a row warms a member's compiler up; the later ones its connections. */
const FIRST_WARM_UP_MS = 2000;
const WARM_UP_MS = 200;
const KEYS = 10_000;
const VALUE_BYTES = 256;
/** A row that allocates so many times what the base does has become worse. */
const MOST_ALLOCATED = 1.05;

interface Side {
  readonly cluster: TestCluster;
  readonly ready: Ground;
  readonly pids: number[];
  readonly heaps: Agents;
}

/** Calls a second, and what a call takes of all members: microseconds and bytes. */
interface Burst {
  readonly ratePerS: number;
  readonly cpuUs: number;
  readonly mainUs: number;
  readonly allocatedBytes: number;
  readonly survivedBytes: number;
}

async function start({ root, flags }: (typeof versions)[number]): Promise<Side> {
  const command = [process.execPath, join(resolve(root), "bin/quorate.js")];
  const executable = { name: "quorate", command } as const;
  const cluster = await startCluster({ executable, size, tls: args.tls, flags, env: agentEnv });
  const target = { urls: cluster.endpoints, identity: cluster.identity };
  const ready = ground(target, await leaderUrl(cluster), KEYS, VALUE_BYTES, KEYS);
  const { load, count: total } = preparation(ready);
  await runCount(load, total);
  const pids = cluster.members.map((member) => member.pid!);
  return { cluster, ready, pids, heaps: new Agents(pids) };
}

async function burst({ ready, pids, heaps }: Side, row: Row, warmUpMs: number): Promise<Burst> {
  let cpuS = 0;
  let mainS = 0;
  let begun = Promise.resolve();
  let heap: Promise<HeapUse> | undefined;
  const result = await runLoad(row.load(ready), {
    warmUpMs,
    durationMs,
    onPhase: (phase) => {
      const sign = phase === "measure" ? -1 : 1;
      cpuS += sign * cpuSeconds(pids);
      mainS += sign * mainThreadSeconds(pids);
      if (phase === "end") heap = begun.then(() => heaps.end());
      else begun = heaps.begin();
    },
  });
  if (result.failed > 0) throw new Error(`${row.name}: ${result.failed} calls failed`);
  const { allocatedBytes, survivedBytes } = await heap!;
  return {
    ratePerS: (1000 * result.answered) / result.elapsedMs,
    cpuUs: (1e6 * cpuS) / result.answered,
    mainUs: (1e6 * mainS) / result.answered,
    allocatedBytes: allocatedBytes / result.answered,
    survivedBytes: survivedBytes / result.answered,
  };
}

/** The bursts of a pair. */
interface Pair {
  readonly base: Burst;
  readonly own: Burst;
}

async function measure(base: Side, own: Side, row: Row): Promise<Pair[]> {
  const found: Pair[] = [];
  for (let pair = 0; pair <= pairs; pair++) {
    const warmUpMs = pair === 0 ? FIRST_WARM_UP_MS : WARM_UP_MS;
    const order = pair % 2 === 0 ? [base, own] : [own, base];
    const bursts = new Map<Side, Burst>();
    for (const side of order) bursts.set(side, await burst(side, row, warmUpMs));
    if (pair > 0) found.push({ base: bursts.get(base)!, own: bursts.get(own)! });
  }
  return found;
}

function allocationRatio(found: readonly Pair[]): number {
  return median(found.map((one) => one.own.allocatedBytes / one.base.allocatedBytes));
}

function lineOf(name: string, found: readonly Pair[]): string[] {
  const middle = (figure: (one: Pair) => number): number => median(found.map(figure));
  return [
    name,
    middle((one) => one.base.ratePerS).toFixed(0),
    middle((one) => one.own.ratePerS).toFixed(0),
    middle((one) => one.own.ratePerS / one.base.ratePerS).toFixed(2),
    middle((one) => one.base.cpuUs).toFixed(1),
    middle((one) => one.own.cpuUs).toFixed(1),
    middle((one) => one.own.cpuUs / one.base.cpuUs).toFixed(2),
    middle((one) => one.base.mainUs).toFixed(1),
    middle((one) => one.own.mainUs).toFixed(1),
    middle((one) => one.base.allocatedBytes).toFixed(0),
    middle((one) => one.own.allocatedBytes).toFixed(0),
    allocationRatio(found).toFixed(2),
    middle((one) => one.base.survivedBytes).toFixed(0),
    middle((one) => one.own.survivedBytes).toFixed(0),
  ];
}

const found = new Map<string, Pair[]>(chosen.map(({ name }) => [name, []]));
for (let round = 0; round < starts; round++) {
  const sides: Side[] = [];
  try {
    for (const version of round % 2 === 0 ? versions : versions.toReversed())
      sides.push(await start(version));
    const [base, own] = round % 2 === 0 ? sides : sides.toReversed();
    for (const row of chosen) {
      const some = await measure(base, own, row);
      console.error(lineOf(row.name, some).join("  "));
      found.get(row.name)!.push(...some);
    }
  } finally {
    for (const { cluster, heaps } of sides) {
      heaps.close();
      await cluster.destroy();
    }
  }
}
const head =
  "load;base, a second;now;ratio;base, CPU us;now;ratio;base, main us;now;" +
  "base, B;now;ratio;base, kept B;now";
const lines = [...found].map(([name, some]) => lineOf(name, some));
console.log(align([head.split(";"), ...lines], [0]));
const worse = [...found].filter(([, some]) => allocationRatio(some) > MOST_ALLOCATED);
for (const [name] of worse)
  console.error(`${name}: allocates ${MOST_ALLOCATED} times as much as the base, or more`);
if (worse.length > 0) process.exitCode = 1;

/**
 * ./dev bench: ours and etcd in turn, the same loads on each, and a table.
 *
 *   ./dev bench --quick                              every row, one short round
 *   ./dev bench "put random" txn --size 1          some rows
 *   ./dev bench --help
 */
import { execFileSync } from "node:child_process";
import { readFileSync, statfsSync, writeFileSync } from "node:fs";
import * as os from "node:os";
import { orRefuse, refuse } from "../scripts/dev/command-line.ts";
import { startCluster, type TestCluster } from "../test/support/cluster.ts";
import {
  type Executable,
  etcd as etcdOnPath,
  quorate as ownQuorate,
} from "../test/support/executables.ts";
import { Agents, agentEnv, type HeapUse } from "./agents.ts";
import { leaderUrl, revisionOf } from "./calls.ts";
import { measureIdle, measureManyPuts, measureStart } from "./life.ts";
import { runCount, runLoad } from "./load.ts";
import { type BenchOptions, readOptions } from "./options.ts";
import { type Figure, type FigureOf, type Findings, type Measurement, report } from "./report.ts";
import { type Ground, ground, preparation, type Row, rows } from "./rows.ts";
import { type GoRow, goBenchmark as goOnPath, goRows, runGoBenchmark } from "./stock.ts";
import { cpuSeconds, peakResidentBytes, residentBytes } from "./usage.ts";

const options = orRefuse(() => readOptions(process.argv.slice(2)));
/** Progress; the report alone goes to standard output. */
const say = (text: string): void => console.error(text);
/** The member to measure: --quorate, else this repository's. */
const quorate: Executable =
  options.quorate === undefined ? ownQuorate : { name: "quorate", command: [options.quorate] };
/** The etcd to compare with: --etcd, else the one on the PATH. */
const etcd: Executable | undefined =
  options.etcd === undefined ? etcdOnPath : { name: "etcd", command: [options.etcd] };
const goBenchmark = options.benchmark ?? goOnPath;
const measurements: Measurement[] = [];
const figures: FigureOf[] = [];

async function main(): Promise<void> {
  if (options.list)
    return console.log([...rows, ...goRows, ...lifeRows].map((row) => row.name).join("\n"));
  if (options.from !== undefined)
    return console.log(report(JSON.parse(readFileSync(options.from, "utf8")) as Findings));
  const programs = [quorate, etcd]
    .filter((one) => one !== undefined)
    .filter((one) => options.only === undefined || one.name === options.only);
  const chosen = rows.filter((row) => isChosen(row.name));
  const wantedGo = goRows.filter((row) => isChosen(row.name));
  const chosenGo = goBenchmark === undefined ? [] : wantedGo;
  const chosenLife = lifeRows.filter((row) => isChosen(row.name));
  if (programs.length === 0 || chosen.length + chosenLife.length + chosenGo.length === 0)
    refuse("there is nothing to run: no row has such a name, or the program is not installed");
  if (etcd === undefined)
    say("etcd is not installed (--etcd names one elsewhere): there is nothing to compare with");
  if (wantedGo.length > chosenGo.length)
    say("etcd's benchmark tool is not installed, so its rows are left out: see bench/stock.ts");
  const words = environment(programs);
  say(words);

  const grounds = options.sizes.flatMap((size) => options.tls.map((tls) => ({ size, tls })));
  for (let round = 1; round <= options.rounds; round++) {
    const order = round % 2 === 1 ? programs : programs.toReversed();
    for (const { size, tls } of grounds) {
      for (const executable of order) {
        if (chosen.length + chosenGo.length > 0)
          await measureCluster(executable, size, tls, round, chosen, chosenGo);
        keep(words);
      }
    }
    for (const row of chosenLife) {
      for (const executable of order) {
        for (const figure of await row.measure(executable)) {
          figures.push({ ...figure, round, executable: executable.name });
          say(`round ${round}, ${executable.name}, ${figure.name}: ${figure.value.toFixed(2)}`);
        }
        keep(words);
      }
    }
  }
  console.log(report({ environment: options.markdown ? words : "", measurements, figures }));
}

/**
 * Writes what is known so far to the file that was asked for: a run takes long, and may be ended.
 */
function keep(words: string): void {
  if (options.json !== undefined)
    writeFileSync(
      options.json,
      `${JSON.stringify({ environment: words, measurements, figures }, null, 1)}\n`,
    );
}

function isChosen(name: string): boolean {
  return options.rows.length === 0 || options.rows.some((text) => name.includes(text));
}

const lifeRows: readonly { name: string; measure(executable: Executable): Promise<Figure[]> }[] = [
  { name: "start", measure: measureStart },
  { name: "idle", measure: (executable) => measureIdle(executable, options.idleSeconds) },
  { name: "many keys", measure: (executable) => manyPuts(executable, false) },
  { name: "many revisions", measure: (executable) => manyPuts(executable, true) },
];

function manyPuts(executable: Executable, isOneKey: boolean): Promise<Figure[]> {
  const { manyKeys: puts, valueBytes } = options;
  return measureManyPuts(executable, { puts, valueBytes, isOneKey });
}

async function measureCluster(
  executable: Executable,
  size: number,
  tls: boolean,
  round: number,
  chosen: readonly Row[],
  chosenGo: readonly GoRow[],
): Promise<void> {
  const hasHeap = executable.name === "quorate";
  const cluster = await startCluster({ executable, size, tls, env: hasHeap ? agentEnv : {} });
  const heaps = hasHeap ? new Agents(cluster.members.map((member) => member.pid!)) : undefined;
  try {
    const leader = await leaderUrl(cluster);
    const target = { urls: cluster.endpoints, identity: cluster.identity };
    const ready = ground(target, leader, options.keys, options.valueBytes, options.listedKeys);
    const { load, count } = preparation(ready);
    await runCount(load, count);
    const context = { executable, cluster, heaps, round, tls, leader };
    for (const row of chosen) note(await measureRow(context, row, ready));
    for (const row of chosenGo) note(await measureGoRow(context, row, ready));
  } catch (error) {
    console.error(cluster.logTails());
    throw error;
  } finally {
    heaps?.close();
    await cluster.destroy();
  }
}

interface Context {
  readonly executable: Executable;
  readonly cluster: TestCluster;
  /** Undefined where the members have none that can be read. */
  readonly heaps: Agents | undefined;
  readonly round: number;
  readonly tls: boolean;
  readonly leader: string;
}

/** What the members have used by now. */
function usageOf(cluster: TestCluster): { cpuS: number; residentMiB: number; peakMiB: number } {
  const pids = cluster.members.map((member) => member.pid!);
  const mean = (bytes: number): number => bytes / pids.length / 2 ** 20;
  return {
    cpuS: cpuSeconds(pids),
    residentMiB: mean(residentBytes(pids)),
    peakMiB: mean(peakResidentBytes(pids)),
  };
}

async function measureRow(context: Context, row: Row, ready: Ground): Promise<Measurement> {
  const { executable, cluster, heaps, leader, tls, round } = context;
  const before = await revisionOf(leader, cluster.identity);
  let start = usageOf(cluster);
  let end = start;
  let begun: Promise<void> | undefined;
  let heap: Promise<HeapUse> | undefined;
  const load = row.load(ready);
  const result = await runLoad(load, {
    // A server runs for months: what its first second costs, on a cold compiler, is not what is
    // asked here.
    warmUpMs: options.warmUpMs,
    durationMs: options.seconds * 1000,
    onPhase: (phase) => {
      if (phase === "measure") {
        start = usageOf(cluster);
        begun = heaps?.begin();
      } else {
        end = usageOf(cluster);
        heap = begun?.then(() => heaps!.end());
      }
    },
  });
  const used = await heap;
  const written = (await revisionOf(leader, cluster.identity)) - before;
  if (result.failed === 0 && written !== load.revisions) {
    throw new Error(
      `${row.name}: ${executable.name} has answered ${load.revisions} changes, but its revision went up by ${written}`,
    );
  }
  return {
    round,
    executable: executable.name,
    members: cluster.members.length,
    tls,
    load: row.name,
    goal: row.goal,
    ratePerS: (result.answered * 1000) / result.elapsedMs,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    cpuSPerThousand: ((end.cpuS - start.cpuS) * 1000) / result.answered,
    allocatedBytes: (used?.allocatedBytes ?? Number.NaN) / result.answered,
    survivedBytes: (used?.survivedBytes ?? Number.NaN) / result.answered,
    residentMiB: end.residentMiB,
    peakMiB: end.peakMiB,
    generatorCpu: (result.generatorCpuS * 1000) / result.elapsedMs,
    failed: result.failed,
  };
}

async function measureGoRow(context: Context, row: GoRow, ready: Ground): Promise<Measurement> {
  const { executable, cluster, tls, round } = context;
  const start = usageOf(cluster);
  const { keys: keyCount, valueBytes } = options;
  const total = Math.round(options.goPuts * row.part);
  const command = row.command({ total, keyCount, valueBytes, key: ready.keys[0] });
  const { certs } = cluster;
  const result = await runGoBenchmark(goBenchmark!, ready.target, certs, row.clients, command);
  const end = usageOf(cluster);
  return {
    round,
    executable: executable.name,
    members: cluster.members.length,
    tls,
    load: row.name,
    ratePerS: result.ratePerS,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    cpuSPerThousand: ((end.cpuS - start.cpuS) * 1000) / total,
    residentMiB: end.residentMiB,
    peakMiB: end.peakMiB,
    generatorCpu: result.generatorCpuS / result.elapsedS,
    failed: 0,
  };
}

function note(one: Measurement): void {
  measurements.push(one);
  say(
    `round ${one.round}, ${one.members} x ${one.executable}${one.tls ? ", TLS" : ""}, ${one.load}: ${Math.round(one.ratePerS)} per s, ` +
      `p50 ${one.p50Ms.toFixed(2)} ms, p99 ${one.p99Ms.toFixed(2)} ms, ` +
      `${one.cpuSPerThousand.toFixed(4)} CPU s a thousand, ${one.residentMiB.toFixed(0)} MiB` +
      `${one.failed > 0 ? `, ${one.failed} failed` : ""}`,
  );
}

/** The ground the figures stand on. */
function environment(programs: readonly Executable[]): string {
  const version = (executable: Executable): string =>
    execFileSync(executable.command[0], [...executable.command.slice(1), "--version"], {
      encoding: "utf8",
    }).split("\n")[0];
  const memoryGiB = Math.round(os.totalmem() / 2 ** 30);
  // The type of the file system, as statfs(2) numbers it: tmpfs makes every fdatasync free.
  const isTmpfs = statfsSync(os.tmpdir()).type === 0x0102_1994;
  const { rounds, seconds, keys, valueBytes }: BenchOptions = options;
  return [
    `- ${os.cpus().length} x ${os.cpus()[0]?.model ?? "unknown processor"}, ${memoryGiB} GiB, ${os.type()} ${os.release()}`,
    `- Node ${process.versions.node}; ${programs.map((one) => `${one.name}: ${version(one)}`).join("; ")}`,
    `- ${rounds} round(s) of ${seconds} s a load; values of ${valueBytes} bytes, ${keys} keys of 8 bytes; load average before the run ${os
      .loadavg()[0]
      .toFixed(1)}`,
    isTmpfs
      ? "- data in memory: a disk would be slower (set TMPDIR)"
      : "- data on the disk behind the temporary directory",
  ].join("\n");
}

await main();

/**
 * ./dev profile ROW: runs one row of the benchmark on a member under V8's profiler, writes a
 * flame picture and prints the functions that took most of the time.
 *
 *   ./dev profile "put random, 1000 clients"
 *   ./dev profile txn --size 3 --member follower --seconds 10
 *   ./dev profile txn --allocations       the functions that allocate, in the place of time
 *   ./dev profile txn --survivors         those whose objects outlive a collection
 */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import {
  orRefuse,
  positive,
  readArguments,
  refuse,
  switchOption,
  valueOption,
} from "../scripts/dev/command-line.ts";
import { startCluster } from "../test/support/cluster.ts";
import { quorate } from "../test/support/executables.ts";
import { Agents, agentEnv } from "./agents.ts";
import { leaderUrl } from "./calls.ts";
import {
  allocationFrames,
  type CpuProfile,
  type Frame,
  frames,
  functionTimes,
} from "./cpu-profile.ts";
import { flameHtml } from "./flame.ts";
import { runCount, runLoad } from "./load.ts";
import { ground, preparation, type Row, rows } from "./rows.ts";
import { cpuSeconds } from "./usage.ts";

const help = `./dev profile ROW [OPTIONS]
  ROW                 a row of the benchmark, or a part of its name that only one has: ./dev bench --list`;

export interface ProfileOptions {
  readonly row: Row;
  readonly size: number;
  readonly tls: boolean;
  readonly member: "leader" | "follower";
  /** Of the members, beside those that the benchmark gives them. */
  readonly flags?: readonly string[];
  readonly seconds: number;
  /** Which functions allocate is sampled, not which ones take time. */
  readonly allocations?: "all" | "survivors" | undefined;
}

/**
 * What a profiled member did during a row's measured time; of allocations the tree has kilobytes,
 * and the idle time is 0.
 */
export interface Profiled {
  readonly tree: Frame;
  readonly idleMs: number;
  readonly elapsedMs: number;
  /** Processor time of all of the member's threads. */
  readonly cpuMs: number;
  readonly answered: number;
}

/**
 * The row of that name, or the only one whose name holds the text. Throws with the names if that is
 * none or several.
 */
export function findRow(text: string): Row {
  const found =
    rows.find((row) => row.name === text) ?? rows.filter((row) => row.name.includes(text));
  if (!Array.isArray(found)) return found as Row;
  if (found.length === 1) return found[0] as Row;
  const names = (found.length === 0 ? rows : (found as readonly Row[]))
    .map((row) => `  ${row.name}`)
    .join("\n");
  throw new Error(
    `${found.length === 0 ? "no row is" : "several rows are"} called "${text}":\n${names}`,
  );
}

/** Runs the row with a profiler in each member. */
export async function profileRow(options: ProfileOptions): Promise<Profiled> {
  const dir = mkdtempSync(join(tmpdir(), "quorate-profile-"));
  const [node, ...rest] = quorate.command;
  // A process under the profiler cannot give itself the flags that bin/quorate.js asks for.
  const nodeFlags = ["--max-semi-space-size=8", "--heap-growing-percent=70"];
  const isOfAllocations = options.allocations !== undefined;
  const profiling = ["--cpu-prof", `--cpu-prof-dir=${dir}`, "--cpu-prof-interval=200"];
  const command = [node, ...nodeFlags, ...(isOfAllocations ? [] : profiling), ...rest];
  const cluster = await startCluster({
    executable: { name: "quorate", command },
    size: options.size,
    tls: options.tls,
    flags: [...(options.flags ?? [])],
    env: isOfAllocations ? agentEnv : {},
  });
  let heaps: Agents | undefined;
  try {
    const leader = await leaderUrl(cluster);
    const wanted = cluster.members.find(
      (member) => (member.clientUrl === leader) === (options.member === "leader"),
    );
    if (wanted === undefined) throw new Error("one member alone has no follower: --size 3");
    const pid = wanted.pid!;
    const ready = ground(
      { urls: cluster.endpoints, identity: cluster.identity },
      leader,
      10_000,
      256,
      10_000,
    );
    const { load, count } = preparation(ready);
    await runCount(load, count);
    // The profile's clock is the system's monotonic one, as this is.
    const nowUs = (): number => Number(process.hrtime.bigint() / 1000n);
    let [fromUs, toUs, cpuS] = [0, 0, 0];
    if (isOfAllocations) heaps = new Agents([pid]);
    let sampled: ReturnType<Agents["samples"]> | undefined;
    const result = await runLoad(options.row.load(ready), {
      warmUpMs: 2000,
      durationMs: options.seconds * 1000,
      onPhase: (phase) => {
        if (phase === "measure") {
          [fromUs, cpuS] = [nowUs(), cpuSeconds([pid])];
          heaps?.sample(options.allocations === "survivors");
        } else {
          [toUs, cpuS] = [nowUs(), cpuSeconds([pid]) - cpuS];
          sampled = heaps?.samples();
        }
      },
    });
    const root = `${resolve(import.meta.dirname, "..")}/`;
    const around = {
      elapsedMs: (toUs - fromUs) / 1000,
      cpuMs: cpuS * 1000,
      answered: result.answered,
    };
    if (sampled !== undefined) {
      const [profile] = await sampled;
      return { ...around, tree: allocationFrames(profile, root), idleMs: 0 };
    }
    await Promise.all(cluster.members.map((member) => member.terminate(60_000)));
    // CPU.day.time.pid.thread.number.cpuprofile; the member's thread is 0.
    const file = readdirSync(dir).find((name) => name.includes(`.${pid}.0.`));
    if (file === undefined) throw new Error("the member has left no profile");
    const profile = JSON.parse(readFileSync(join(dir, file), "utf8")) as CpuProfile;
    return { ...around, ...frames(profile, fromUs, toUs, root) };
  } finally {
    heaps?.close();
    await cluster.destroy();
    rmSync(dir, { recursive: true, force: true });
  }
}

/**
 * The table of functions: time in themselves and in all they called, per cent of the time that the
 * loop was busy; or bytes, of all that was allocated.
 * @param unit of what is itself for each answer
 */
export function topTable({ tree, answered }: Profiled, count: number, unit = "us"): string {
  const percent = (ms: number): string => `${((100 * ms) / tree.totalMs).toFixed(1)} %`.padStart(8);
  const each = (ms: number): string => ((1000 * ms) / answered).toFixed(3).padStart(10);
  const lines = functionTimes(tree)
    .slice(0, count)
    .map(
      ({ name, selfMs, totalMs }) =>
        `${percent(selfMs)}${each(selfMs)}${percent(totalMs)}  ${name}`,
    );
  const title = `${unit}/answer`.padStart(10);
  return [`  itself${title}   total  function`, ...lines].join("\n");
}

async function main(): Promise<void> {
  const options = {
    size: valueOption("members", "1"),
    tls: switchOption("mutual TLS"),
    member: valueOption("leader or follower", "leader"),
    flags: valueOption("flags of the members, parted by blanks", ""),
    seconds: valueOption("measured seconds", "5"),
    allocations: switchOption("bytes allocated, not time"),
    survivors: switchOption("bytes allocated that outlive a collection of young objects"),
    top: valueOption("lines of the table", "30"),
    out: valueOption("the flame picture; default: in the temporary directory"),
  } as const;
  const { values, positionals } = readArguments(help, options, "ROW");
  if (positionals.length !== 1) refuse("one row is to be named");
  const { tls, member } = values;
  if (member !== "leader" && member !== "follower")
    refuse(`--member is leader or follower, not "${member}"`);
  const row = orRefuse(() => findRow(positionals[0]));
  const profiled = await profileRow({
    row,
    size: positive("size", values.size),
    tls,
    member,
    flags: values.flags.split(" ").filter((flag) => flag !== ""),
    seconds: positive("seconds", values.seconds),
    allocations: values.survivors ? "survivors" : values.allocations ? "all" : undefined,
  });
  const { tree, idleMs, elapsedMs, cpuMs, answered } = profiled;
  const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(0)} %`;
  const rate = `${Math.round((1000 * answered) / elapsedMs)} per s`;
  const each = `${((1000 * tree.totalMs) / answered).toFixed(0)} bytes an answer`;
  const busy = `loop busy ${percent(tree.totalMs, tree.totalMs + idleMs)}`;
  const isOfBytes = values.allocations || values.survivors;
  const words =
    `${row.name}; ${values.size} member(s)${tls ? ", TLS" : ""}, ${member}: ${rate}; ` +
    `${isOfBytes ? each : busy}, processor ${percent(cpuMs, elapsedMs)} of one`;
  const out = values.out ?? join(tmpdir(), `quorate-${row.name.replaceAll(/[^\w]+/g, "-")}.html`);
  writeFileSync(out, flameHtml(words, tree));
  const unit = isOfBytes ? "B" : "us";
  const table = topTable(profiled, positive("top", values.top), unit);
  console.log(`${words}\n\n${table}\n\nflame picture: ${out}`);
}

if (import.meta.main) await main();

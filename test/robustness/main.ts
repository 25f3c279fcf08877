/**
 * The command `./dev robustness`: real members under faults, judged (options.ts says what it can
 * do).
 *
 * It runs itself again in a mount namespace of its own where the machine allows that, so that what
 * it mounts ends with it, however it ends.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Random, SeededRandom } from "@quorate/host";
import { switchUsersOn } from "./administrator.ts";
import { canMount } from "./disks.ts";
import { drawFile, judgeFile } from "./judging.ts";
import { type RunningCluster, startRunningCluster } from "./members.ts";
import { replaceMember } from "./membership.ts";
import { Mixture, mixtureTrouble, oursAlone, type Program } from "./mixture.ts";
import { type Options, readOptions } from "./options.ts";
import { canFindOwners } from "./owner.ts";
import { log, ProgressLines, print, Totals } from "./report.ts";
import { BrokenPromise, runRound, wipe } from "./round.ts";

/** A last round shorter than this is left out. */
const SHORTEST_ROUND_MS = 8000;
/** A mixed cluster lives so many rounds. */
const MIXED_ROUNDS = 4;
/** How long a change of members may take without faults. */
const CHANGE_LIMIT_MS = 120_000;
const MOUNTS = "QUORATE_ROBUSTNESS_MOUNTS";

/** The flags of unshare(1) with which a tmpfs can be mounted here, or undefined. */
function namespaceFlags(): readonly string[] | undefined {
  for (const flags of [["--mount"], ["--mount", "--user", "--map-root-user"]]) {
    const tried = spawnSync(
      "unshare",
      [...flags, "mount", "-t", "tmpfs", "-o", "size=4096", "tmpfs", tmpdir()],
      { stdio: "ignore" },
    );
    if (tried.status === 0) return flags;
  }
  return undefined;
}

/** Runs this command again in a namespace; returns its exit code. */
function runInNamespace(flags: readonly string[]): Promise<number> {
  const child = spawn("unshare", [...flags, process.execPath, ...process.argv.slice(1)], {
    stdio: "inherit",
    env: { ...process.env, [MOUNTS]: "1" },
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => child.kill("SIGTERM"));
  process.on("exit", () => child.kill("SIGTERM"));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  });
}

/**
 * How often the members cut their logs: mostly so early that who was away for seconds needs a
 * snapshot.
 */
function drawFlags(random: Random): string[] {
  const one = (...choices: number[]): number => choices[random.below(choices.length)];
  return [
    `--snapshot-count=${one(100, 500, 2000)}`,
    `--snapshot-catchup-entries=${one(10, 100, 5000)}`,
    `--max-wals=${one(1, 2)}`,
    `--backend-batch-interval=${one(5, 100, 100)}ms`,
  ];
}

async function run(options: Options): Promise<boolean> {
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), "quorate-robustness-"));
  mkdirSync(dir, { recursive: true });
  print(`seed ${options.seed}; ${JSON.stringify(options)}`);
  const random = new SeededRandom(BigInt(options.seed));
  let ended: (text: string) => void = () => {};
  const hasEnded = new Promise<string>((resolve) => {
    ended = resolve;
  });
  const totals = new Totals();
  const startMs = performance.now();
  let running: RunningCluster | undefined;
  let violation: string | undefined;
  let tails = "";
  let historyPath = "";
  let fullDiskEnds = 0;
  const end = async (): Promise<void> => {
    fullDiskEnds += running?.nodes.reduce((sum, node) => sum + node.fullDiskEnds, 0) ?? 0;
    await running?.close();
    running = undefined;
  };
  const begin = async (number: number, programs: readonly Program[]): Promise<RunningCluster> => {
    print(`members' flags: ${programs[0].flags.join(" ")}`);
    const begun = await startRunningCluster({
      dir: join(dir, `from-round-${number}`),
      programs,
      onEnd: (_node, what) => ended(`PROCESS: ${what}`),
    });
    log(`${programs.length} members run in ${dir}; a full disk is ${begun.nodes[0].disk.kind}`);
    if (options.mixed) await switchUsersOn(begun);
    return begun;
  };
  const change = async (cluster: RunningCluster, mixture: Mixture, isFirst: boolean) => {
    const programs = cluster.nodes.map(({ program }) => program);
    for (const [index, program] of mixture.changes(programs, isFirst)) {
      log(`${cluster.nodes[index].name} becomes one of ${program.name}`);
      await replaceMember(cluster, cluster.nodes[index], program, CHANGE_LIMIT_MS).catch(
        (error: Error) => {
          throw new BrokenPromise(`LIVENESS: no change of members: ${error.message}`);
        },
      );
    }
    log(`members: ${cluster.programs}`);
  };
  try {
    let mixture: Mixture | undefined;
    let base = 0;
    const endMs = performance.now() + options.minutes * 60_000;
    for (let number = 1; number === 1 || endMs - performance.now() >= SHORTEST_ROUND_MS; number++) {
      const isFirst = running === undefined || (options.mixed && number % MIXED_ROUNDS === 1);
      if (isFirst) {
        await end();
        const flags = drawFlags(random.fork(`flags ${number}`));
        if (options.mixed) mixture = new Mixture(random.fork(`mixture ${number}`), flags);
        const ours = Array.from({ length: options.members }, () => oursAlone(flags));
        running = await begin(number, mixture?.founders(options.members) ?? ours);
      }
      const cluster: RunningCluster = running!;
      if (mixture !== undefined) await change(cluster, mixture, isFirst);
      base = await wipe(cluster, options.healLimitMs);
      historyPath = join(dir, `history-${number}.jsonl`);
      const lines = new ProgressLines(number);
      try {
        const result = await runRound(
          cluster,
          {
            ...options,
            random: random.fork(`round ${number}`),
            faultMs: Math.min(
              options.roundMs,
              Math.max(SHORTEST_ROUND_MS, endMs - performance.now()),
            ),
            pace: { thinkMs: options.thinkMs, callLimitMs: options.callLimitMs },
            historyPath,
            base,
            hasUsers: options.mixed,
            ended: hasEnded,
            log,
          },
          lines.watch,
        );
        totals.add(result, cluster.programs);
        const { operations, unknown, revisions, streams, events, leases, decided } =
          result.judgement;
        log(
          `round ${number} judged: ${operations} operations, ${unknown} unknown, ${revisions} revisions, ${events} events in ${streams} ` +
            `streams, ${leases} leases; ${decided ? "all promises held" : "no violation found, not every order was tried"}`,
        );
      } finally {
        lines.stop();
      }
      if (!options.keep) rmSync(historyPath);
    }
  } catch (error) {
    if (!(error instanceof BrokenPromise)) throw error;
    violation = error.message;
    if (running !== undefined) tails = running.cluster.logTails(8);
  } finally {
    if (violation !== undefined || options.keep)
      for (const node of running?.nodes ?? []) node.disk.keep();
    await end();
    print(
      totals.text(
        (performance.now() - startMs) / 1000,
        violation === undefined ? 0 : 1,
        fullDiskEnds,
      ),
    );
  }
  if (violation === undefined) {
    if (!options.keep) rmSync(dir, { recursive: true, force: true });
    print(`all promises held${options.keep ? `; files are in ${dir}` : ""}`);
    return true;
  }
  print(`VIOLATION\n${violation}\n${tails}`);
  const picturePath = await drawFile(historyPath, violation);
  if (picturePath !== undefined) print(`picture: ${picturePath}`);
  print(`history: ${historyPath}\nmembers' logs and data: ${dir}\nseed: ${options.seed}`);
  return false;
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (options.check !== undefined) {
    const judgement = await judgeFile(options.check);
    print(JSON.stringify(judgement, undefined, 1));
    const path = judgement.violation && (await drawFile(options.check, judgement.violation));
    if (path) print(`picture: ${path}`);
    return judgement.violation === undefined ? 0 : 1;
  }
  const trouble = options.mixed ? mixtureTrouble() : undefined;
  if (trouble !== undefined) {
    print(`skipped: ${trouble}`);
    return 0;
  }
  if (!canFindOwners())
    throw new Error("this needs Linux: /proc shows which member opened a connection");
  if (!canMount && process.env[MOUNTS] === undefined) {
    const flags = namespaceFlags();
    if (flags !== undefined) return runInNamespace(flags);
  }
  return (await run(options)) ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`robustness: ${(error as Error).message}\n`);
  process.exitCode = 2;
}

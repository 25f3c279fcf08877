/**
 * The layers that may see a mutant: test files of a package, Raft's random clusters with more seeds
 * than a build takes, the simulator.
 */
import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import { join } from "node:path";
import { runPool, seedsFrom, Totals } from "@quorate/sim";
import type { Mutant } from "./mutant.ts";

const ROOT = join(import.meta.dirname, "../..");
const PLANT = join(import.meta.dirname, "plant.ts");
const MAX_SEEDS = 400;
const MAX_TEST_MS = 15 * 60_000;
const FAILED = /^\s*not ok \d+ - (.*)$/m;
const MAX_OUTPUT_CHARS = 4 << 20;

/** What a layer found. */
export interface Found {
  readonly layer: "tests" | "random clusters" | "simulator";
  /** The test, or the promise, that failed first. */
  readonly by: string;
  /** Of the simulator and of random clusters. */
  readonly seeds: number | undefined;
  readonly seconds: number;
}

export interface RunOptions {
  /** Tests that take longer count as failed. */
  readonly maxMs?: number;
  /** The first test that fails ends the run. */
  readonly isFirstEnough?: boolean;
}

/**
 * Runs the mutant's test files; undefined if they pass. Rejects where no test ran at all, which
 * would prove nothing.
 */
export async function runTests(
  mutant: Mutant,
  { maxMs = MAX_TEST_MS, isFirstEnough = false }: RunOptions = {},
): Promise<Found | undefined> {
  const files = mutant.tests
    .flatMap((pattern) => globSync(pattern, { cwd: ROOT }))
    .filter((file) => !file.endsWith("mutants.test.ts"));
  if (mutant.tests.length === 0) return undefined;
  if (files.length === 0)
    throw new Error(`${mutant.name}: no file matches ${mutant.tests.join(" ")}`);
  const { file, before, after } = mutant;
  const startMs = performance.now();
  // One file needs no process of its own beside the runner's.
  const runner = files.length === 1 ? [] : ["--test"];
  const args = ["--expose-gc", "--import", PLANT, ...runner, "--test-reporter=tap"];
  const env = {
    ...process.env,
    NODE_COMPILE_CACHE: join(ROOT, "node_modules/.cache/quorate-tests"),
    QUORATE_MUTANT: JSON.stringify({ file, before, after }),
    NODE_TEST_CONTEXT: undefined,
  };
  const isOver = isFirstEnough ? (text: string) => FAILED.test(text) : () => false;
  const all = [...args, "--test-timeout=120000", ...files];
  const output = await outputOf(all, env, maxMs, isOver);
  const seconds = (performance.now() - startMs) / 1000;
  const failed = [...output.matchAll(new RegExp(FAILED, "gm"))].map(([, name]) => name);
  if (failed.length === 0 && seconds * 1000 >= maxMs)
    return { layer: "tests", by: `more than ${maxMs} ms`, seeds: undefined, seconds };
  if (failed.length === 0 && !/^# tests [1-9]/m.test(output))
    throw new Error(`${mutant.name}: no test ran\n${output.slice(-2000)}`);
  return failed.length === 0
    ? undefined
    : { layer: "tests", by: failed[0], seeds: undefined, seconds };
}

/** Raft's own search, with thousands of seeds; for mutants of its list. */
export async function runRandomClusters(mutant: Mutant): Promise<Found | undefined> {
  const startMs = performance.now();
  const env = { ...process.env, RAFT_MUTANTS: mutant.name, NODE_TEST_CONTEXT: undefined };
  const output = await outputOf(
    ["--test", "--test-reporter=tap", "packages/raft/test/mutants.test.ts"],
    env,
  );
  const [, found] =
    output.match(new RegExp(`^\\s*# ${mutant.name.replace(/[^\w ]/g, ".")}: (.*)$`, "m")) ?? [];
  if (found === undefined)
    throw new Error(`${mutant.name}: Raft's random clusters did not run\n${output.slice(-2000)}`);
  if (found === "NOT CAUGHT") return undefined;
  const seeds = found.match(/^seed (\d+)/)?.[1];
  return {
    layer: "random clusters",
    by: found.replace(/^seed \d+, /, ""),
    seeds: seeds === undefined ? undefined : Number(seeds),
    seconds: (performance.now() - startMs) / 1000,
  };
}

/** Runs seeds from 1 on until one breaks a promise; undefined if none of them does. */
export async function runSimulator(mutant: Mutant): Promise<Found | undefined> {
  if (mutant.sim === "no") return undefined;
  const startMs = performance.now();
  const totals = new Totals();
  const changes =
    mutant.sim === "default" || mutant.sim === undefined ? undefined : { set: mutant.sim };
  const next = seedsFrom(1, mutant.maxSeeds ?? MAX_SEEDS, () => totals.failed.size > 0, changes);
  const { file, before, after } = mutant;
  await runPool({
    workers: 2,
    patch: { file, before, after },
    next,
    done: (summary) => totals.add(summary),
  });
  if (totals.failed.size === 0) return undefined;
  const [[seed, violation]] = [...totals.failed].sort(([a], [b]) => a - b) as [[number, string]];
  const by = violation
    .split("\n")[0]
    .replace(/^(Violation|Error): /, "")
    .slice(0, 120);
  return { layer: "simulator", by, seeds: seed, seconds: (performance.now() - startMs) / 1000 };
}

/** What a Node prints until it ends, takes too long, or has printed enough. */
function outputOf(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  maxMs = MAX_TEST_MS,
  isOver: (output: string) => boolean = () => false,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      env,
      stdio: ["ignore", "pipe", "pipe"],
      // A group of its own: the processes of test files end with it.
      detached: true,
    });
    const end = () => {
      try {
        process.kill(-child.pid!, "SIGKILL");
      } catch {
        // It has ended meanwhile.
      }
    };
    const timer = setTimeout(end, maxMs);
    let output = "";
    const take = (chunk: Buffer) => {
      if (output.length < MAX_OUTPUT_CHARS) output += chunk.toString("utf8");
      if (isOver(output)) end();
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("error", reject);
    child.on("close", () => {
      clearTimeout(timer);
      resolve(output);
    });
  });
}

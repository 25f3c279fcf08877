/**
 * The layers that may see a mutant: test files of a package, the simulator, and random clusters of
 * Raft machines.
 */
import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import { join } from "node:path";
import type { SourceEdit } from "@quorate/host/testing";
import { type CatalogueBug, runPool, searchClusters, seedsFrom, Totals } from "@quorate/sim";

const ROOT = join(import.meta.dirname, "../..");
const PLANT = join(import.meta.dirname, "plant.ts");
/** Seeds of the simulator; a bug in Raft shows soon, or in clusters without members around it. */
const MAX_SEEDS = 500;
const MAX_RAFT_SEEDS = 40;
const MAX_CLUSTER_SEEDS = 5000;
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
 * Runs test files, or patterns of them, with a change of the source; undefined if they pass.
 * Rejects where no test ran at all, which would prove nothing.
 */
export async function runTests(
  edit: SourceEdit,
  tests: readonly string[],
  { maxMs = MAX_TEST_MS, isFirstEnough = false }: RunOptions = {},
): Promise<Found | undefined> {
  if (tests.length === 0) return undefined;
  const files = tests
    .flatMap((pattern) => globSync(pattern, { cwd: ROOT }))
    .filter((file) => !file.endsWith("mutants.test.ts"));
  if (files.length === 0) throw new Error(`no file matches ${tests.join(" ")}`);
  const startMs = performance.now();
  // One file needs no process of its own beside the runner's.
  const runner = files.length === 1 ? [] : ["--test"];
  const args = ["--expose-gc", "--import", PLANT, ...runner, "--test-reporter=tap"];
  const env = {
    ...process.env,
    NODE_COMPILE_CACHE: join(ROOT, "node_modules/.cache/quorate-tests"),
    QUORATE_PLANTED: JSON.stringify([edit]),
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
    throw new Error(`no test ran\n${output.slice(-2000)}`);
  return failed.length === 0
    ? undefined
    : { layer: "tests", by: failed[0], seeds: undefined, seconds };
}

/** Random clusters of Raft machines, until a seed shows the change. */
export async function runClusters(edit: SourceEdit): Promise<Found | undefined> {
  const startMs = performance.now();
  const found = await searchClusters({ edit, first: 1, count: MAX_CLUSTER_SEEDS });
  if (found === undefined) return undefined;
  const seconds = (performance.now() - startMs) / 1000;
  return { layer: "random clusters", by: found.problem, seeds: found.seed, seconds };
}

/** Whether a change is one of Raft. */
export const isRaft = ({ path }: SourceEdit): boolean => path.includes("/packages/raft/");

/**
 * Runs seeds from 1 on until one breaks a promise; undefined if none of them does.
 * @param sim how the runs differ from those that seeds draw
 */
export async function runSimulator(
  edit: SourceEdit,
  sim: CatalogueBug["sim"],
  maxSeeds = isRaft(edit) && sim === undefined ? MAX_RAFT_SEEDS : MAX_SEEDS,
): Promise<Found | undefined> {
  if (sim === "no") return undefined;
  const startMs = performance.now();
  const totals = new Totals();
  const changes = sim === undefined ? undefined : { set: sim };
  const next = seedsFrom(1, maxSeeds, () => totals.failed.size > 0, changes);
  await runPool({ workers: 2, edit, next, done: (summary) => totals.add(summary) });
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

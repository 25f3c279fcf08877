/**
 * Runs the seeds that it is sent, one by one, in a thread of its own; with its own build of a
 * member, if it has a bug to plant.
 */
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { plantEdit, type SourceEdit } from "@quorate/host/testing";
import { defined } from "@quorate/proto";
import { type Changes, optionsOf } from "../base/options.ts";
import type { RunResult } from "../result.ts";

/** A seed to run, and how its options are to differ from those that it draws. */
export interface Order {
  readonly seed: number;
  readonly changes?: Changes | undefined;
}

/** What is reported of a run: a result without what is large. */
export interface Summary extends Omit<RunResult, "story" | "verdict" | "history"> {
  /** Processor time, in milliseconds. */
  readonly cpuMs: number;
  readonly undecided: boolean;
}

/** What a worker is made with. */
export interface WorkerData {
  readonly bug: string | undefined;
  readonly edit: SourceEdit | undefined;
}

const { bug, edit } = workerData as WorkerData;
// Half of what a start costs is translating and compiling what did not change since the last one.
enableCompileCache(join(import.meta.dirname, "../../../../node_modules/.cache/quorate-sim"));
// A run makes thousands of errors that its clients expect, and their stacks are not read. The
// command for one seed keeps stacks: it runs the seed in its own thread.
Error.stackTraceLimit = 0;
if (edit !== undefined) plantEdit(edit);
const world = import("../run-seed.ts");

defined(parentPort, "the parent port").on("message", async ({ seed, changes }: Order) => {
  const { runSeed } = await world;
  const start = process.threadCpuUsage();
  const {
    story: _story,
    verdict,
    history: _history,
    ...rest
  } = await runSeed(optionsOf(seed, bug, changes), false);
  const { user, system } = process.threadCpuUsage(start);
  const summary: Summary = {
    ...rest,
    cpuMs: (user + system) / 1000,
    undecided: (verdict?.undecided.length ?? 0) > 0,
  };
  defined(parentPort, "the parent port").postMessage(summary);
});

/** One random cluster of Raft machines: everything fails, and then it heals. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { SourceEdit } from "@quorate/host/testing";
import { optionsOf } from "./options.ts";
import { type Counts, RaftWorld } from "./world.ts";

const TRACED_STEPS = 150;

/**
 * Runs a seed. Throws what went wrong.
 * @param trace is given the last steps
 */
export function runSeed(seed: number, trace?: string[]): Counts {
  const world = new RaftWorld(optionsOf(seed), trace);
  world.runFaults();
  world.runHealed();
  return world.counts;
}

/** The same; an error comes with the options, the last steps and how to see it again. */
export function runOrExplain(seed: number): Counts {
  try {
    return runSeed(seed);
  } catch (error) {
    const trace: string[] = [];
    try {
      runSeed(seed, trace);
    } catch {
      // The same failure again: now the trace is there.
    }
    throw new Error(
      [
        `seed ${seed} failed: ${(error as Error).stack}`,
        `options ${JSON.stringify(optionsOf(seed))}`,
        "last steps:",
        ...trace.slice(-TRACED_STEPS),
        `to run it again: ./dev sim raft --seed ${seed}`,
      ].join("\n"),
    );
  }
}

/** Which seeds are run, with which bug. */
export interface Search {
  readonly edit: SourceEdit;
  readonly first: number;
  readonly count: number;
}

/** A seed that shows the bug, and the first line of what it shows. */
export interface Found {
  readonly seed: number;
  readonly problem: string;
}

/**
 * Runs random clusters with a bug in them, in a thread with its own build of Raft. Resolves with
 * the first seed that shows the bug; undefined if none does.
 */
export async function searchClusters(search: Search): Promise<Found | undefined> {
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: search });
  const [found] = (await once(worker, "message")) as [Found | undefined];
  await worker.terminate();
  return found;
}

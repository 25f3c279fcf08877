/**
 * Random schedules of whole clusters (sim/world.ts). RAFT_SEEDS=5000 runs so many instead of the
 * usual few hundred, RAFT_FIRST_SEED=n starts there, RAFT_SEED=n replays one seed with a trace of
 * its last steps.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { optionsOf } from "./sim/options.ts";
import { type Counts, World } from "./sim/world.ts";

const USUAL_SEEDS = 400;

function run(seed: number, trace: string[] | undefined): Counts {
  const world = new World(optionsOf(seed), trace);
  world.runFaults();
  world.runHealed();
  return world.counts;
}

/** Runs a seed; a failure comes with its options, the last steps and how to see it again. */
function runOrExplain(seed: number): Counts {
  try {
    return run(seed, undefined);
  } catch (error) {
    const trace: string[] = [];
    try {
      run(seed, trace);
    } catch {
      // The same failure again: now the trace is there.
    }
    const again = `RAFT_SEED=${seed} node --test packages/raft/test/random.test.ts`;
    const text = `seed ${seed} failed: ${(error as Error).stack}\noptions ${JSON.stringify(optionsOf(seed))}`;
    throw new Error(`${text}\nlast steps:\n${trace.slice(-150).join("\n")}\nreplay: ${again}`);
  }
}

const single = process.env["RAFT_SEED"];
if (single !== undefined) {
  test(`seed ${single}`, () => {
    runOrExplain(Number(single));
  });
} else {
  const first = Number(process.env["RAFT_FIRST_SEED"] ?? 1);
  const count = Number(process.env["RAFT_SEEDS"] ?? USUAL_SEEDS);
  test(`seeds ${first} to ${first + count - 1}: safe while everything fails, and at work again once healed`, (context) => {
    const total: Counts = {
      elections: 0,
      commits: 0,
      crashes: 0,
      snapshots: 0,
      confChanges: 0,
      reads: 0,
    };
    for (let seed = first; seed < first + count; seed++) {
      const counts = runOrExplain(seed);
      for (const name of Object.keys(total) as (keyof Counts)[]) total[name] += counts[name];
    }
    context.diagnostic(JSON.stringify(total));
    // A run in which nothing happens shows nothing.
    for (const [name, value] of Object.entries(total))
      assert.ok(2 * value >= count, `only ${value} ${name} in ${count} runs`);
  });
}

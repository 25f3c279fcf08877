/** Runs the seeds that it is told, one after the other, in a thread of its own. */
import { parentPort } from "node:worker_threads";
import { optionsOf } from "./options.ts";
import type { PlantedBug } from "./planted.ts";
import { type RunResult, runSeed } from "./world.ts";

export interface Order {
  readonly seed: number;
  readonly bug: PlantedBug | undefined;
}

/** What is told of a run: a result without its story. */
export interface Summary extends Omit<RunResult, "story" | "verdict"> {
  readonly realMs: number;
  readonly decided: boolean;
}

parentPort?.on("message", async ({ seed, bug }: Order) => {
  const startMs = performance.now();
  const { story: _story, verdict, ...rest } = await runSeed(optionsOf(seed, bug));
  const summary: Summary = { ...rest, realMs: performance.now() - startMs, decided: (verdict?.undecided.length ?? 0) === 0 };
  parentPort?.postMessage(summary);
});

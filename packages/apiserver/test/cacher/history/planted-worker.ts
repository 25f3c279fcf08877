/** Plants a bug in this thread, and runs histories until one has a problem. */
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { PLANTED_BUGS, plant } from "./planted.ts";

export interface Hunt {
  readonly bug: string;
  readonly maxSeeds: number;
}

export interface Caught {
  readonly seed: number;
  readonly problem: string;
}

const { bug, maxSeeds } = workerData as Hunt;
// Most of a short hunt is the compilation of what did not change since the last one.
enableCompileCache(join(import.meta.dirname, "../../../../../node_modules/.cache/quorate-sim"));
plant(PLANTED_BUGS[bug]);
const { runHistory } = await import("./run-history.ts");

let caught: Caught | undefined;
for (let seed = 1; seed <= maxSeeds && caught === undefined; seed++) {
  const { problems } = await runHistory(BigInt(seed), PLANTED_BUGS[bug].below);
  if (problems.length > 0) caught = { seed, problem: problems[0] };
}
parentPort!.postMessage(caught);

/** Plants a bug in this thread, and runs histories until one has a problem. */
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { plantEdit, type SourceEdit } from "@quorate/host/testing";
import type { Below } from "./below.ts";

export interface Hunt {
  readonly edit: SourceEdit;
  readonly below: Below | undefined;
  readonly maxSeeds: number;
  /** Where: histories over a storage of the tests, or over the simulator's members. */
  readonly place: "storage" | "cluster";
}

export interface Caught {
  readonly seed: number;
  readonly problem: string;
}

const { edit, below, maxSeeds, place } = workerData as Hunt;
// Most of a short hunt is the compilation of what did not change since the last one.
enableCompileCache(join(import.meta.dirname, "../../../../../node_modules/.cache/quorate-sim"));
plantEdit(edit);
/** The first problem of a seed. */
async function problemOf(seed: number): Promise<string | undefined> {
  if (place === "cluster") {
    const { runInCluster } = await import("../cluster/run-in-cluster.ts");
    return (await runInCluster(seed)).result.violation;
  }
  const { runHistory } = await import("./run-history.ts");
  return (await runHistory(BigInt(seed), below)).problems[0];
}

let caught: Caught | undefined;
for (let seed = 1; seed <= maxSeeds && caught === undefined; seed++) {
  const problem = await problemOf(seed);
  if (problem !== undefined) caught = { seed, problem };
}
parentPort!.postMessage(caught);

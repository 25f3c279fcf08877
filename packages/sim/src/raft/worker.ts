/** The thread of a search (search.ts). */
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { plantEdit } from "@quorate/host/testing";
import { defined } from "@quorate/proto";
import type { Found, Search } from "./run-seed.ts";

const { edit, first, count } = workerData as Search;
enableCompileCache(join(import.meta.dirname, "../../../../node_modules/.cache/quorate-sim"));
plantEdit(edit);
const { runSeed } = await import("./run-seed.ts");

function problemOf(seed: number): string | undefined {
  try {
    runSeed(seed);
    return undefined;
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message.split("\n")[0]}`;
  }
}

let found: Found | undefined;
for (let seed = first; seed < first + count && found === undefined; seed++) {
  const problem = problemOf(seed);
  if (problem !== undefined) found = { seed, problem };
}
defined(parentPort, "the parent port").postMessage(found);

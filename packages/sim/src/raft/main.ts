/** Runs random clusters of Raft machines; its options are in `readArguments`. */
import { count, readArguments } from "../../../../scripts/dev/command-line.ts";
import { sourceBug } from "../planted/catalogue.ts";
import { editOf } from "../planted/source-edit.ts";
import { runOrExplain, searchClusters } from "./run-seed.ts";

const usage = `./dev sim raft [OPTIONS]: random clusters of Raft machines, without members around them

Every disk, state machine and message runs on its own, and safety is checked after each step. Exits
with 1 if a promise is broken.`;

const number = { type: "string", requiresArg: true } as const;
const { values } = readArguments(usage, {
  seed: { ...number, default: "1", describe: "the first seed" },
  runs: { ...number, default: "1", describe: "how many seeds" },
  bug: { ...number, describe: "with a planted bug, until it is found" },
});

async function main(): Promise<number> {
  const first = count("seed", values.seed);
  const runs = count("runs", values.runs);
  const bug = values.bug === undefined ? undefined : sourceBug(values.bug);
  if (bug !== undefined) {
    const found = await searchClusters({ edit: editOf(bug), first, count: runs });
    console.log(found === undefined ? "NOT FOUND" : `seed ${found.seed}: ${found.problem}`);
    return found === undefined ? 0 : 1;
  }
  const totals = new Map<string, number>();
  try {
    for (let seed = first; seed < first + runs; seed++)
      for (const [name, value] of Object.entries(runOrExplain(seed)))
        totals.set(name, (totals.get(name) ?? 0) + value);
  } catch (error) {
    console.log((error as Error).message);
    return 1;
  }
  console.log(`seeds ${first} to ${first + runs - 1}:`, Object.fromEntries(totals));
  return 0;
}

process.exitCode = await main();

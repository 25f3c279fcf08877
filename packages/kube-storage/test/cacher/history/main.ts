/** Runs random histories of the Cacher; its options are in `readArguments`. */
import {
  readArguments,
  switchOption,
  valueOption,
} from "../../../../../scripts/dev/command-line.ts";
import { CACHER_BUGS } from "../../mutants.ts";
import { runInCluster } from "../cluster/run-in-cluster.ts";
import { hunt } from "./hunt.ts";
import { type HistoryResult, runHistory } from "./run-history.ts";

const usage = `./dev sim cacher [OPTIONS]: random histories over two Cachers on one store

Judges them; a failure is a seed. Exits with 1 if a run has a problem, or a planted bug is not found.`;

const { values } = readArguments(usage, {
  seed: valueOption("the first seed", "1"),
  runs: valueOption("how many seeds", "200"),
  below: {
    choices: ["fake", "etcd", "cluster"] as const,
    default: "fake",
    describe:
      "the store; etcd is EtcdStore over a cluster in memory, cluster is EtcdStore over the simulator's members, under its faults",
  },
  planted: switchOption("hunts each planted bug instead (with --below cluster: there)"),
  verbose: switchOption("prints what happened in each run"),
});

async function historyOf(seed: bigint): Promise<HistoryResult> {
  if (values.below !== "cluster")
    return runHistory(seed, values.below === "etcd" ? "etcd" : "fake");
  const { result, counts, revision } = await runInCluster(Number(seed));
  const { violation } = result;
  return { problems: violation === undefined ? [] : [violation], counts, revision };
}

async function main(): Promise<number> {
  const first = BigInt(values.seed);
  let failed = 0;
  const totals = new Map<string, number>();
  for (let i = 0; i < Number(values.runs); i++) {
    const seed = first + BigInt(i);
    const { problems, counts, revision } = await historyOf(seed);
    for (const [what, count] of counts) totals.set(what, (totals.get(what) ?? 0) + count);
    if (values.verbose)
      console.log(`seed ${seed}: ${revision} revisions`, Object.fromEntries(counts));
    if (problems.length === 0) continue;
    failed++;
    console.log(`seed ${seed}: ${problems.length} problems`);
    for (const problem of problems.slice(0, 3)) console.log(`  ${problem}`);
  }
  console.log(`${values.runs} histories from seed ${first}: ${failed} failed`);
  for (const [what, count] of [...totals].sort()) console.log(`  ${count} ${what}`);
  return failed > 0 ? 1 : 0;
}

async function huntAll(): Promise<number> {
  let missed = 0;
  for (const [name, bug] of Object.entries(CACHER_BUGS)) {
    const caught = await hunt(bug, values.below === "cluster" ? "cluster" : "storage");
    if (caught === undefined) missed++;
    console.log(`${name}: ${caught === undefined ? "NOT FOUND" : `seed ${caught.seed}`}`);
    if (caught !== undefined) console.log(`  ${caught.problem.slice(0, 160)}`);
  }
  return missed > 0 ? 1 : 0;
}

if (values.planted) process.exitCode = await huntAll();
else process.exitCode = await main();

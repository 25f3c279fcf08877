/** Runs random histories of the Cacher; see `help`. */
import { parseArgs } from "node:util";
import { runInCluster } from "../cluster/run-in-cluster.ts";
import { hunt } from "./hunt.ts";
import { PLANTED_BUGS } from "./planted.ts";
import { type HistoryResult, runHistory } from "./run-history.ts";

const help = `usage: npm run sim:cacher -- [OPTIONS]

Runs random histories over two Cachers on one store and judges them. A failure is a seed.

  --seed N      the first seed (default 1)
  --runs N      how many seeds (default 200)
  --below NAME  the store: fake (default), etcd for EtcdStore over a cluster in memory, or cluster
                for EtcdStore over the simulator's members, under its faults
  --planted     hunts each planted bug instead (with --below cluster: there)
  --verbose     prints what happened in each run
  --help        prints this text

Exits with 1 if a run has a problem, or a planted bug is not found.`;

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    runs: { type: "string", default: "200" },
    below: { type: "string", default: "fake" },
    planted: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
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
  for (const bug of Object.keys(PLANTED_BUGS)) {
    const caught = await hunt(bug, values.below === "cluster" ? "cluster" : "storage");
    if (caught === undefined) missed++;
    console.log(`${bug}: ${caught === undefined ? "NOT FOUND" : `seed ${caught.seed}`}`);
    if (caught !== undefined) console.log(`  ${caught.problem.slice(0, 160)}`);
  }
  return missed > 0 ? 1 : 0;
}

if (values.help) console.log(help);
else if (values.planted) process.exitCode = await huntAll();
else process.exitCode = await main();

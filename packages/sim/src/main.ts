/**
 * The simulator's command.
 *
 *     node packages/sim/src/main.ts --seed 7 [--story 100]     one run: its options, what came of it, and the last events of each member
 *     node packages/sim/src/main.ts --seeds 1..500             many, in two workers
 *     node packages/sim/src/main.ts --minutes 10 [--from 1]    as many as there is time for
 *     ... --bug stale-read                                     with a planted bug
 *
 * Ends with 1 if a promise was broken.
 */
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { optionsOf } from "./options.ts";
import { PLANTED_BUGS, type PlantedBug } from "./planted.ts";
import type { Order, Summary } from "./worker.ts";
import { runSeed } from "./world.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    seeds: { type: "string" },
    minutes: { type: "string" },
    from: { type: "string" },
    story: { type: "string" },
    bug: { type: "string" },
    workers: { type: "string" },
  },
});

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function bugOf(name: string | undefined): PlantedBug | undefined {
  if (name === undefined) return undefined;
  const bug = PLANTED_BUGS.find((one) => one === name);
  if (bug === undefined) throw new Error(`--bug is one of ${PLANTED_BUGS.join(", ")}`);
  return bug;
}

async function runOne(seed: number, bug: PlantedBug | undefined, storyLines: number): Promise<boolean> {
  const options = optionsOf(seed, bug);
  print(`options ${JSON.stringify(options, undefined, 1)}`);
  const startMs = performance.now();
  const result = await runSeed(options);
  const realMs = performance.now() - startMs;
  const { story, violation, verdict, ...rest } = result;
  if (storyLines > 0) print(story.last(storyLines));
  print(JSON.stringify(rest, undefined, 1));
  if (verdict !== undefined) {
    const { picture: _picture, failing: _failing, ...judged } = verdict;
    print(`history: ${JSON.stringify(judged)}`);
  }
  const speed = Math.round(result.simulatedMs / realMs);
  print(`${(result.simulatedMs / 1000).toFixed(1)} s simulated in ${(realMs / 1000).toFixed(2)} s: ${speed} times real time`);
  print(violation === undefined ? "all promises held" : `VIOLATION\n${violation}`);
  return violation === undefined;
}

async function runMany(first: number, last: number, untilMs: number, bug: PlantedBug | undefined): Promise<boolean> {
  let next = first;
  const total = {
    seeds: 0,
    simulatedMs: 0,
    realMs: 0,
    operations: 0,
    answered: 0,
    entries: 0,
    elections: 0,
    snapshots: 0,
    events: 0,
    undecided: 0,
    refused: 0,
  };
  const bad: number[] = [];
  const take = (): Order | undefined => {
    if (next > last || performance.now() > untilMs || (bug !== undefined && bad.length > 0)) return undefined;
    return { seed: next++, bug };
  };
  const work = () =>
    new Promise<void>((resolve, reject) => {
      const worker = new Worker(new URL("./worker.ts", import.meta.url));
      const give = () => {
        const order = take();
        if (order !== undefined) worker.postMessage(order);
        else worker.terminate().then(() => resolve(), reject);
      };
      worker.on("error", reject);
      worker.on("message", (summary: Summary) => {
        total.seeds++;
        total.simulatedMs += summary.simulatedMs;
        total.realMs += summary.realMs;
        total.operations += summary.operations;
        total.answered += summary.answered;
        total.entries += summary.entries;
        total.elections += summary.elections;
        total.snapshots += summary.snapshots;
        total.events += summary.events;
        total.undecided += summary.decided ? 0 : 1;
        total.refused += summary.refusedToStart;
        if (summary.violation !== undefined) {
          bad.push(summary.seed);
          print(`seed ${summary.seed}: ${summary.violation.split("\n").slice(0, 6).join("\n  ").slice(0, 1500)}`);
        }
        give();
      });
      give();
    });
  await Promise.all(Array.from({ length: Number(values.workers ?? 2) }, work));
  const speed = Math.round(total.simulatedMs / total.realMs);
  const hours = (total.simulatedMs / 3_600_000).toFixed(2);
  print(`${total.seeds} seeds (${first} to ${next - 1}), ${hours} hours simulated, ${speed} times real time on one core`);
  print(`${total.operations} operations (${total.answered} answered), ${total.entries} entries, ${total.elections} elections`);
  print(`${total.snapshots} snapshots sent, ${total.events} events, ${total.refused} damaged members refused to start`);
  print(`${total.undecided} histories undecided`);
  print(bad.length === 0 ? "all promises held" : `VIOLATIONS in ${bad.length} seeds: ${bad.sort((a, b) => a - b).join(" ")}`);
  return bad.length === 0;
}

async function main(): Promise<boolean> {
  const bug = bugOf(values.bug);
  if (values.seed !== undefined) return runOne(Number(values.seed), bug, Number(values.story ?? 0));
  if (values.seeds !== undefined) {
    const [first, last] = values.seeds.split("..").map(Number);
    return runMany(first, last ?? first, Number.POSITIVE_INFINITY, bug);
  }
  if (values.minutes !== undefined) {
    return runMany(Number(values.from ?? 1), Number.MAX_SAFE_INTEGER, performance.now() + Number(values.minutes) * 60_000, bug);
  }
  throw new Error("one of --seed N, --seeds A..B, --minutes M is needed");
}

process.exitCode = (await main()) ? 0 : 1;

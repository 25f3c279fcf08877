/**
 * Plants each bug of the list and says which layer catches it; the command is described in `help`.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { editOf, fileOf } from "@quorate/sim";
import { readArguments, valueOption } from "../../scripts/dev/command-line.ts";
import { type Found, isRaft, runClusters, runSimulator, runTests } from "./layers.ts";
import { MUTANTS, type Mutant } from "./list.ts";
import { problemsOf } from "./quick.ts";
import { isCaught, type Outcome, type Results, readResults, writeResults } from "./results.ts";
import { mergeTable } from "./table.ts";

const help = `./dev mutants [OPTIONS]

Plants bugs in the members' source, one by one, and reports which tests catch them.

Exits with 1 if a bug is not caught or its tests cannot run, with 2 for a wrong command line.`;

const { values } = readArguments(help, {
  only: valueOption("bugs whose name or file contains TEXT"),
  from: valueOption("start at the first bug whose name contains TEXT, in the order of --list"),
  layer: valueOption(
    "only tests or only sim (default: both; a bug in Raft also in random clusters of Raft machines)",
  ),
  quick: {
    type: "boolean",
    describe: "plant nothing; check that each place exists once and that the change parses",
  },
  first: { type: "boolean", describe: "stop at the first layer that catches a bug" },
  results: valueOption(
    "store results in FILE (JSON) and skip bugs that it contains, for a run in parts",
  ),
  minutes: valueOption("start no further bug after N minutes"),
  list: { type: "boolean", describe: "print the names" },
  write: {
    type: "boolean",
    describe: "write the results to the table in docs/evidence/planted-bugs.md",
  },
});

const print = (text: string) => process.stdout.write(`${text}\n`);
const DOCS = join(import.meta.dirname, "../../docs/evidence/planted-bugs.md");

/** Runs the layers that were asked for and have not run yet. */
async function layersOf(mutant: Mutant, earlier: Outcome): Promise<Outcome> {
  const { layer, first = false } = values;
  const edit = editOf(mutant);
  let outcome = earlier;
  const isDone = () => first && isCaught(outcome);
  if (layer !== "sim" && outcome.tests === undefined && !isDone())
    outcome = { ...outcome, tests: (await runTests(edit, mutant.tests ?? [])) ?? null };
  if (layer !== "tests" && outcome.search === undefined && !isDone()) {
    let search = await runSimulator(edit, mutant.sim);
    if (search === undefined && isRaft(edit)) search = await runClusters(edit);
    outcome = { ...outcome, search: search ?? null };
  }
  return outcome;
}

function textOf(outcome: Outcome): string {
  const found = [outcome.tests, outcome.search].filter((one): one is Found => Boolean(one));
  if (found.length === 0) return "NOT CAUGHT";
  return found
    .map(
      ({ layer, by, seeds, seconds }) =>
        `${layer}${seeds === undefined ? "" : `, seed ${seeds}`}, ${seconds.toFixed(0)} s: ${by}`,
    )
    .join(" | ");
}

/** Plants them one after the other, and adds to the rows; the exit code. */
async function runAll(chosen: readonly Mutant[], rows: Results, maxMs: number): Promise<number> {
  const startMs = performance.now();
  const done: Outcome[] = [];
  let broken = 0;
  for (const mutant of chosen) {
    if (performance.now() - startMs > maxMs) break;
    const earlier = rows.get(mutant.name) ?? {};
    const outcome = await layersOf(mutant, earlier).catch((error: Error) => error);
    if (outcome instanceof Error) {
      broken++;
      print(`${mutant.name}: NOT JUDGED: ${outcome.message}`);
      continue;
    }
    rows.set(mutant.name, outcome);
    done.push(outcome);
    print(`${mutant.name}: ${textOf(outcome)}`);
    if (values.results !== undefined && outcome !== earlier) writeResults(values.results, rows);
    if (values.write === true) writeFileSync(DOCS, mergeTable(readFileSync(DOCS, "utf8"), rows));
  }
  const caught = done.filter(isCaught).length;
  const left = chosen.length - done.length - broken;
  const rest = [
    ...(broken === 0 ? [] : [`${broken} not judged`]),
    ...(left === 0 ? [] : [`${left} left for another run`]),
  ];
  print([`${caught} of ${done.length} caught`, ...rest].join("; "));
  return caught === done.length && broken === 0 ? 0 : 1;
}

async function main(): Promise<number> {
  const { layer, only, from = "", minutes } = values;
  const refuse = (text: string) => {
    process.stderr.write(`mutants: ${text}\n`);
    return 2;
  };
  if (layer !== undefined && layer !== "tests" && layer !== "sim")
    return refuse(`--layer ${layer}: it is tests or sim`);
  if (minutes !== undefined && !/^[1-9]\d{0,4}$/.test(minutes))
    return refuse(`--minutes ${minutes}: it is a whole number from 1 to 99999`);
  const begin = MUTANTS.findIndex(({ name }) => name.includes(from));
  if (begin < 0) return refuse(`--from ${from}: no mutant has that in its name; --list shows them`);
  const chosen = MUTANTS.slice(begin).filter(
    ({ name, at }) => only === undefined || name.includes(only) || at.includes(only),
  );
  if (chosen.length === 0)
    return refuse(`--only ${only}: no mutant has that in its name or file; --list shows them`);
  if (values.list === true) {
    for (const mutant of chosen) print(`${mutant.name}  (packages/${fileOf(mutant)})`);
    return 0;
  }
  const problems = problemsOf(chosen);
  for (const problem of problems) print(problem);
  if (problems.length > 0 || values.quick === true) return problems.length > 0 ? 1 : 0;
  let rows: Results = new Map();
  try {
    if (values.results !== undefined) rows = readResults(values.results);
  } catch (error) {
    return refuse((error as Error).message);
  }
  return await runAll(
    chosen,
    rows,
    minutes === undefined ? Number.POSITIVE_INFINITY : Number(minutes) * 60_000,
  );
}

process.exitCode = await main();

/** Plants each bug of the list and says which layer catches it; the command is described in `help`. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Found, runRandomClusters, runSimulator, runTests } from "./layers.ts";
import { MUTANTS } from "./list.ts";
import type { Mutant } from "./mutant.ts";
import { problemsOf } from "./quick.ts";
import { mergeTable } from "./table.ts";

const help = `npm run mutants -- OPTIONS: plants bugs in the members' source, one after the other, and looks which tests catch them

  --only TEXT     those whose name or file contains it
  --layer NAME    tests or sim alone (both, and Raft's random clusters where the others catch nothing)
  --quick         plants nothing: each place is in the source once, and reads as TypeScript with the bug in it
  --list          the names
  --write         puts what came of it into the table of docs/correctness.md; other rows stay
  --help          prints this

Ends with 1 if no layer catches a bug, with 2 if the command line makes no sense.`;

const { values } = (() => {
  try {
    return parseArgs({
      options: {
        only: { type: "string" },
        layer: { type: "string" },
        quick: { type: "boolean" },
        list: { type: "boolean" },
        write: { type: "boolean" },
        help: { type: "boolean" },
      },
    });
  } catch (error) {
    process.stderr.write(`mutants: ${(error as Error).message.split(". To specify")[0]}\n\n${help}\n`);
    process.exit(2);
  }
})();

const print = (text: string) => process.stdout.write(`${text}\n`);
const DOCS = join(import.meta.dirname, "../../docs/correctness.md");

async function layersOf(mutant: Mutant): Promise<Found[]> {
  const found: Found[] = [];
  const note = (one: Found | undefined) => {
    if (one !== undefined) found.push(one);
  };
  if (values.layer !== "sim") note(await runTests(mutant));
  if (values.layer !== "tests") note(await runSimulator(mutant));
  const isRafts = mutant.file.startsWith("raft/") && mutant.maxSeeds === 40;
  if (values.layer === undefined && isRafts && found.length === 0) note(await runRandomClusters(mutant));
  return found;
}

async function main(): Promise<number> {
  if (values.layer !== undefined && values.layer !== "tests" && values.layer !== "sim") {
    process.stderr.write(`mutants: --layer ${values.layer}: it is tests or sim\n`);
    return 2;
  }
  const { only } = values;
  const chosen = MUTANTS.filter(({ name, file }) => only === undefined || name.includes(only) || file.includes(only));
  if (chosen.length === 0) {
    process.stderr.write(`mutants: --only ${only}: no mutant has that in its name or file; --list shows them\n`);
    return 2;
  }
  if (values.list === true) {
    for (const { name, file } of chosen) print(`${name}  (packages/${file})`);
    return 0;
  }
  const problems = problemsOf(chosen);
  for (const problem of problems) print(problem);
  if (problems.length > 0 || values.quick === true) return problems.length > 0 ? 1 : 0;
  const rows = new Map<string, readonly Found[]>();
  let missed = 0;
  for (const mutant of chosen) {
    const found = await layersOf(mutant);
    rows.set(mutant.name, found);
    if (found.length === 0) missed++;
    const texts = found.map(
      ({ layer, by, seeds, seconds }) => `${layer}${seeds === undefined ? "" : `, seed ${seeds}`}, ${seconds.toFixed(0)} s: ${by}`,
    );
    print(`${mutant.name}: ${texts.length === 0 ? "NOT CAUGHT" : texts.join(" | ")}`);
    if (values.write === true) writeFileSync(DOCS, mergeTable(readFileSync(DOCS, "utf8"), rows));
  }
  print(`${chosen.length - missed} of ${chosen.length} caught`);
  return missed === 0 ? 0 : 1;
}

if (values.help === true) print(help);
else process.exitCode = await main();

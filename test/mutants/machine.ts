/** Plants changes that a machine makes, and says which of them no test sees; see `usage`. */
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { SeededRandom } from "@quorate/host";
import { count, readArguments, refuse } from "../../scripts/dev/command-line.ts";
import { changesOf, type MachineChange } from "./changes.ts";
import { type Covered, coverageOf, runs } from "./covering.ts";
import { runSimulator, runTests } from "./layers.ts";

const usage = `./dev mutants machine (--files PATTERN | --changed) [OPTIONS]: changes that a machine makes to files

Changes the files one place at a time while tests load them (no file is written), and runs the tests
that run the place: the package's, quickest first. Exits with 1 if a change survives, with 2 for a
wrong command line.`;

const ROOT = join(import.meta.dirname, "../..");
const PACKAGES = join(ROOT, "packages");
/** Packages whose tests stand with another package too. */
const TESTED_BY: Readonly<Record<string, readonly string[]>> = {
  member: ["server"],
  services: ["server"],
};
/** A run that takes so much longer than without a change has seen it. */
const MAX_RUN_FACTOR = 5;
const MIN_RUN_MS = 15_000;
/** What is said of a change with which the file is no module any more; no test is needed. */
const LOADS_NOT = "the file does not load";

interface Chosen extends MachineChange {
  readonly file: string;
}

/** One change that was tried; a line of --results. */
interface Tried {
  readonly file: string;
  readonly what: string;
  readonly line: number;
  readonly killed: boolean;
  /** The test or the seed that saw it, or why nothing could. */
  readonly by: string;
  readonly seconds: number;
}

const keyOf = ({ file, line, what }: Pick<Tried, "file" | "line" | "what">) =>
  `${file}\0${line}\0${what}`;

/** Files of the packages that differ from those of the branch main. */
function changedFiles(): string[] {
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: ROOT, encoding: "utf8" }).split("\n");
  const base = git("merge-base", "main", "HEAD")[0]!;
  return git("diff", "--name-only", "--diff-filter=d", base, "--", "packages/*/src/**/*.ts")
    .filter((file) => file !== "")
    .map((file) => file.slice("packages/".length));
}

/** All test files of a file's package, and of those that test it besides. */
function testsOf(file: string): string[] {
  const [owner] = file.split("/");
  return [owner!, ...(TESTED_BY[owner!] ?? [])]
    .flatMap((name) => globSync(`packages/${name}/test/**/*.test.ts`, { cwd: ROOT }))
    .filter((path) => basename(path) !== "mutants.test.ts")
    .sort();
}

/** So many of the changes, each once, in the order of their places. */
function draw<T>(changes: readonly T[], count: number, seed: number): T[] {
  const random = new SeededRandom(BigInt(seed));
  const places = changes.map((_, place) => place);
  const drawn: number[] = [];
  while (drawn.length < count && places.length > 0)
    drawn.push(...places.splice(random.below(places.length), 1));
  return drawn.sort((a, b) => a - b).map((place) => changes[place]!);
}

const print = (text: string) => process.stdout.write(`${text}\n`);

/** Runs the tests that run the place, the quickest first, and then seeds. */
async function tryOne(
  change: Chosen,
  covered: readonly Covered[],
  maxMs: number,
  seeds: number,
): Promise<Tried> {
  const startMs = performance.now();
  const { file, line, what, start } = change;
  const edit = { ...change, path: join(PACKAGES, file) };
  const tried = (killed: boolean, by: string): Tried => {
    const seconds = Math.round((performance.now() - startMs) / 100) / 10;
    return { file, what, line, killed, by, seconds };
  };
  const tests = covered.filter((one) => one.passes && runs(one, file, start));
  let left = 0;
  for (const { test, ms } of tests.sort((a, b) => a.ms - b.ms)) {
    if (performance.now() - startMs > maxMs) {
      left++;
      continue;
    }
    const by = await runTests(edit, [test], {
      maxMs: Math.max(MIN_RUN_MS, ms * MAX_RUN_FACTOR),
      isFirstEnough: true,
    }).catch(() => ({ by: LOADS_NOT }));
    if (by?.by === LOADS_NOT) return tried(true, LOADS_NOT);
    if (by !== undefined) return tried(true, `${basename(test, ".test.ts")}: ${by.by}`);
  }
  if (seeds > 0) {
    const sim = await runSimulator(edit, undefined, seeds);
    if (sim !== undefined) return tried(true, `seed ${sim.seeds}: ${sim.by}`);
  }
  const without = left === 0 ? "" : `, without ${left} slow ones`;
  return tried(false, tests.length === 0 ? "no test runs it" : `${tests.length} files${without}`);
}

const text = { type: "string", requiresArg: true } as const;
const many = { type: "string", array: true, requiresArg: true } as const;

async function main(): Promise<number> {
  const { values } = readArguments(usage, {
    files: { ...many, default: [], describe: "files to change, below packages; may be repeated" },
    changed: { type: "boolean", describe: "the files that differ from those of the branch main" },
    tests: {
      ...many,
      describe: "test files, from the root; else those of the package that run the place",
    },
    count: { ...text, default: "20", describe: "changes to draw" },
    seed: { ...text, default: "1", describe: "which are drawn" },
    seeds: { ...text, default: "0", describe: "seeds of the simulator for what tests do not see" },
    workers: { ...text, default: "2", describe: "changes that are tried at a time" },
    minutes: { ...text, default: "9999", describe: "start no further change after N minutes" },
    "max-ms": { ...text, default: "120000", describe: "no further test of a change after that" },
    results: {
      ...text,
      describe: "add a line of JSON for each change to FILE, and skip those that it holds",
    },
    again: { type: "boolean", describe: "try those of --results that survived once more" },
  });
  const startMs = performance.now();
  const [drawn, seed, workers, maxMs, minutes] = (
    ["count", "seed", "workers", "max-ms", "minutes"] as const
  ).map((name) => count(name, values[name]));
  if (!/^\d{1,4}$/.test(values.seeds)) refuse("--seeds must be a whole number below 10000");
  const patterns = values.files.map((pattern) => globSync(pattern, { cwd: PACKAGES }).sort());
  const files = [...new Set([...patterns.flat(), ...(values.changed ? changedFiles() : [])])];
  if (files.length === 0) refuse("--files: no file below packages matches");
  const all = files.flatMap((file) =>
    changesOf(readFileSync(join(PACKAGES, file), "utf8")).map((change) => ({ file, ...change })),
  );
  const chosen = draw<Chosen>(all, drawn!, seed!);
  const done = new Map<string, Tried>();
  const { results } = values;
  for (const line of results !== undefined && existsSync(results)
    ? readFileSync(results, "utf8").trimEnd().split("\n")
    : []) {
    const tried = JSON.parse(line) as Tried;
    if (tried.killed || values.again !== true) done.set(keyOf(tried), tried);
  }
  const tests = values.tests ?? [...new Set(files.flatMap(testsOf))];
  const covered = await coverageOf(tests, files, ({ test, ms, passes }) =>
    print(`${test}: ${(ms / 1000).toFixed(1)} s${passes ? "" : ", fails without a change"}`),
  );
  const open = chosen.filter((change) => !done.has(keyOf(change)));
  const work = async () => {
    const isOver = () => performance.now() - startMs > minutes! * 60_000;
    const next = () => (isOver() ? undefined : open.shift());
    for (let change = next(); change !== undefined; change = next()) {
      const tried = await tryOne(change, covered, maxMs!, Number(values.seeds));
      done.set(keyOf(tried), tried);
      if (results !== undefined) appendFileSync(results, `${JSON.stringify(tried)}\n`);
      const { file, line, what, killed, by, seconds } = tried;
      const place = `${file}:${line}: ${what.slice(0, 120)}`;
      print(`${killed ? "killed" : "SURVIVED"} ${place} (${by}; ${seconds} s)`);
    }
  };
  await Promise.all(Array.from({ length: workers! }, work));
  const tried = chosen.flatMap((change) => done.get(keyOf(change)) ?? []);
  const judged = tried.filter(({ by }) => by !== LOADS_NOT);
  const killed = judged.filter((one) => one.killed).length;
  const rest = chosen.length === tried.length ? "" : `; ${chosen.length - tried.length} not tried`;
  print(
    `${judged.length} of ${all.length} changes: ${killed} killed, ${judged.length - killed} not${rest}`,
  );
  return killed === judged.length ? 0 : 1;
}

process.exitCode = await main();

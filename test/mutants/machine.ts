/** Plants changes that a machine makes, and says which of them no test sees; see `usage`. */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { SeededRandom } from "@quorate/host";
import { count, readArguments, refuse } from "../../scripts/dev/command-line.ts";
import { changesOf, type MachineChange } from "./changes.ts";
import { runTests } from "./layers.ts";

const usage = `./dev mutants machine --files PATTERN [OPTIONS]: changes that a machine makes to files

Changes the files one place at a time while tests load them (no file is written), and runs the tests
that stand next to them. Exits with 1 if a change survives, with 2 for a wrong command line.`;

const ROOT = join(import.meta.dirname, "../..");
const PACKAGES = join(ROOT, "packages");

/** Test files of its package that import a file, or have its name; all if there are none. */
function testsOf(file: string): string[] {
  const [owner] = file.split("/");
  const all = globSync(`packages/${owner}/test/**/*.test.ts`, { cwd: ROOT }).sort();
  const name = basename(file, ".ts");
  const near = all.filter(
    (path) =>
      basename(path).startsWith(`${name}.`) ||
      readFileSync(join(ROOT, path), "utf8").includes(`/${name}.ts"`),
  );
  return near.length > 0 ? near : all;
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

const text = { type: "string", requiresArg: true } as const;
const many = { type: "string", array: true, requiresArg: true } as const;

async function main(): Promise<number> {
  const { values } = readArguments(usage, {
    files: { ...many, default: [], describe: "files to change, below packages; may be repeated" },
    tests: {
      ...many,
      describe: "test files, from the root; else those of the package that import the file",
    },
    count: { ...text, default: "20", describe: "changes to draw" },
    seed: { ...text, default: "1", describe: "which are drawn" },
    "max-ms": { ...text, default: "120000", describe: "time for the tests of one change" },
  });
  const { files } = values;
  const [drawn, seed, maxMs] = (["count", "seed", "max-ms"] as const).map((name) =>
    count(name, values[name]),
  );
  const found = files.flatMap((pattern) => globSync(pattern, { cwd: PACKAGES })).sort();
  if (found.length === 0) refuse("--files: no file below packages matches");
  const all = found.flatMap((file) =>
    changesOf(readFileSync(join(PACKAGES, file), "utf8")).map((change) => ({ file, ...change })),
  );
  const chosen = draw<MachineChange & { readonly file: string }>(all, drawn, seed);
  let killed = 0;
  for (const { file, line, what, before, after } of chosen) {
    const name = `${file}:${line}: ${what.slice(0, 120)}`;
    const tests = values.tests ?? testsOf(file);
    const by = await runTests(
      { name, file, before, after, tests, sim: "no" },
      { maxMs: maxMs, isFirstEnough: true },
    );
    if (by !== undefined) killed++;
    print(`${by === undefined ? "SURVIVED" : "killed"} ${name}${by ? ` (${by.by})` : ""}`);
  }
  print(
    `${chosen.length} of ${all.length} changes: ${killed} killed, ${chosen.length - killed} not`,
  );
  return killed === chosen.length ? 0 : 1;
}

process.exitCode = await main();

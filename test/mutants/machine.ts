/** Plants changes that a machine makes, and says which of them no test sees; see `help`. */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { SeededRandom } from "@quorate/host";
import { changesOf, type MachineChange } from "./changes.ts";
import { runTests } from "./layers.ts";

const help = `usage: npm run mutants:machine -- --files PATTERN [OPTIONS]

Changes the files one place at a time while tests load them (no file is written), and runs the tests
that stand next to them.

  --files PATTERN  files to change, below packages; may be given several times
  --tests PATTERN  test files to run, from the root; may be given several times (default: those of
                   the package that import the file or have its name)
  --count N        changes to draw (default 20)
  --seed S         which are drawn (default 1)
  --max-ms N       time for the tests of one change (default 120000); beyond it, it counts as killed
  --help           print this text

Exits with 1 if a change survives, with 2 for a wrong command line.`;

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

async function main(): Promise<number> {
  const text = { type: "string" } as const;
  const many = { type: "string", multiple: true } as const;
  const options = { files: many, tests: many, count: text, seed: text, "max-ms": text };
  let values: ReturnType<typeof parse>;
  const parse = () => parseArgs({ options: { ...options, help: { type: "boolean" } } }).values;
  const refuse = (problem: string) => {
    process.stderr.write(`mutants:machine: ${problem}\n\n${help}\n`);
    return 2;
  };
  try {
    values = parse();
  } catch (error) {
    return refuse((error as Error).message.split(". To specify")[0]!);
  }
  if (values.help === true) {
    print(help);
    return 0;
  }
  const { files = [], count = "20", seed = "1", "max-ms": maxMs = "120000" } = values;
  for (const [name, value] of Object.entries({ count, seed, "max-ms": maxMs }))
    if (!/^[1-9]\d{0,8}$/.test(value)) return refuse(`--${name} ${value}: it is a whole number`);
  const found = files.flatMap((pattern) => globSync(pattern, { cwd: PACKAGES })).sort();
  if (found.length === 0) return refuse("--files: no file below packages matches");
  const all = found.flatMap((file) =>
    changesOf(readFileSync(join(PACKAGES, file), "utf8")).map((change) => ({ file, ...change })),
  );
  const chosen = draw<MachineChange & { readonly file: string }>(all, Number(count), Number(seed));
  let killed = 0;
  for (const { file, line, what, before, after } of chosen) {
    const name = `${file}:${line}: ${what.slice(0, 120)}`;
    const tests = values.tests ?? testsOf(file);
    const by = await runTests(
      { name, file, before, after, tests, sim: "no" },
      { maxMs: Number(maxMs), isFirstEnough: true },
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

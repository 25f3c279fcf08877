/**
 * Writes docs/internals/packages.md: the packages with their sizes, and what each may import, from
 * the table that test/house checks. A size stays as it is while it is right within a tenth.
 *
 *   node scripts/gen-packages.ts           write it
 *   node scripts/gen-packages.ts --check   write nothing; exit 1 if it would change
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { directions } from "../test/house/directions.ts";
import { isRemoved } from "./contributed.ts";
import { readMode } from "./generator.ts";

const ROOT = join(import.meta.dirname, "..");
const PATH = join(ROOT, "docs/internals/packages.md");
const TOLERANCE = 0.1;

const HEAD = `# Packages

![Which package imports which](../pictures/packages.svg)

Each package has a README of one screen: what it is for, its entry points, its data path, what
always holds, and where to begin. A package may import the entry points of those in its row, and
nothing else of them; \`test/house\` holds that. "(t)" allows types only. The simulator and tests may
import all but kube-apiserver. One line of the program names that: without its folder and the line
the rest is whole (\`test/removal\`).

Files and lines are those of the code, without tests and generated code; a size is right within a
tenth. \`./dev gen\` writes this page.

| package | files | lines | may import | what it is |
|---|---|---|---|---|
`;

interface Size {
  readonly files: number;
  readonly lines: number;
}

/** The size of a package's code. */
function sizeOf(name: string): Size {
  const directory = join(ROOT, "packages", name);
  const texts = readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !/(?:^|\/)(?:test|testing|gen)\//.test(path))
    .map((path) => readFileSync(join(directory, path), "utf8"));
  const lines = texts.reduce((sum, text) => sum + text.split("\n").length - 1, 0);
  return { files: texts.length, lines };
}

/** The first sentence of a package's README. */
function purposeOf(name: string): string {
  const text = readFileSync(join(ROOT, "packages", name, "README.md"), "utf8");
  const [, first = ""] = /^# .*\n\n([\s\S]+?\.)\s/.exec(text) ?? [];
  return first.replace(/\s+/g, " ");
}

function importsOf(name: string): string {
  if (name === "sim") return "all but kube-apiserver";
  const imports = [...(directions[name] ?? [])];
  return imports.map(([other, kind]) => (kind === "types" ? `${other} (t)` : other)).join(", ");
}

/** The row of a package, with the size of the old row where that is near enough. */
function rowOf(name: string, oldRow: string | undefined): string {
  const [, , oldFiles = 0, oldLines = 0] = oldRow?.split("|").map(Number) ?? [];
  const now = sizeOf(name);
  const keep = (old: number, size: number): number =>
    Math.abs(size - old) <= size * TOLERANCE ? old : size;
  return [
    "",
    ` [${name}](../../packages/${name}/README.md) `,
    ` ${keep(oldFiles, now.files)} `,
    ` ${keep(oldLines, now.lines)} `,
    ` ${importsOf(name)} `,
    ` ${purposeOf(name)} `,
    "",
  ].join("|");
}

function main(args: string[]): number {
  const mode = readMode("gen-packages.ts", "docs/internals/packages.md", args);
  const old = readFileSync(PATH, "utf8");
  const oldRows = new Map(
    [...old.matchAll(/^\| \[([\w-]+)\].*$/gm)].map(({ 0: row, 1: name }) => [name!, row]),
  );
  const rows = [...Object.keys(directions), "sim"].map((name) => {
    const oldRow = oldRows.get(name);
    return isRemoved(`packages/${name}`) && oldRow !== undefined ? oldRow : rowOf(name, oldRow);
  });
  const page = `${HEAD}${rows.join("\n")}\n`;
  if (page === old) return 0;
  if (mode === "write") {
    writeFileSync(PATH, page);
    return 0;
  }
  console.error("out of date: docs/internals/packages.md; run node scripts/gen-packages.ts");
  return 1;
}

process.exitCode = main(process.argv.slice(2));

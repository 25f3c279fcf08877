/**
 * Figures that may only go down: banned words by place, files over 400 lines, functions over 70
 * lines. Each kind has a file in ratchets/. A figure above its entry is refused, and so is one
 * below it, so that what was gained is kept: `node test/house/ratchet.ts` lowers the entries.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { longFunctions, maxFunctionLines } from "./functions.ts";
import { checkLanguage } from "./language.ts";
import { maxFileLines } from "./text.ts";
import { type Finding, isCode, readTree, repositoryRoot, type SourceFile } from "./tree.ts";

/** Figures by name, in order: one for most kinds, one for each function of a file. */
export type Figures = Readonly<Record<string, readonly number[]>>;

export const kinds = ["language", "files", "functions"] as const;
export type Kind = (typeof kinds)[number];

/** Banned words, counted by package or top directory ("root" for the files beside them). */
export function languageFigures(files: readonly SourceFile[]): Figures {
  const counts = new Map<string, number>();
  for (const { where } of checkLanguage(files)) {
    const place = placeOf(where);
    counts.set(place, (counts.get(place) ?? 0) + 1);
  }
  return sorted([...counts].map(([place, count]) => [place, [count]]));
}

/** The package or top directory of a path. */
export function placeOf(path: string): string {
  const parts = path.split("/");
  if (parts.length === 1) return "root";
  return parts[0] === "packages" ? parts.slice(0, 2).join("/") : parts[0];
}

/** Code files over `maxFileLines`, with their lines. */
export function fileFigures(files: readonly SourceFile[]): Figures {
  return sorted(
    files
      .filter(isCode)
      .map((file): [string, number[]] => [file.path, [file.text.split("\n").length - 1]])
      .filter(([, [lines]]) => lines! > maxFileLines),
  );
}

/** Files with functions over `maxFunctionLines`, with the lines of each, longest first. */
export function functionFigures(
  root: string = repositoryRoot,
  places: readonly string[] = ["packages", "test", "scripts", "bench"],
): Figures {
  const byFile = new Map<string, number[]>();
  for (const { path, lines } of longFunctions(root, places)) {
    byFile.set(path, [...(byFile.get(path) ?? []), lines]);
  }
  return sorted([...byFile].map(([path, lines]) => [path, lines.sort((a, b) => b - a)]));
}

function sorted(entries: [string, readonly number[]][]): Figures {
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

const units: Readonly<Record<Kind, string>> = {
  language: "banned words (node test/house/ratchet.ts words)",
  files: `lines (a file may have ${maxFileLines})`,
  functions: `lines of a function (it may have ${maxFunctionLines})`,
};

/** Figures above `allowed`, and entries of `allowed` that the tree no longer reaches. */
export function compareFigures(kind: Kind, now: Figures, allowed: Figures): Finding[] {
  const names = [...new Set([...Object.keys(now), ...Object.keys(allowed)])].sort();
  return names.flatMap((where) => {
    const have = now[where] ?? [];
    const may = allowed[where] ?? [];
    const length = Math.max(have.length, may.length);
    return Array.from({ length }, (_, at) => [have[at] ?? 0, may[at] ?? 0] as const)
      .filter(([figure, limit]) => figure !== limit)
      .map(([figure, limit]) => {
        const text = `${figure} ${units[kind]}, the ratchet is at ${limit}`;
        const advice = "lower it: node test/house/ratchet.ts";
        return { where, what: figure > limit ? text : `${text}; ${advice}` };
      });
  });
}

/** The entries of one kind. */
export function readRatchet(kind: Kind): Figures {
  return JSON.parse(readFileSync(pathOf(kind), "utf8"));
}

function pathOf(kind: Kind): string {
  return join(repositoryRoot, "test/house/ratchets", `${kind}.json`);
}

/** The tree's figures of one kind. */
export function figuresNow(kind: Kind, files: readonly SourceFile[]): Figures {
  if (kind === "language") return languageFigures(files);
  return kind === "files" ? fileFigures(files) : functionFigures();
}

const usage = `usage: node test/house/ratchet.ts [raise | words [PATH...]]

Lowers the entries of test/house/ratchets to the tree's figures.

  raise    also raises them; only for a reformat or a move of files
  words    prints the banned words below each PATH (all without one), changes nothing
`;

function main(args: readonly string[]): number {
  if (args[0] === "--help" || args[0] === "-h") {
    process.stdout.write(usage);
    return 0;
  }
  const files = readTree();
  if (args[0] === "words") {
    const below = args.slice(1);
    const findings = checkLanguage(files).filter(
      ({ where }) => below.length === 0 || below.some((path) => where.startsWith(path)),
    );
    for (const { where, what } of findings) process.stdout.write(`${where}: ${what}\n`);
    return 0;
  }
  if (args.length > 1 || (args.length === 1 && args[0] !== "raise")) {
    process.stderr.write(usage);
    return 2;
  }
  let status = 0;
  for (const kind of kinds) {
    const now = figuresNow(kind, files);
    const above = compareFigures(kind, now, readRatchet(kind)).filter(
      ({ what }) => !what.endsWith("ratchet.ts"),
    );
    if (above.length > 0 && args[0] !== "raise") {
      for (const { where, what } of above) process.stderr.write(`${where}: ${what}\n`);
      status = 1;
      continue;
    }
    const lines = Object.entries(now).map(([name, one]) => `  "${name}": [${one.join(", ")}]`);
    const body = lines.length === 0 ? "{}" : `{\n${lines.join(",\n")}\n}`;
    writeFileSync(pathOf(kind), `${body}\n`);
  }
  return status;
}

if (process.argv[1] === import.meta.filename) process.exitCode = main(process.argv.slice(2));

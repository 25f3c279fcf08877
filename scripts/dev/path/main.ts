/**
 * `./dev path KIND`: the files and functions that run because of one request, in the order of their
 * first calls (measure.ts). With --write the lists of docs/internals/architecture.md.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { orRefuse, readArguments, refuse, switchOption } from "../command-line.ts";
import { ROOT } from "../commands.ts";
import { sectionOf, withSection } from "./docs.ts";
import { KINDS } from "./kinds.ts";
import { measurePath, type RanFile } from "./measure.ts";

const usage = `./dev path KIND [OPTIONS]: the files and functions that one warm request runs

Starts three members as processes, and counts with V8's precise coverage. What runs without a request is
taken off.

${Object.entries(KINDS)
  .map(([name, { about }]) => `  ${name.padEnd(12)}${about}`)
  .join("\n")}`;

const PAGE = join(ROOT, "docs/internals/architecture.md");

function print(files: readonly RanFile[]): void {
  const sum = (of: (file: RanFile) => number): number =>
    files.reduce((total, file) => total + of(file), 0);
  for (const { path, functions, ranLines, fileLines } of files) {
    console.log(`${path}  ${ranLines} of ${fileLines} lines`);
    for (const { name, first, last } of functions) console.log(`    ${first}-${last}  ${name}`);
  }
  console.log(
    `${files.length} files of ${sum((file) => file.fileLines)} lines; ` +
      `${sum((file) => file.functions.length)} functions of ${sum((file) => file.ranLines)} lines`,
  );
}

const { values, positionals } = readArguments(
  usage,
  {
    all: switchOption("every kind"),
    write: switchOption("writes the lists of docs/internals/architecture.md"),
  },
  "KIND",
);
const names = Object.keys(KINDS);
const chosen = values.all ? names : positionals;
if (chosen.length === 0) refuse(`a kind is missing: ${names.join(", ")}`);
for (const kind of chosen)
  if (!names.includes(kind)) refuse(`"${kind}" is no kind; there are ${names.join(", ")}`);
for (const kind of chosen) {
  const files = await measurePath(kind);
  print(files);
  if (!values.write) continue;
  const page = readFileSync(PAGE, "utf8");
  writeFileSync(
    PAGE,
    orRefuse(() => withSection(page, kind, sectionOf(kind, files))),
  );
}

/**
 * Writes the manual pages, made from the declarations of commands, flags and options.
 *
 *   node scripts/gen-man.ts --out DIR   DIR/quorate.8, DIR/quoratectl.1, DIR/quorateutl.1; look at
 *                                       one with man -l FILE
 */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments, refuse, valueOption } from "./dev/command-line.ts";
import { manPages } from "./man/pages.ts";

const { values } = readArguments(
  "./dev man --out DIR: writes the man pages of all programs, from their declarations",
  { out: valueOption("the directory") },
);
if (values.out === undefined) refuse("--out is missing");
mkdirSync(values.out, { recursive: true });
for (const [name, text] of await manPages()) writeFileSync(join(values.out, name), text);

/**
 * Writes the manual pages, made from the declarations of commands, flags and options.
 *
 *   node scripts/gen-man.ts --out DIR   DIR/quorate.8, DIR/quoratectl.1, DIR/quorateutl.1; look at
 *                                       one with man -l FILE
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { manPages } from "./man/pages.ts";

const usage = `usage: node scripts/gen-man.ts --out DIR

Writes the man pages of all programs to DIR.
`;

function main(args: readonly string[]): number {
  if (args[0] === "--help" || args[0] === "-h") {
    process.stdout.write(usage);
    return 0;
  }
  const [flag, dir] = args[0]?.startsWith("--out=")
    ? ["--out", args[0].slice("--out=".length)]
    : args;
  if (flag !== "--out" || dir === undefined || dir === "" || args.length > 2) {
    process.stderr.write(usage);
    return 2;
  }
  mkdirSync(dir, { recursive: true });
  for (const [name, text] of manPages()) writeFileSync(join(dir, name), text);
  return 0;
}

process.exitCode = main(process.argv.slice(2));

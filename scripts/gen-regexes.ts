/**
 * Writes test/house/regexes-proved.json: the regular expressions of shipped code that are proved
 * to take time linear in their text. Only new ones are proved, unless recheck's version changed.
 *
 *   node scripts/gen-regexes.ts           write it
 *   node scripts/gen-regexes.ts --check   write nothing; exit 1 if it would change
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROVED, provedList } from "../test/house/regexes.ts";
import { readTree, repositoryRoot } from "../test/house/tree.ts";
import { REMOVED } from "./contributed.ts";
import { readMode } from "./generator.ts";

function main(args: string[]): number {
  const mode = readMode("gen-regexes.ts", PROVED, args);
  // A tree without one of its packages needs fewer expressions.
  if (REMOVED.length > 0) return 0;
  const path = join(repositoryRoot, PROVED);
  const text = `${JSON.stringify(provedList(readTree()), undefined, 2)}\n`;
  if (text === readFileSync(path, "utf8")) return 0;
  if (mode === "write") {
    writeFileSync(path, text);
    return 0;
  }
  console.error(`out of date: ${PROVED}; run node scripts/gen-regexes.ts`);
  return 1;
}

process.exitCode = main(process.argv.slice(2));

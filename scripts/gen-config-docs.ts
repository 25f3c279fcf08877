/**
 * Writes docs/reference/configuration.md from the declarations of the server's options.
 *
 *   node scripts/gen-config-docs.ts           write it
 *   node scripts/gen-config-docs.ts --check   write nothing; exit 1 if it would change
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { configurationDocs } from "@quorate/server";
import { readMode } from "./generator.ts";

const path = join(import.meta.dirname, "../docs/reference/configuration.md");

function main(args: string[]): number {
  const mode = readMode(
    "gen-config-docs.ts",
    "docs/reference/configuration.md from the declarations of the options",
    args,
  );
  const text = configurationDocs();
  if (existsSync(path) && readFileSync(path, "utf8") === text) return 0;
  if (mode === "check") {
    console.error(
      "docs/reference/configuration.md is out of date: run node scripts/gen-config-docs.ts",
    );
    return 1;
  }
  writeFileSync(path, text);
  return 0;
}

process.exitCode = main(process.argv.slice(2));

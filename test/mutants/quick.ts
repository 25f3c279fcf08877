/** What can be said of mutants without running them. */
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { replacePlaces } from "@quorate/host/testing";
import { misplaced } from "@quorate/sim";
import type { Mutant } from "./mutant.ts";

/** Mutants that cannot be planted any more, one line each; empty if all can. */
export function problemsOf(mutants: readonly Mutant[]): string[] {
  const problems: string[] = [];
  const names = new Set<string>();
  for (const mutant of mutants) {
    const { name, file, before, after } = mutant;
    if (names.has(name)) problems.push(`${name}: there are two of this name`);
    names.add(name);
    const wrong = misplaced(mutant);
    if (wrong !== undefined) {
      problems.push(`${name}: ${wrong}`);
      continue;
    }
    const source = readFileSync(join(import.meta.dirname, "../../packages", file), "utf8");
    try {
      stripTypeScriptTypes(replacePlaces(source, before, after));
    } catch (error) {
      problems.push(
        `${name}: with the bug in it packages/${file} does not read as TypeScript: ${(error as Error).message}`,
      );
    }
  }
  return problems;
}

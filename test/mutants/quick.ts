/** What can be said of mutants without running them. */
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { edited } from "@quorate/host/testing";
import { editOf } from "@quorate/sim";
import type { Mutant } from "./list.ts";

/** Mutants that cannot be planted any more, one line each; empty if all can. */
export function problemsOf(mutants: readonly Mutant[]): string[] {
  const problems: string[] = [];
  const names = new Set<string>();
  for (const mutant of mutants) {
    const { name } = mutant;
    if (names.has(name)) problems.push(`${name}: there are two of this name`);
    names.add(name);
    try {
      const edit = editOf(mutant);
      stripTypeScriptTypes(edited(readFileSync(edit.path, "utf8"), edit));
    } catch (error) {
      problems.push(`${name}: ${(error as Error).message}`);
    }
  }
  return problems;
}

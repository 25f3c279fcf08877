/** Patterns in expressions pay for their compilation, which takes longer than most matches. */
import type { Pattern, Patterns } from "../../validation/patterns.ts";
import { budget } from "./budget.ts";

const COMPILATION_COST = 2000;
const COST_PER_CHARACTER = 50;

/** Throws PatternError, or BudgetError. */
export function compilePattern(patterns: Patterns, source: string): Pattern {
  if (!patterns.has(source)) budget.charge(COMPILATION_COST + source.length * COST_PER_CHARACTER);
  return patterns.compile(source);
}

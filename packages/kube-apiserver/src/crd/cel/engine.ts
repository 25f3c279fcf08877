/**
 * The CEL library, loaded with the first rule, and the part of it that is used here. Its parser,
 * type checker and evaluator are used; regular expressions, budgets and Kubernetes' functions are
 * ours.
 */
import { loadPatterns } from "../validation/patterns.ts";
import { registerFunctions } from "./functions/register.ts";
import type { CelEngine, CelEnvironment, CelOptional } from "./library.ts";

/** Longer or deeper expressions are refused. */
export const EXPRESSION_LIMITS = {
  maxAstNodes: 10_000,
  maxDepth: 100,
  maxListElements: 1000,
  maxMapEntries: 1000,
  maxCallArguments: 32,
};

let loaded: Promise<CelEngine> | undefined;

/** Loads the library once. */
export function loadCel(): Promise<CelEngine> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<CelEngine> {
  const [library, patterns] = await Promise.all([import("@marcbachmann/cel-js"), loadPatterns()]);
  // Arguments of format() have several types.
  const options = {
    enableOptionalTypes: true,
    homogeneousAggregateLiterals: false,
    limits: EXPRESSION_LIMITS,
  };
  const base = new library.Environment(options) as unknown as CelEnvironment;
  const optional = library.Optional as unknown as CelOptional;
  registerFunctions(base, optional, patterns);
  const functions = new Set(base.getDefinitions().functions.map(({ name }) => name));
  return { base, optional, patterns, functions };
}

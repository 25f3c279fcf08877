/** The environment of expressions, made with the first rule. */
import { loadPatterns, type Patterns } from "../validation/patterns.ts";
import { registerFunctions } from "./functions/register.ts";
import { Environment } from "./lang/environment.ts";

export interface CelEngine {
  /** With all functions; it is extended for each rule. */
  readonly base: Environment;
  readonly patterns: Patterns;
}

let loaded: Promise<CelEngine> | undefined;

/** Makes the environment once. */
export function loadCel(): Promise<CelEngine> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<CelEngine> {
  const patterns = await loadPatterns();
  const base = new Environment();
  registerFunctions(base, patterns);
  return { base, patterns };
}

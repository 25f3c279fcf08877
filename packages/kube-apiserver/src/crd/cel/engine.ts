/** What compiles expressions; it is loaded with the first one. */
import type { Patterns } from "../validation/patterns.ts";
import type { Environment } from "./lang/environment.ts";
import type { TypeKind } from "./lang/types.ts";
import type { Program } from "./program.ts";

export interface CelEngine {
  /** With all functions; it is extended for each rule. */
  readonly base: Environment;
  readonly patterns: Patterns;
  /** See program.ts. Throws CompileError. */
  compile(expression: string, wanted: TypeKind | "any", environment: Environment): Program;
}

let loaded: Promise<CelEngine> | undefined;

/** Makes the environment once. */
export function loadCel(): Promise<CelEngine> {
  loaded ??= import("./library.ts").then(({ makeEngine }) => makeEngine());
  return loaded;
}

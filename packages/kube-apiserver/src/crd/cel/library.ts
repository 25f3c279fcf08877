/** The environment of expressions with all functions, and their compiler. */
import { loadPatterns, type Patterns } from "../validation/patterns.ts";
import { registerAuthorization } from "./functions/authorization.ts";
import { registerFormats } from "./functions/formats.ts";
import { registerLists } from "./functions/lists.ts";
import { registerNetworks } from "./functions/networks.ts";
import { registerOptionals } from "./functions/optionals.ts";
import { registerQuantities } from "./functions/quantities.ts";
import { registerSemver } from "./functions/semver.ts";
import { registerStrings } from "./functions/strings.ts";
import { registerUrls } from "./functions/urls.ts";
import { Environment } from "./lang/environment.ts";
import { registerStandard } from "./lang/standard.ts";
import type { TypeKind } from "./lang/types.ts";
import { EvaluationError, mapKey } from "./lang/values.ts";
import { compile, type Program } from "./program.ts";

export interface CelEngine {
  /** With all functions; it is extended for each rule. */
  readonly base: Environment;
  readonly patterns: Patterns;
  /** See program.ts. Throws CompileError. */
  compile(expression: string, wanted: TypeKind | "any", environment: Environment): Program;
}

/** Makes the environment; it is extended for each rule. */
export async function makeEngine(): Promise<CelEngine> {
  const patterns = await loadPatterns();
  const base = new Environment();
  registerFunctions(base, patterns);
  return { base, patterns, compile: (...given) => compile(...given, patterns) };
}

function registerFunctions(environment: Environment, patterns: Patterns): void {
  registerStandard(environment, patterns);
  registerOptionals(environment);
  registerStrings(environment, patterns);
  registerLists(environment);
  registerQuantities(environment);
  registerUrls(environment);
  registerNetworks(environment);
  registerSemver(environment);
  registerFormats(environment);
  registerAuthorization(environment);
  registerMapInserts(environment);
}

type Entries = Map<unknown, unknown>;

/** Of the macros transformMap and transformMapEntry, whose map grows in place. */
function registerMapInserts(environment: Environment): void {
  const insert = (map: Entries, key: unknown, value: unknown): Entries => {
    const name = mapKey(key);
    if (name === undefined) throw new EvaluationError("unsupported key type");
    if (map.has(name)) throw new EvaluationError(`insert failed: key ${name} already exists`);
    return map.set(name, value);
  };
  environment
    .function("cel.@mapInsert(map<K, V>, K, V): map<K, V>", insert)
    .function("cel.@mapInsert(map<K, V>, map<K, V>): map<K, V>", (map: Entries, more: Entries) => {
      for (const [key, value] of more) insert(map, key, value);
      return map;
    });
}

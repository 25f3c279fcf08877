/** All functions of Kubernetes' expressions (apiserver: pkg/cel/environment/base.go). */
import type { Patterns } from "../../validation/patterns.ts";
import type { Environment } from "../lang/environment.ts";
import { registerStandard } from "../lang/standard.ts";
import { EvaluationError, mapKey } from "../lang/values.ts";
import { registerAuthorization } from "./authorization.ts";
import { registerFormats } from "./formats.ts";
import { registerLists } from "./lists.ts";
import { registerNetworks } from "./networks.ts";
import { registerOptionals } from "./optionals.ts";
import { registerQuantities } from "./quantities.ts";
import { registerSemver } from "./semver.ts";
import { registerStrings } from "./strings.ts";
import { registerUrls } from "./urls.ts";

export function registerFunctions(environment: Environment, patterns: Patterns): void {
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

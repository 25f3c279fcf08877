/** Kubernetes' functions for expressions (apiserver: pkg/cel/library). */
import type { Patterns } from "../../validation/patterns.ts";
import type { CelEnvironment, CelOptional } from "../library.ts";
import { registerFormats } from "./formats.ts";
import { registerLists } from "./lists.ts";
import { registerNetworks } from "./networks.ts";
import { registerQuantities } from "./quantities.ts";
import { registerSemver } from "./semver.ts";
import { registerStrings } from "./strings.ts";
import { registerTwoVariables } from "./two-variables.ts";
import { registerUrls } from "./urls.ts";

export function registerFunctions(
  environment: CelEnvironment,
  optional: CelOptional,
  patterns: Patterns,
): void {
  registerStrings(environment, patterns);
  registerLists(environment);
  registerTwoVariables(environment);
  registerQuantities(environment);
  registerUrls(environment);
  registerNetworks(environment);
  registerSemver(environment);
  registerFormats(environment, optional);
}

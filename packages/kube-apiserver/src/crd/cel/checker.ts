/** Compiles the rules of a definition when it is created or changed. */

import type { FieldError, Schema, ValidationRule } from "@quorate/kube-storage";
import { fieldForbidden, invalidValue } from "@quorate/kube-storage";
import type { RawSchema } from "../definition/raw-schema.ts";
import type { RuleChecker, RuleScope } from "../definition/schema-rules.ts";
import type { Crd } from "../definition/types.ts";
import { at, child } from "../schema/paths.ts";
import { estimatedCost } from "./cost/estimate.ts";
import { mostOccurrences } from "./cost/sizes.ts";
import type { CelEngine } from "./library.ts";
import { type CompiledRule, compileRules } from "./rule-set.ts";

/** More rules of one definition are refused: each one is compiled. */
export const MAX_RULES = 2000;

/** What Kubernetes allows as the estimate of one rule (StaticEstimatedCostLimit). */
const ESTIMATED_COST_LIMIT = 10_000_000;
/** From this factor on Kubernetes' text names no exact one. */
const CERTAIN_FACTOR = 100;
const ADVICE =
  "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, " +
  "and strings are declared";

/** @param old the definition before a change: rules that it has may cost what they cost */
export function ruleChecker(engine: CelEngine, old: Crd | undefined): RuleChecker {
  let count = 0;
  const known = ruleTextsIn(old?.spec);
  return {
    check(schema, path, scope) {
      const rules = schema["x-kubernetes-validations"] ?? [];
      count += rules.length;
      const base = child(path, "x-kubernetes-validations");
      if (count > MAX_RULES) {
        const detail = `a definition may have at most ${MAX_RULES} rules`;
        return count - rules.length > MAX_RULES ? [] : [fieldForbidden(base, detail)];
      }
      const compiled = compileRules(schema as Schema, isResource(schema, scope), engine).rules;
      return compiled.flatMap((one, i) => [
        ...errorsOf(one, at(base, i), scope),
        ...(known.has(one.rule.rule) ? [] : costErrors(one, schema as Schema, at(base, i), scope)),
      ]);
    },
  };
}

/** The texts of all rules within a value. */
function ruleTextsIn(value: unknown, found: Set<string> = new Set()): ReadonlySet<string> {
  if (typeof value !== "object" || value === null) return found;
  for (const [name, inner] of Object.entries(value)) {
    if (name === "rule" && typeof inner === "string") found.add(inner);
    else ruleTextsIn(inner, found);
  }
  return found;
}

/**
 * Refuses what Kubernetes certainly refuses. The estimate is a lower bound of its own, so a rule
 * that it refuses by a small factor may pass.
 */
function costErrors(
  { program }: CompiledRule,
  schema: Schema,
  path: string,
  { cardinality }: RuleScope,
): FieldError[] {
  if (program === undefined) return [];
  const count = cardinality ?? mostOccurrences(schema);
  const factor = (estimatedCost(program.ast, schema) * count) / ESTIMATED_COST_LIMIT;
  if (factor <= CERTAIN_FACTOR) return [];
  const detail = `estimated rule cost exceeds budget by factor of more than ${CERTAIN_FACTOR}x (${ADVICE})`;
  return [fieldForbidden(child(path, "rule"), detail)];
}

function isResource(schema: RawSchema, scope: RuleScope): boolean {
  return scope.isResource || schema["x-kubernetes-embedded-resource"] === true;
}

function errorsOf(compiled: CompiledRule, path: string, scope: RuleScope): FieldError[] {
  const { rule, error, messageError, usesOldSelf } = compiled;
  const errors: FieldError[] = [];
  if (error !== undefined) errors.push(invalidValue(child(path, "rule"), shownRule(rule), error));
  if (messageError !== undefined) {
    errors.push(invalidValue(child(path, "messageExpression"), shownRule(rule), messageError));
  }
  if (usesOldSelf && scope.uncorrelated !== undefined) {
    const detail =
      "oldSelf cannot be used on the uncorrelatable portion of the schema within " +
      scope.uncorrelated;
    errors.push(invalidValue(child(path, "rule"), rule.rule, detail));
  } else if (!usesOldSelf && rule.optionalOldSelf !== undefined && rule.optionalOldSelf !== null) {
    const detail = "may not be set if oldSelf is not used in rule";
    errors.push(invalidValue(child(path, "optionalOldSelf"), rule.optionalOldSelf, detail));
  }
  return errors;
}

/** A rule as Kubernetes' texts show it: by the names of Go's fields. */
function shownRule(rule: ValidationRule): object {
  return {
    Rule: rule.rule,
    Message: rule.message ?? "",
    MessageExpression: rule.messageExpression ?? "",
    Reason: rule.reason ?? null,
    FieldPath: rule.fieldPath ?? "",
    OptionalOldSelf: rule.optionalOldSelf ?? null,
  };
}

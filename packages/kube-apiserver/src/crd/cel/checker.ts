/** Compiles the rules of a definition when it is created or changed. */

import type { FieldError, Schema, ValidationRule } from "@quorate/kube-storage";
import { fieldForbidden, invalidValue } from "@quorate/kube-storage";
import type { RawSchema } from "../definition/raw-schema.ts";
import type { RuleChecker, RuleScope } from "../definition/schema-rules.ts";
import type { Crd } from "../definition/types.ts";
import { at, child } from "../schema/paths.ts";
import type { CelEngine } from "./engine.ts";
import { type CompiledRule, compileRules } from "./rule-set.ts";
import { type CelType, MAX_REQUEST_BYTES } from "./types.ts";

/** More rules of one definition are refused: each one is compiled. */
export const MAX_RULES = 2000;

/** What Kubernetes allows as the estimate of one rule (StaticEstimatedCostLimit). */
const ESTIMATED_COST_LIMIT = 10_000_000;
/** What it allows for all rules of a schema (StaticEstimatedCRDCostLimit). */
const TOTAL_COST_LIMIT = 100_000_000;
/** The most expensive rules are named, those that cost at least this part of the limit. */
const MAX_NAMED = 4;
const NAMED_PART = 100;
const ADVICE =
  "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, " +
  "and strings are declared";

/** @param old the definition before a change: rules that it has may cost what they cost */
export function ruleChecker(engine: CelEngine, old: Crd | undefined): RuleChecker {
  let count = 0;
  const known = ruleTextsIn(old?.spec);
  let costs: RuleCost[] = [];
  return {
    check(schema, path, scope) {
      const rules = schema["x-kubernetes-validations"] ?? [];
      count += rules.length;
      const base = child(path, "x-kubernetes-validations");
      if (count > MAX_RULES) {
        const detail = `a definition may have at most ${MAX_RULES} rules`;
        return count - rules.length > MAX_RULES ? [] : [fieldForbidden(base, detail)];
      }
      const { self, rules: compiled } = compileRules(
        schema as Schema,
        isResource(schema, scope),
        engine,
      );
      return compiled.flatMap((one, i) => {
        const own = costsOf(one, self, at(base, i), scope);
        costs.push(...own);
        const tooHigh = known.has(one.rule.rule) ? [] : own.flatMap(costError);
        return [...errorsOf(one, at(base, i), scope), ...tooHigh];
      });
    },
    finish(path) {
      const errors = known.size > 0 ? [] : totalErrors(costs, path);
      costs = [];
      return errors;
    },
  };
}

/** What an expression may cost in one object. */
interface RuleCost {
  readonly path: string;
  /** "rule" or "messageExpression". */
  readonly what: string;
  readonly cost: number;
}

function costsOf(
  { program, message }: CompiledRule,
  self: CelType | undefined,
  path: string,
  { cardinality }: RuleScope,
): RuleCost[] {
  if (program === undefined || self === undefined) return [];
  const times = cardinality ?? Math.floor(MAX_REQUEST_BYTES / (self.minBytes + 1));
  const costs = [
    { path: child(path, "rule"), what: "rule", cost: program.maxCost(self.type) * times },
  ];
  if (message !== undefined)
    costs.push({
      path: child(path, "messageExpression"),
      what: "messageExpression",
      cost: message.maxCost(self.type),
    });
  return costs;
}

function costError({ path, what, cost }: RuleCost): FieldError[] {
  if (cost <= ESTIMATED_COST_LIMIT) return [];
  return [fieldForbidden(path, tooExpensive(`estimated ${what} cost`, cost, ESTIMATED_COST_LIMIT))];
}

/** The rules of a whole schema. */
function totalErrors(costs: readonly RuleCost[], path: string): FieldError[] {
  const total = costs.reduce((sum, { cost }) => sum + cost, 0);
  if (total <= TOTAL_COST_LIMIT) return [];
  const named = costs
    .filter(({ cost }) => cost >= TOTAL_COST_LIMIT / NAMED_PART)
    .toSorted((a, b) => b.cost - a.cost)
    .slice(0, MAX_NAMED);
  const part =
    "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
  const what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
  return [
    ...named.map((one) => fieldForbidden(one.path, part)),
    fieldForbidden(path, tooExpensive(what, total, TOTAL_COST_LIMIT)),
  ];
}

function tooExpensive(what: string, cost: number, limit: number): string {
  const factor = cost / limit;
  const shown =
    factor > 100
      ? "more than 100x"
      : factor < 1.5
        ? `${factor.toFixed(6)}x`
        : `${factor.toFixed(1)}x`;
  return `${what} exceeds budget by factor of ${shown} (${ADVICE})`;
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

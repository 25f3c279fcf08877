/** Compiles the rules of a definition when it is created or changed. */
import { fieldForbidden, invalidValue } from "../../meta/field-errors.ts";
import type { FieldError } from "../../meta/status.ts";
import type { Schema, ValidationRule } from "../../schema/schema.ts";
import type { RawSchema } from "../definition/raw-schema.ts";
import type { RuleChecker, RuleScope } from "../definition/schema-rules.ts";
import { at, child } from "../schema/paths.ts";
import type { CelEngine } from "./library.ts";
import { type CompiledRule, compileRules } from "./rule-set.ts";

/** More rules of one definition are refused: each one is compiled. */
export const MAX_RULES = 2000;

export function ruleChecker(engine: CelEngine): RuleChecker {
  let count = 0;
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
      return compiled.flatMap((one, i) => errorsOf(one, at(base, i), scope));
    },
  };
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

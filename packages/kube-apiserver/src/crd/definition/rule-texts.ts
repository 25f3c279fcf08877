/** The texts of x-kubernetes-validations; their expressions are compiled in ../cel. */

import type { FieldError, ValidationRule } from "@quorate/kube-storage";
import { invalidValue, notSupported, required } from "@quorate/kube-storage";
import { at, child } from "../schema/paths.ts";
import { fieldPathError } from "./field-path.ts";
import type { RawSchema } from "./raw-schema.ts";

/** The reasons that a rule may have for refusing a value. */
export const RULE_REASONS: readonly string[] = [
  "FieldValueDuplicate",
  "FieldValueForbidden",
  "FieldValueInvalid",
  "FieldValueRequired",
];

const LINE_BREAK = /[\n\r]/;

export function ruleTextErrors(schema: RawSchema, path: string): FieldError[] {
  const rules = schema["x-kubernetes-validations"] ?? [];
  const base = child(path, "x-kubernetes-validations");
  return rules.flatMap((rule, i) => textErrors(rule, schema, at(base, i)));
}

function textErrors(rule: ValidationRule, schema: RawSchema, path: string): FieldError[] {
  const errors: FieldError[] = [...messageErrors(rule, path)];
  const { messageExpression = "", reason, fieldPath = "" } = rule;
  if (messageExpression !== "" && messageExpression.trim() === "") {
    const detail = "messageExpression must be non-empty if specified";
    errors.push(required(child(path, "messageExpression"), detail));
  }
  if (reason !== undefined && reason !== null && !RULE_REASONS.includes(reason)) {
    errors.push(notSupported(child(path, "reason"), reason, RULE_REASONS));
  }
  if (fieldPath === "") return errors;
  const where = child(path, "fieldPath");
  if (fieldPath.trim() === "") {
    errors.push(invalidValue(where, fieldPath, "must be non-empty if specified"));
  }
  if (LINE_BREAK.test(fieldPath)) {
    errors.push(invalidValue(where, fieldPath, "must not contain line breaks"));
  }
  if (fieldPathError(fieldPath, schema, true) !== undefined) {
    errors.push(invalidValue(where, fieldPath, "must be a valid path"));
  }
  return errors;
}

function messageErrors(rule: ValidationRule, path: string): FieldError[] {
  const { rule: text = "", message = "" } = rule;
  const where = child(path, "message");
  if (text.trim() === "") return [required(child(path, "rule"), "rule is not specified")];
  if (message !== "" && message.trim() === "") {
    return [invalidValue(where, message, "must be non-empty if specified")];
  }
  if (LINE_BREAK.test(message.trim())) {
    return [invalidValue(where, message, "must not contain line breaks")];
  }
  if (LINE_BREAK.test(text.trim()) && message.trim() === "") {
    return [required(where, "message must be specified if rule contains line breaks")];
  }
  return [];
}

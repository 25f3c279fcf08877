/**
 * Errors of rules, selectors and conditions, which webhooks and policies share (Kubernetes:
 * pkg/apis/admissionregistration/validation).
 */
import type { FieldError, LabelSelectorObject } from "@quorate/kube-storage";
import {
  duplicate,
  invalidValue,
  isQualifiedName,
  notSupported,
  required,
  tooMany,
  validateLabelSelector,
} from "@quorate/kube-storage";
import type { ExpressionSet } from "../crd/cel/request-expressions.ts";
import type { MatchCondition } from "./match-conditions.ts";
import type { MatchRule } from "./matching.ts";

const MAX_MATCH_CONDITIONS = 64;
const OPERATIONS = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

export function oneOf(
  value: string | undefined | null,
  allowed: readonly string[],
  field: string,
): FieldError[] {
  if (value === undefined || value === null || allowed.includes(value)) return [];
  return [notSupported(field, value, allowed)];
}

export function selectorErrors(
  selector: LabelSelectorObject | undefined,
  field: string,
): FieldError[] {
  return selector ? [...validateLabelSelector(selector, field)] : [];
}

export function ruleErrors(rule: MatchRule, field: string): FieldError[] {
  const { operations = [], apiGroups = [], apiVersions = [], resources = [], scope } = rule;
  const errors: FieldError[] = [];
  if (operations.length === 0) errors.push(required(`${field}.operations`));
  errors.push(...wildcard(operations, `${field}.operations`, "operations"));
  operations.forEach((one, i) => {
    errors.push(...oneOf(one, OPERATIONS, `${field}.operations[${i}]`));
  });
  if (apiGroups.length === 0) errors.push(required(`${field}.apiGroups`));
  errors.push(...wildcard(apiGroups, `${field}.apiGroups`, "API groups"));
  if (apiVersions.length === 0) errors.push(required(`${field}.apiVersions`));
  errors.push(...wildcard(apiVersions, `${field}.apiVersions`, "API versions"));
  apiVersions.forEach((one, i) => {
    if (one === "") errors.push(required(`${field}.apiVersions[${i}]`));
  });
  errors.push(...resourceErrors(resources, `${field}.resources`));
  errors.push(...oneOf(scope, ["*", "Cluster", "Namespaced"], `${field}.scope`));
  return errors;
}

function wildcard(values: readonly string[], field: string, what: string): FieldError[] {
  if (values.length < 2 || !values.includes("*")) return [];
  return [invalidValue(field, values, `if '*' is present, must not specify other ${what}`)];
}

function resourceErrors(resources: readonly string[], field: string): FieldError[] {
  const errors: FieldError[] = [];
  if (resources.length === 0) errors.push(required(field));
  const allSubresources = new Set<string>();
  const allResources = new Set<string>();
  let hasPlain = false;
  resources.forEach((one, i) => {
    const at = `${field}[${i}]`;
    if (one === "") {
      errors.push(required(at));
      return;
    }
    const slash = one.indexOf("/");
    if (slash === -1) {
      hasPlain = one !== "*";
      return;
    }
    const [name, sub] = [one.slice(0, slash), one.slice(slash + 1)];
    const refuse = (pattern: string): void => {
      const text = `if '${pattern}' is present, must not specify ${one}`;
      errors.push(invalidValue(at, one, text));
    };
    if (allSubresources.has(name)) refuse(`${name}/*`);
    if (allResources.has(sub)) refuse(`*/${sub}`);
    if (sub === "*") allSubresources.add(name);
    if (name === "*") allResources.add(sub);
  });
  if (resources.length > 1 && resources.includes("*/*")) {
    const text = "if '*/*' is present, must not specify other resources";
    errors.push(invalidValue(field, resources, text));
  }
  if (resources.includes("*") && hasPlain) {
    const text = "if '*' is present, must not specify other resources without subresources";
    errors.push(invalidValue(field, resources, text));
  }
  return errors;
}

/** @param set compiles the expressions */
export function conditionErrors(
  conditions: readonly MatchCondition[],
  field: string,
  set: ExpressionSet,
): FieldError[] {
  const errors: FieldError[] = [];
  if (conditions.length > MAX_MATCH_CONDITIONS) {
    errors.push(tooMany(field, conditions.length, MAX_MATCH_CONDITIONS));
  }
  const names = new Set<string>();
  conditions.forEach(({ name = "", expression = "" }, i) => {
    const at = `${field}[${i}]`;
    const trimmed = expression.trim();
    if (trimmed === "") errors.push(required(`${at}.expression`));
    else {
      const { error } = set.compile(trimmed, ["bool"]);
      if (error !== undefined) errors.push(invalidValue(`${at}.expression`, trimmed, error));
    }
    if (name === "") errors.push(required(`${at}.name`));
    for (const text of name === "" ? [] : isQualifiedName(name)) {
      errors.push(invalidValue(`${at}.name`, name, text));
    }
    if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
    if (name !== "") names.add(name);
  });
  return errors;
}

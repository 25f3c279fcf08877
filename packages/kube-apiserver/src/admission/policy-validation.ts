/** Errors of policies and bindings (Kubernetes: pkg/apis/admissionregistration/validation). */
import type { FieldError, KubeObject } from "@quorate/kube-storage";
import {
  duplicate,
  fieldForbidden,
  invalidValue,
  isDns1035Label,
  isDns1123Subdomain,
  isPathSegmentName,
  isQualifiedName,
  notSupported,
  required,
  semanticEqual,
  validateLabelSelector,
} from "@quorate/kube-storage";
import { KEYWORDS } from "../crd/cel/base/names.ts";
import type { ExpressionSet, RequestExpressions } from "../crd/cel/request-expressions.ts";
import { conditionErrors, oneOf, ruleErrors } from "./match-validation.ts";
import type { MatchRule } from "./matching.ts";
import {
  type AuditAnnotation,
  bindingSpecOf,
  type MatchResources,
  type Mutation,
  mutationText,
  mutationType,
  type ParamKind,
  type ParamRef,
  type PolicySpec,
  type PolicyValidation,
  policySpecOf,
} from "./policy-config.ts";

const MAX_AUDIT_ANNOTATIONS = 20;
const MAX_VALUE_EXPRESSION = 5 * 1024;
const REASONS = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS = ["Audit", "Deny", "Warn"];
const MUTATING_OPERATIONS = ["*", "CONNECT", "CREATE", "UPDATE"];

/** @param old the policy before an update; match conditions that did not change are left alone */
export function policyErrors(
  policy: KubeObject,
  old: KubeObject | undefined,
  expressions: RequestExpressions,
): FieldError[] {
  const spec = policySpecOf(policy);
  const isMutating = policy.kind === "MutatingAdmissionPolicy";
  const hasParams = spec.paramKind !== undefined;
  const set = expressions.set({
    hasParams,
    hasVariables: isMutating || (spec.variables ?? []).length > 0,
  });
  const conditions = expressions.set({ hasParams, hasVariables: false });
  const before = old && policySpecOf(old);
  const isSame =
    before !== undefined &&
    semanticEqual(before.matchConditions ?? [], spec.matchConditions ?? []) &&
    semanticEqual(before.paramKind ?? null, spec.paramKind ?? null);
  return [
    ...neededOneOf(spec.failurePolicy, ["Fail", "Ignore"], "spec.failurePolicy"),
    ...(spec.paramKind === undefined ? [] : paramKindErrors(spec.paramKind, "spec.paramKind")),
    ...constraintErrors(spec.matchConstraints, isMutating),
    ...(isSame
      ? []
      : conditionErrors(spec.matchConditions ?? [], "spec.matchConditions", conditions)),
    ...(spec.variables ?? []).flatMap((one, i) => variableErrors(one, `spec.variables[${i}]`, set)),
    ...(isMutating ? mutationsErrors(spec, set) : validationsErrors(policy, spec, set)),
  ];
}

function neededOneOf(
  value: string | undefined,
  allowed: readonly string[],
  field: string,
): FieldError[] {
  return value === undefined || value === "" ? [required(field)] : oneOf(value, allowed, field);
}

function paramKindErrors({ apiVersion = "", kind = "" }: ParamKind, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const at = `${field}.apiVersion`;
  const parts = apiVersion === "/" ? ["", ""] : apiVersion.split("/");
  if (apiVersion === "") errors.push(required(at));
  else if (parts.length > 2)
    errors.push(invalidValue(at, apiVersion, `unexpected GroupVersion string: ${apiVersion}`));
  else {
    const [group, version] = parts.length === 2 ? (parts as [string, string]) : ["", apiVersion];
    const ofGroup = group === "" ? [] : isDns1123Subdomain(group);
    if (ofGroup.length > 0) errors.push(invalidValue(at, group, ofGroup.join(",")));
    const ofVersion = version === "" ? ["version must be specified"] : isDns1035Label(version);
    if (ofVersion.length > 0)
      errors.push(invalidValue(at, version === "" ? apiVersion : version, ofVersion.join(",")));
  }
  const ofKind = isDns1035Label(kind.toLowerCase());
  if (kind === "") errors.push(required(`${field}.kind`));
  else if (ofKind.length > 0) {
    const text = `may have mixed case, but should otherwise match: ${ofKind.join(",")}`;
    errors.push(invalidValue(`${field}.kind`, kind, text));
  }
  return errors;
}

function constraintErrors(
  constraints: MatchResources | undefined,
  isMutating: boolean,
): FieldError[] {
  const field = "spec.matchConstraints";
  if (constraints === undefined) return [required(field)];
  const { resourceRules = [] } = constraints;
  return [
    ...resourcesErrors(constraints, field),
    ...(resourceRules.length === 0 ? [required(`${field}.resourceRules`)] : []),
    ...(isMutating ? operationErrors(resourceRules, `${field}.resourceRules.operations`) : []),
  ];
}

function operationErrors(rules: readonly MatchRule[], field: string): FieldError[] {
  return rules
    .flatMap(({ operations = [] }) => operations)
    .flatMap((one) => oneOf(one, MUTATING_OPERATIONS, field));
}

function resourcesErrors(resources: MatchResources, field: string): FieldError[] {
  const { matchPolicy, namespaceSelector, objectSelector } = resources;
  const rules = (name: "resourceRules" | "excludeResourceRules"): FieldError[] =>
    (resources[name] ?? []).flatMap((rule, i) => namedRuleErrors(rule, `${field}.${name}[${i}]`));
  return [
    ...neededOneOf(matchPolicy, ["Equivalent", "Exact"], `${field}.matchPolicy`),
    ...validateLabelSelector(namespaceSelector ?? {}, `${field}.namespaceSelector`),
    ...validateLabelSelector(objectSelector ?? {}, `${field}.objectSelector`),
    ...rules("resourceRules"),
    ...rules("excludeResourceRules"),
  ];
}

function namedRuleErrors(rule: MatchRule, field: string): FieldError[] {
  const seen = new Set<string>();
  const errors = (rule.resourceNames ?? []).flatMap((name, i) => {
    const at = `${field}.resourceNames[${i}]`;
    const own = isPathSegmentName(name).map((text) => invalidValue(at, name, text));
    if (seen.has(name)) own.push(duplicate(at, name));
    seen.add(name);
    return own;
  });
  return [...errors, ...ruleErrors(rule, field)];
}

function variableErrors(
  { name = "", expression = "" }: { readonly name?: string; readonly expression?: string },
  field: string,
  set: ExpressionSet,
): FieldError[] {
  const errors: FieldError[] = [];
  const at = `${field}.name`;
  if (name.trim() === "") errors.push(required(at, "name is not specified"));
  else if (!/^[_a-zA-Z]\w*$/.test(name) || KEYWORDS.has(name))
    errors.push(invalidValue(at, name, "must be a valid CEL identifier"));
  if (expression.trim() === "")
    return [...errors, required(`${field}.expression`, "expression is not specified")];
  const { error } = set.declare(name, expression);
  if (error !== undefined) errors.push(invalidValue(`${field}.expression`, expression, error));
  return errors;
}

function validationsErrors(
  policy: KubeObject,
  { validations = [], auditAnnotations = [] }: PolicySpec,
  set: ExpressionSet,
): FieldError[] {
  if (validations.length === 0 && auditAnnotations.length === 0) {
    const text = "validations or auditAnnotations must contain at least one item";
    return [required("spec.validations", text), required("spec.auditAnnotations", text)];
  }
  const field = "spec.auditAnnotations";
  const errors = validations.flatMap((one, i) =>
    validationErrors(one, `spec.validations[${i}]`, set),
  );
  if (auditAnnotations.length > MAX_AUDIT_ANNOTATIONS) {
    const text = `must not have more than ${MAX_AUDIT_ANNOTATIONS} auditAnnotations`;
    errors.push(invalidValue(field, auditAnnotations, text));
  }
  const keys = new Set<string>();
  for (const [i, one] of auditAnnotations.entries()) {
    const { key = "" } = one;
    errors.push(...annotationErrors(policy.metadata.name ?? "", one, `${field}[${i}]`, set));
    if (keys.has(key)) errors.push(duplicate(`${field}[${i}].key`, key));
    keys.add(key);
  }
  return errors;
}

function validationErrors(
  { expression = "", message = "", messageExpression = "", reason }: PolicyValidation,
  field: string,
  set: ExpressionSet,
): FieldError[] {
  const errors: FieldError[] = [];
  const compiled = (name: string, text: string, type: string, hasAuthorizer: boolean): void => {
    const { error } = set.compile(text, [type], { hasAuthorizer });
    if (error !== undefined) errors.push(invalidValue(`${field}.${name}`, text, error));
  };
  if (expression.trim() === "")
    errors.push(required(`${field}.expression`, "expression is not specified"));
  else compiled("expression", expression, "bool", true);
  const empty = "must be non-empty if specified";
  if (messageExpression !== "" && messageExpression.trim() === "")
    errors.push(invalidValue(`${field}.messageExpression`, messageExpression, empty));
  else if (messageExpression !== "")
    compiled("messageExpression", messageExpression, "string", false);
  if (message !== "" && message.trim() === "")
    errors.push(invalidValue(`${field}.message`, message, empty));
  else if (/[\n\r]/.test(message.trim()))
    errors.push(invalidValue(`${field}.message`, message, "must not contain line breaks"));
  return [...errors, ...oneOf(reason, REASONS, `${field}.reason`)];
}

function annotationErrors(
  policy: string,
  { key = "", valueExpression = "" }: AuditAnnotation,
  field: string,
  set: ExpressionSet,
): FieldError[] {
  const errors =
    policy === ""
      ? [invalidValue(`${field}.key`, key, "requires metadata.name be non-empty")]
      : isQualifiedName(`${policy}/${key}`).map((text) =>
          invalidValue(`${field}.key`, `${policy}/${key}`, text),
        );
  const at = `${field}.valueExpression`;
  const trimmed = valueExpression.trim();
  if (trimmed === "") return [...errors, required(at, "valueExpression is not specified")];
  if (trimmed.length > MAX_VALUE_EXPRESSION)
    return [...errors, required(at, `must not exceed ${MAX_VALUE_EXPRESSION} bytes in length`)];
  const { error } = set.compile(trimmed, ["string", "null_type"]);
  return error === undefined ? errors : [...errors, invalidValue(at, valueExpression, error)];
}

function mutationsErrors(spec: PolicySpec, set: ExpressionSet): FieldError[] {
  const { mutations = [], reinvocationPolicy } = spec;
  return [
    ...(mutations.length === 0
      ? [required("spec.mutations", "mutations must contain at least one item")]
      : mutations.flatMap((one, i) => mutationErrors(one, `spec.mutations[${i}]`, set))),
    ...neededOneOf(reinvocationPolicy, ["IfNeeded", "Never"], "spec.reinvocationPolicy"),
  ];
}

function mutationErrors(mutation: Mutation, field: string, set: ExpressionSet): FieldError[] {
  const { patchType = "", applyConfiguration, jsonPatch } = mutation;
  if (patchType === "") return [required(`${field}.patchType`)];
  const isPatch = patchType === "JSONPatch";
  if (!isPatch && patchType !== "ApplyConfiguration")
    return [notSupported(`${field}.patchType`, patchType, ["ApplyConfiguration", "JSONPatch"])];
  const [own, other] = isPatch
    ? (["jsonPatch", "applyConfiguration"] as const)
    : (["applyConfiguration", "jsonPatch"] as const);
  const errors: FieldError[] = [];
  const given = { jsonPatch, applyConfiguration };
  if (given[own] === undefined) {
    const text = `must be specified when patchType is ${patchType}`;
    errors.push(required(`${field}.${own}`, text));
  } else {
    const at = `${field}.${own}.expression`;
    const text = mutationText(mutation).trim();
    const compiled = set.compile(text, [mutationType(mutation)], { hasPatchTypes: true });
    if (text === "") errors.push(required(at));
    else if (compiled.error !== undefined) errors.push(invalidValue(at, text, compiled.error));
  }
  if (given[other] !== undefined) {
    const text = `must not be specified when patchType is ${patchType}`;
    errors.push(invalidValue(`${field}.${other}`, `{${other}}`, text));
  }
  return errors;
}

export function bindingErrors(binding: KubeObject): FieldError[] {
  const { policyName = "", paramRef, matchResources, validationActions } = bindingSpecOf(binding);
  const isMutating = binding.kind === "MutatingAdmissionPolicyBinding";
  const field = "spec.matchResources";
  const rules = matchResources?.resourceRules ?? [];
  return [
    ...(policyName === ""
      ? [required("spec.policyName")]
      : isDns1123Subdomain(policyName).map((text) =>
          invalidValue("spec.policyName", policyName, text),
        )),
    ...(paramRef === undefined ? [] : paramRefErrors(paramRef, "spec.paramRef")),
    ...(matchResources === undefined ? [] : resourcesErrors(matchResources, field)),
    ...(isMutating
      ? operationErrors(rules, `${field}.resourceRules.operations`)
      : actionErrors(validationActions ?? [], "spec.validationActions")),
  ];
}

function paramRefErrors(ref: ParamRef, field: string): FieldError[] {
  const { name = "", selector, parameterNotFoundAction = "" } = ref;
  const errors: FieldError[] = [];
  const both = "name and selector are mutually exclusive";
  if (name !== "") {
    for (const text of isPathSegmentName(name))
      errors.push(invalidValue(`${field}.name`, name, text));
    if (selector !== undefined) errors.push(fieldForbidden(`${field}.name`, both));
  }
  if (selector !== undefined) {
    errors.push(...validateLabelSelector(selector, `${field}.selector`));
    if (name !== "") errors.push(fieldForbidden(`${field}.selector`, both));
  }
  if (name === "" && selector === undefined)
    errors.push(required(field, "one of name or selector must be specified"));
  const at = `${field}.parameterNotFoundAction`;
  return [...errors, ...neededOneOf(parameterNotFoundAction, ["Deny", "Allow"], at)];
}

function actionErrors(actions: readonly string[], field: string): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  actions.forEach((action, i) => {
    errors.push(...oneOf(action, ACTIONS, `${field}[${i}]`));
    if (seen.has(action)) errors.push(duplicate(`${field}[${i}]`, action));
    seen.add(action);
  });
  if (seen.has("Deny") && seen.has("Warn")) {
    const text =
      "must not contain both Deny and Warn (repeating the same validation failure information in " +
      "the API response and headers serves no purpose)";
    errors.push(invalidValue(field, actions, text));
  }
  if (actions.length === 0)
    errors.push(required(field, "at least one validation action is required"));
  return errors;
}

/**
 * Errors of webhook configurations (Kubernetes: pkg/apis/admissionregistration/validation,
 * apiserver pkg/util/webhook/validation.go).
 */

import type { FieldError, KubeObject } from "@quorate/kube-storage";
import {
  duplicate,
  invalidValue,
  isDns1035Label,
  isDns1123Subdomain,
  isQualifiedName,
  type LabelSelectorObject,
  notSupported,
  required,
  tooMany,
  validateLabelSelector,
} from "@quorate/kube-storage";
import { serviceErrors, urlErrors } from "../crd/definition/webhook-rules.ts";
import type { ConditionCompiler, MatchCondition } from "./match-conditions.ts";
import type { WebhookClientConfig } from "./webhook-caller.ts";
import { type WebhookRule, type WebhookSpec, webhooksOf } from "./webhook-config.ts";

const MAX_MATCH_CONDITIONS = 64;
const REVIEW_VERSIONS = ["v1", "v1beta1"];
const OPERATIONS = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/** Errors of a configuration of either kind. */
export function webhookConfigurationErrors(
  configuration: KubeObject,
  compile: ConditionCompiler,
): FieldError[] {
  const names = new Set<string>();
  return webhooksOf(configuration).flatMap((spec, i) => {
    const field = `webhooks[${i}]`;
    const versions = `${field}.admissionReviewVersions`;
    const errors = [
      ...webhookErrors(spec, field, compile),
      ...reviewVersionErrors(spec.admissionReviewVersions ?? [], versions),
    ];
    if (names.has(spec.name)) errors.push(duplicate(`${field}.name`, spec.name));
    if (spec.name) names.add(spec.name);
    return errors;
  });
}

function webhookErrors(spec: WebhookSpec, field: string, compile: ConditionCompiler): FieldError[] {
  const { failurePolicy, matchPolicy, reinvocationPolicy, timeoutSeconds } = spec;
  return [
    ...nameErrors(spec.name ?? "", `${field}.name`),
    ...(spec.rules ?? []).flatMap((rule, i) => ruleErrors(rule, `${field}.rules[${i}]`)),
    ...oneOf(failurePolicy, ["Fail", "Ignore"], `${field}.failurePolicy`),
    ...oneOf(matchPolicy, ["Equivalent", "Exact"], `${field}.matchPolicy`),
    ...sideEffectErrors(spec.sideEffects, `${field}.sideEffects`),
    ...timeoutErrors(timeoutSeconds, `${field}.timeoutSeconds`),
    ...selectorErrors(spec.namespaceSelector, `${field}.namespaceSelector`),
    ...selectorErrors(spec.objectSelector, `${field}.objectSelector`),
    ...oneOf(reinvocationPolicy, ["IfNeeded", "Never"], `${field}.reinvocationPolicy`),
    ...clientConfigErrors(spec.clientConfig ?? {}, `${field}.clientConfig`),
    ...conditionErrors(spec.matchConditions ?? [], `${field}.matchConditions`, compile),
  ];
}

function nameErrors(name: string, field: string): FieldError[] {
  if (name === "") return [required(field)];
  const problems = isDns1123Subdomain(name);
  if (problems.length > 0) return [invalidValue(field, name, problems.join(","))];
  if (name.split(".").length >= 3) return [];
  const text = "should be a domain with at least three segments separated by dots";
  return [invalidValue(field, name, text)];
}

function oneOf(
  value: string | undefined | null,
  allowed: readonly string[],
  field: string,
): FieldError[] {
  if (value === undefined || value === null || allowed.includes(value)) return [];
  return [notSupported(field, value, allowed)];
}

function sideEffectErrors(value: string | undefined, field: string): FieldError[] {
  const allowed = ["None", "NoneOnDryRun"];
  if (value) return oneOf(value, allowed, field);
  return [required(field, `must specify one of ${allowed.join(", ")}`)];
}

function timeoutErrors(seconds: number | undefined, field: string): FieldError[] {
  if (seconds === undefined || (seconds >= 1 && seconds <= 30)) return [];
  const text = "the timeout value must be between 1 and 30 seconds";
  return [invalidValue(field, seconds, text)];
}

function selectorErrors(selector: LabelSelectorObject | undefined, field: string): FieldError[] {
  return selector ? [...validateLabelSelector(selector, field)] : [];
}

function ruleErrors(rule: WebhookRule, field: string): FieldError[] {
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

function reviewVersionErrors(versions: readonly string[], field: string): FieldError[] {
  const accepted = REVIEW_VERSIONS.join(", ");
  if (versions.length === 0) return [required(field, `must specify one of ${accepted}`)];
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  versions.forEach((version, i) => {
    const at = `${field}[${i}]`;
    if (seen.has(version)) {
      errors.push(invalidValue(at, version, "duplicate version"));
      return;
    }
    seen.add(version);
    for (const text of isDns1035Label(version)) errors.push(invalidValue(at, version, text));
  });
  if (!versions.some((version) => REVIEW_VERSIONS.includes(version))) {
    errors.push(invalidValue(field, versions, `must include at least one of ${accepted}`));
  }
  return errors;
}

function clientConfigErrors(config: WebhookClientConfig, field: string): FieldError[] {
  const { url, service } = config;
  const hasService = service !== undefined && service !== null;
  if (url === undefined || url === null) {
    if (hasService) return serviceErrors(service, `${field}.service`);
  } else if (!hasService) return urlErrors(url, `${field}.url`);
  return [required(field, "exactly one of url or service is required")];
}

function conditionErrors(
  conditions: readonly MatchCondition[],
  field: string,
  compile: ConditionCompiler,
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
      const compiled = compile(trimmed);
      if (typeof compiled !== "function") {
        errors.push(invalidValue(`${at}.expression`, trimmed, compiled.error));
      }
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

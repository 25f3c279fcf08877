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
  required,
} from "@quorate/kube-storage";
import type { ExpressionSet } from "../crd/cel/request-expressions.ts";
import { serviceErrors, urlErrors } from "../crd/definition/webhook-rules.ts";
import { conditionErrors, oneOf, ruleErrors, selectorErrors } from "./match-validation.ts";
import type { WebhookClientConfig } from "./webhook-caller.ts";
import { type WebhookSpec, webhooksOf } from "./webhook-config.ts";

const REVIEW_VERSIONS = ["v1", "v1beta1"];

/** Errors of a configuration of either kind. @param set compiles match conditions */
export function webhookConfigurationErrors(
  configuration: KubeObject,
  set: ExpressionSet,
): FieldError[] {
  const names = new Set<string>();
  return webhooksOf(configuration).flatMap((spec, i) => {
    const field = `webhooks[${i}]`;
    const versions = `${field}.admissionReviewVersions`;
    const errors = [
      ...webhookErrors(spec, field, set),
      ...reviewVersionErrors(spec.admissionReviewVersions ?? [], versions),
    ];
    if (names.has(spec.name)) errors.push(duplicate(`${field}.name`, spec.name));
    if (spec.name) names.add(spec.name);
    return errors;
  });
}

function webhookErrors(spec: WebhookSpec, field: string, set: ExpressionSet): FieldError[] {
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
    ...conditionErrors(spec.matchConditions ?? [], `${field}.matchConditions`, set),
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

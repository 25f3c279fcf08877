/**
 * Whether a webhook is called for a request, and with which version of the object (apiserver:
 * pkg/admission/plugin/webhook/generic/webhook.go, predicates).
 */
import {
  forbidden,
  type GroupVersionResource,
  internalError,
  type KubeObject,
  notFound,
  type ServedResource,
  type ServedResources,
} from "@quorate/kube-storage";
import type { AdmissionAttributes } from "./admission.ts";
import type { Namespaces } from "./namespace-lifecycle.ts";
import type { Invocation, Webhook, WebhookRule } from "./webhook-config.ts";
import { reviewRequest } from "./webhook-review.ts";

export interface MatchDependencies {
  readonly served: ServedResources;
  readonly namespaces: Namespaces;
}

/** Undefined: the webhook is not called. Rejects with ApiError. */
export async function invocationOf(
  webhook: Webhook,
  attributes: AdmissionAttributes,
  deps: MatchDependencies,
): Promise<Invocation | undefined> {
  const matched = matchedVersion(webhook, attributes, deps.served);
  if (matched === undefined) return undefined;
  if (!matchesObject(webhook, attributes)) return undefined;
  if (!(await matchesNamespace(webhook, attributes, deps.namespaces))) return undefined;
  const invocation = await inVersion(webhook, attributes, matched);
  return (await matchesConditions(invocation, attributes)) ? invocation : undefined;
}

/** Webhooks cannot guard their own configurations, so that a broken one can be removed. */
export function isExempt({ kind }: AdmissionAttributes): boolean {
  if (kind.group !== "admissionregistration.k8s.io") return false;
  return /^(?:Mutating|Validating)(?:WebhookConfiguration|AdmissionPolicy(?:Binding)?)$/.test(
    kind.kind,
  );
}

/** The version to call with: "same" for the request's own. */
function matchedVersion(
  { spec }: Webhook,
  attributes: AdmissionAttributes,
  served: ServedResources,
): ServedResource | "same" | undefined {
  const { rules = [], matchPolicy } = spec;
  const { resource, subresource } = attributes;
  if (rules.some((rule) => ruleMatches(rule, attributes, resource))) return "same";
  if (matchPolicy !== "Equivalent") return undefined;
  const others = served
    .all()
    .filter(
      (one) =>
        one.group === resource.group &&
        one.resource === resource.resource &&
        one.subresource === subresource &&
        one.version !== resource.version,
    );
  for (const rule of rules) {
    const found = others.find((one) => ruleMatches(rule, attributes, one));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Exported for tests: whether a rule names a request. */
export function ruleMatches(
  rule: WebhookRule,
  attributes: AdmissionAttributes,
  { group, version, resource }: GroupVersionResource,
): boolean {
  return (
    scopeMatches(rule.scope, attributes) &&
    hasOrAll(rule.operations, attributes.operation) &&
    hasOrAll(rule.apiGroups, group) &&
    hasOrAll(rule.apiVersions, version) &&
    (rule.resources ?? []).some((one) => {
      const [name, sub = ""] = one.split("/", 2);
      if (name !== "*" && name !== resource) return false;
      return sub === "*" || sub === attributes.subresource;
    })
  );
}

function hasOrAll(values: readonly string[] | undefined, one: string): boolean {
  return values?.some((value) => value === "*" || value === one) ?? false;
}

function scopeMatches(scope: string | undefined, attributes: AdmissionAttributes): boolean {
  const { resource, namespace } = attributes;
  const isNamespace = resource.group === "" && resource.resource === "namespaces";
  if (scope === "Namespaced") return !isNamespace && namespace !== "";
  if (scope === "Cluster") return isNamespace || namespace === "";
  return scope === undefined || scope === "*";
}

/** Either the new object or the old one has the labels. */
function matchesObject(
  { objectSelector }: Webhook,
  { object, oldObject }: AdmissionAttributes,
): boolean {
  if (objectSelector.isEmpty) return true;
  return [object, oldObject].some(
    (one) => one !== undefined && objectSelector.matches(one.metadata?.labels ?? {}),
  );
}

async function matchesNamespace(
  { namespaceSelector }: Webhook,
  attributes: AdmissionAttributes,
  namespaces: Namespaces,
): Promise<boolean> {
  const { resource, subresource, operation, namespace, object } = attributes;
  const isNamespace = resource.resource === "namespaces";
  if ((namespace === "" && !isNamespace) || namespaceSelector.isEmpty) return true;
  if (isNamespace && subresource === "" && (operation === "CREATE" || operation === "UPDATE")) {
    return namespaceSelector.matches(object?.metadata.labels ?? {});
  }
  const name = namespace === "" ? attributes.name : namespace;
  const found = namespaces.cached(name) ?? (await namespaces.live(name));
  if (found === undefined) throw notFound({ group: "", resource: "namespaces" }, name);
  return namespaceSelector.matches(found.metadata.labels ?? {});
}

async function inVersion(
  webhook: Webhook,
  attributes: AdmissionAttributes,
  version: ServedResource | "same",
): Promise<Invocation> {
  const { kind, resource, object, oldObject } = attributes;
  if (version === "same") {
    return { webhook, resource, kind, object, oldObject, isConverted: false };
  }
  const convert = async (one: KubeObject | undefined): Promise<KubeObject | undefined> => {
    if (one === undefined) return undefined;
    try {
      return (await version.convert([one]))[0];
    } catch (error) {
      throw internalError(error instanceof Error ? error.message : String(error));
    }
  };
  return {
    webhook,
    resource: { group: version.group, version: version.version, resource: version.resource },
    kind: version.kind,
    object: await convert(object),
    oldObject: await convert(oldObject),
    isConverted: true,
  };
}

async function matchesConditions(
  invocation: Invocation,
  attributes: AdmissionAttributes,
): Promise<boolean> {
  const { webhook, object, oldObject } = invocation;
  if (webhook.conditions.isEmpty) return true;
  const request = reviewRequest("", invocation, attributes);
  try {
    return await webhook.conditions.matches({
      object: object ?? null,
      oldObject: oldObject ?? null,
      request,
    });
  } catch (error) {
    // As with a webhook that cannot be called.
    if (webhook.spec.failurePolicy === "Ignore") return false;
    const { resource, name } = attributes;
    const text = error instanceof Error ? error.message : String(error);
    throw forbidden(resource, name, text);
  }
}

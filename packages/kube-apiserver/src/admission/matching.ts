/**
 * Whether webhooks and policies are for a request, and in which version of its object (apiserver:
 * pkg/admission/plugin/webhook/predicates, pkg/admission/plugin/policy/matching).
 */
import {
  EVERYTHING,
  type GroupVersionKind,
  type GroupVersionResource,
  internalError,
  type KubeObject,
  type LabelSelectorObject,
  notFound,
  type Selector,
  type ServedResource,
  type ServedResources,
  selectorOfObject,
  textOf,
} from "@quorate/kube-storage";
import type { AdmissionAttributes } from "./admission.ts";
import type { Namespaces } from "./namespace-lifecycle.ts";

export interface MatchDependencies {
  readonly served: ServedResources;
  readonly namespaces: Namespaces;
}

/** admissionregistration.k8s.io/v1 RuleWithOperations, and NamedRuleWithOperations of policies. */
export interface MatchRule {
  readonly operations?: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly apiVersions?: readonly string[];
  readonly resources?: readonly string[];
  readonly scope?: string;
  /** Absent or empty: all names. */
  readonly resourceNames?: readonly string[];
}

/** The part of a request that a webhook or policy sees, in the version of its rule. */
export interface VersionedRequest {
  readonly resource: GroupVersionResource;
  readonly kind: GroupVersionKind;
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  /** Whether the version is another one than the request's. */
  readonly isConverted: boolean;
}

export function selectorOf(selector: LabelSelectorObject | null | undefined): Selector {
  return selector === null || selector === undefined ? EVERYTHING : selectorOfObject(selector);
}

/** Admission cannot guard its own configuration, so that a broken one can be removed. */
export function isExempt({ kind }: AdmissionAttributes): boolean {
  if (kind.group !== "admissionregistration.k8s.io") return false;
  return /^(?:Mutating|Validating)(?:WebhookConfiguration|AdmissionPolicy(?:Binding)?)$/.test(
    kind.kind,
  );
}

/** The version that a rule names: "same" for the request's own. */
export function matchedVersion(
  rules: readonly MatchRule[],
  matchPolicy: string | undefined,
  attributes: AdmissionAttributes,
  served: ServedResources,
): ServedResource | "same" | undefined {
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
  rule: MatchRule,
  attributes: AdmissionAttributes,
  { group, version, resource }: GroupVersionResource,
): boolean {
  const { resourceNames = [] } = rule;
  return (
    scopeMatches(rule.scope, attributes) &&
    hasOrAll(rule.operations, attributes.operation) &&
    hasOrAll(rule.apiGroups, group) &&
    hasOrAll(rule.apiVersions, version) &&
    (rule.resources ?? []).some((one) => {
      const [name, sub = ""] = one.split("/", 2);
      if (name !== "*" && name !== resource) return false;
      return sub === "*" || sub === attributes.subresource;
    }) &&
    (resourceNames.length === 0 || resourceNames.includes(attributes.name))
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
export function matchesObject(
  selector: Selector,
  { object, oldObject }: AdmissionAttributes,
): boolean {
  if (selector.isEmpty) return true;
  return [object, oldObject].some(
    (one) => one !== undefined && selector.matches(one.metadata?.labels ?? {}),
  );
}

/** Rejects with ApiError where there is no such namespace. */
export async function matchesNamespace(
  selector: Selector,
  attributes: AdmissionAttributes,
  namespaces: Namespaces,
): Promise<boolean> {
  const { resource, subresource, operation, namespace, object } = attributes;
  const isNamespace = resource.resource === "namespaces";
  if ((namespace === "" && !isNamespace) || selector.isEmpty) return true;
  if (isNamespace && subresource === "" && (operation === "CREATE" || operation === "UPDATE")) {
    return selector.matches(object?.metadata.labels ?? {});
  }
  const found = await namespaceNamed(namespace === "" ? attributes.name : namespace, namespaces);
  return selector.matches(found.metadata.labels ?? {});
}

/** Rejects with ApiError where there is none. */
export async function namespaceNamed(name: string, namespaces: Namespaces): Promise<KubeObject> {
  const found = namespaces.cached(name) ?? (await namespaces.live(name));
  if (found === undefined) throw notFound({ group: "", resource: "namespaces" }, name);
  return found;
}

/** Rejects with ApiError 500 where the object cannot be converted. */
export async function inVersion(
  attributes: AdmissionAttributes,
  version: ServedResource | "same",
): Promise<VersionedRequest> {
  const { kind, resource, object, oldObject } = attributes;
  if (version === "same") return { resource, kind, object, oldObject, isConverted: false };
  const convert = async (one: KubeObject | undefined): Promise<KubeObject | undefined> => {
    if (one === undefined) return undefined;
    try {
      return (await version.convert([one]))[0];
    } catch (error) {
      throw internalError(textOf(error));
    }
  };
  return {
    resource: { group: version.group, version: version.version, resource: version.resource },
    kind: version.kind,
    object: await convert(object),
    oldObject: await convert(oldObject),
    isConverted: true,
  };
}

/** RBAC's rules (Kubernetes: pkg/apis/rbac/v1/evaluation_helpers.go). */
import type { KubeObject } from "@quorate/kube-storage";
import type { AuthorizerAttributes } from "./authorizer.ts";

export const RBAC_GROUP = "rbac.authorization.k8s.io";

/** rbac.authorization.k8s.io/v1 PolicyRule. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

export interface RoleRef {
  readonly apiGroup: string;
  readonly kind: string;
  readonly name: string;
}

export interface Subject {
  readonly kind: string;
  readonly apiGroup?: string;
  readonly name: string;
  readonly namespace?: string;
}

/** The rules of a Role or ClusterRole. */
export function rulesOf(role: KubeObject): readonly PolicyRule[] {
  return (role["rules"] as readonly PolicyRule[] | null | undefined) ?? [];
}

/** The subjects of a RoleBinding or ClusterRoleBinding. */
export function subjectsOf(binding: KubeObject): readonly Subject[] {
  return (binding["subjects"] as readonly Subject[] | null | undefined) ?? [];
}

/** Whether a rule allows a request. */
export function ruleAllows(rule: PolicyRule, attributes: AuthorizerAttributes): boolean {
  if (!hasOrAll(rule.verbs, attributes.verb)) return false;
  if (!attributes.isResourceRequest) return urlMatches(rule, attributes.path);
  return (
    hasOrAll(rule.apiGroups, attributes.group) &&
    resourceMatches(rule, attributes.resource, attributes.subresource) &&
    nameMatches(rule, attributes.name)
  );
}

function hasOrAll(set: readonly string[] | undefined, one: string): boolean {
  return set?.some((each) => each === "*" || each === one) ?? false;
}

function resourceMatches(rule: PolicyRule, resource: string, subresource: string): boolean {
  const whole = subresource === "" ? resource : `${resource}/${subresource}`;
  if (hasOrAll(rule.resources, whole)) return true;
  return subresource !== "" && (rule.resources?.includes(`*/${subresource}`) ?? false);
}

function nameMatches({ resourceNames }: PolicyRule, name: string): boolean {
  if (resourceNames === undefined || resourceNames.length === 0) return true;
  return resourceNames.includes(name);
}

function urlMatches({ nonResourceURLs }: PolicyRule, path: string): boolean {
  return nonResourceURLs?.some((url) => urlCovers(url, path)) ?? false;
}

/** "/healthz/*" covers all that begins with "/healthz/". */
export function urlCovers(url: string, path: string): boolean {
  if (url === "*" || url === path) return true;
  if (!url.endsWith("*")) return false;
  let end = url.length - 1;
  while (url[end - 1] === "*") end--;
  return path.startsWith(url.slice(0, end));
}

/** Texts as Go's %q prints a list: ["a" "b"]. */
export function goList(texts: readonly string[]): string {
  return `[${texts.map((text) => JSON.stringify(text)).join(" ")}]`;
}

/**
 * What keeps users from granting more than they have (Kubernetes: component-helpers
 * auth/rbac/validation/policy_comparator.go, pkg/registry/rbac/validation).
 */
import type { UserInfo } from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { goList, type PolicyRule, urlCovers } from "./rules.ts";

/** Single rights that a comparison may have to look at; a role with more is refused. */
export const MAX_RIGHTS_TO_COMPARE = 250_000;
/** Missing rights that an error names. */
export const MAX_MISSING_RIGHTS = 1000;

/**
 * The first MAX_MISSING_RIGHTS of the rights in `wanted` that no rule of `held` covers, each of one
 * verb, resource and name.
 */
export function missingRights(
  held: readonly PolicyRule[],
  wanted: readonly PolicyRule[],
): readonly PolicyRule[] {
  const rights = wanted.values().flatMap(singleRights);
  const missing = rights.filter((right) => !held.some((one) => covers(one, right)));
  return missing.take(MAX_MISSING_RIGHTS).toArray();
}

/** How many single rights some rules have. */
export function countRights(rules: readonly PolicyRule[]): number {
  return rules.reduce((sum, rule) => {
    const { verbs, apiGroups = [], resources = [], resourceNames = [] } = rule;
    const names = Math.max(1, resourceNames.length);
    const urls = rule.nonResourceURLs?.length ?? 0;
    return sum + verbs.length * (apiGroups.length * resources.length * names + urls);
  }, 0);
}

function* singleRights(rule: PolicyRule): Generator<PolicyRule> {
  for (const group of rule.apiGroups ?? []) {
    for (const resource of rule.resources ?? []) {
      for (const verb of rule.verbs) {
        const right = { apiGroups: [group], resources: [resource], verbs: [verb] };
        const { resourceNames = [] } = rule;
        if (resourceNames.length === 0) yield right;
        for (const name of resourceNames) yield { ...right, resourceNames: [name] };
      }
    }
  }
  for (const url of rule.nonResourceURLs ?? []) {
    for (const verb of rule.verbs) yield { nonResourceURLs: [url], verbs: [verb] };
  }
}

/** @param right of one verb, group, resource and name at most */
function covers(owner: PolicyRule, right: PolicyRule): boolean {
  return (
    coversAll(owner.verbs, right.verbs) &&
    coversAll(owner.apiGroups, right.apiGroups) &&
    coversResource(owner.resources, right.resources) &&
    coversName(owner.resourceNames, right.resourceNames) &&
    coversUrl(owner.nonResourceURLs, right.nonResourceURLs)
  );
}

type Texts = readonly string[] | undefined;

function coversAll(owner: Texts, wanted: Texts): boolean {
  if (owner?.includes("*")) return true;
  return wanted?.every((one) => owner?.includes(one)) ?? true;
}

function coversResource(owner: Texts, wanted: Texts): boolean {
  if (coversAll(owner, wanted)) return true;
  return (wanted ?? []).every((path) => {
    if (owner?.includes(path)) return true;
    const slash = path.indexOf("/");
    return slash !== -1 && (owner?.includes(`*${path.slice(slash)}`) ?? false);
  });
}

function coversName(owner: Texts, wanted: Texts): boolean {
  if (owner === undefined || owner.length === 0) return true;
  return wanted !== undefined && wanted.length > 0 && wanted.every((one) => owner.includes(one));
}

function coversUrl(owner: Texts, wanted: Texts): boolean {
  return wanted?.every((path) => owner?.some((url) => urlCovers(url, path))) ?? true;
}

/** The message of a refused grant. */
export function escalationMessage(
  user: UserInfo,
  missing: readonly PolicyRule[],
  failures: readonly string[],
): string {
  const lines = [...new Set(compacted(missing).map(ruleText))].sort();
  const head =
    `user ${JSON.stringify(user.name)} (groups=${goList(user.groups)}) is attempting to grant ` +
    `RBAC permissions not currently held:\n${lines.join("\n")}`;
  return failures.length === 0 ? head : `${head}; resolution errors: [${failures.join(", ")}]`;
}

/** Rights that differ in their verb alone become one. */
function compacted(rights: readonly PolicyRule[]): readonly PolicyRule[] {
  const simple = new Map<string, PolicyRule>();
  const others: PolicyRule[] = [];
  for (const right of rights) {
    const { apiGroups, resources, resourceNames, nonResourceURLs, verbs } = right;
    if (nonResourceURLs !== undefined) {
      others.push(right);
      continue;
    }
    const key = JSON.stringify([apiGroups, resources, resourceNames]);
    const known = simple.get(key);
    simple.set(key, known === undefined ? right : { ...right, verbs: [...known.verbs, ...verbs] });
  }
  return [...others, ...simple.values()];
}

function ruleText(rule: PolicyRule): string {
  const parts: [string, Texts][] = [
    ["APIGroups", rule.apiGroups],
    ["Resources", rule.resources],
    ["NonResourceURLs", rule.nonResourceURLs],
    ["ResourceNames", rule.resourceNames],
    ["Verbs", rule.verbs],
  ];
  const texts = parts
    .filter(([, values]) => values !== undefined && values.length > 0)
    .map(([name, values]) => `${name}:${goList(defined(values, "the values"))}`);
  return `{${texts.join(", ")}}`;
}

/** ResourceQuotas as objects: what they limit, and what they say is used. */
import type { Amounts, KubeObject } from "@quorate/kube-storage";
import { listOf, objectOf } from "../builtin/rules/rules.ts";
import type { ResourceRef } from "../informers/local-client.ts";
import type { Evaluator, ScopeRequirement } from "./evaluators.ts";

export const QUOTAS: ResourceRef = { group: "", version: "v1", resource: "resourcequotas" };
export const QUOTA_STATUS: ResourceRef = { ...QUOTAS, subresource: "status" };

function amountsOf(quota: KubeObject, place: "spec" | "status", name: string): Amounts {
  return objectOf(objectOf(quota[place])[name]) as Amounts;
}

/** What the author wants; the status has what is enforced. */
export function wantedOf(quota: KubeObject): Amounts {
  return amountsOf(quota, "spec", "hard");
}

export function hardOf(quota: KubeObject): Amounts {
  return amountsOf(quota, "status", "hard");
}

export function usedOf(quota: KubeObject): Amounts {
  return amountsOf(quota, "status", "used");
}

export function scopesOf(quota: KubeObject): readonly ScopeRequirement[] {
  const spec = objectOf(quota["spec"]);
  const plain = listOf<string>(spec["scopes"]).map((scopeName) => ({
    scopeName,
    operator: "Exists",
  }));
  const { matchExpressions } = objectOf(spec["scopeSelector"]);
  return [...plain, ...listOf<ScopeRequirement>(matchExpressions)];
}

/** Whether the object is in all scopes of the quota. */
export function isInScopes(quota: KubeObject, object: KubeObject, evaluator: Evaluator): boolean {
  return scopesOf(quota).every((scope) => evaluator.isIn(scope, object));
}

export function withStatus(
  quota: KubeObject,
  status: { hard?: Amounts; used: Amounts },
): KubeObject {
  return { ...quota, status: { ...objectOf(quota["status"]), ...status } };
}

/**
 * Refuses roles and bindings that would grant more than their author has (Kubernetes:
 * pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased,
 * escalation_check). The verbs "escalate" on roles and "bind" on the role referred to allow it; so
 * does system:masters.
 */

import type { KubeObject, RequestContext, StoreHooks } from "@quorate/kube-storage";
import { forbidden, notFound, semanticEqual } from "@quorate/kube-storage";
import { MASTERS_GROUP } from "../authn/user-names.ts";
import type { Authorizer } from "./authorizer.ts";
import {
  countRights,
  escalationMessage,
  MAX_RIGHTS_TO_COMPARE,
  missingRights,
} from "./escalation.ts";
import type { RuleResolver } from "./rbac-authorizer.ts";
import type { RoleRules } from "./rbac-index.ts";
import { aggregationSelectors } from "./rbac-validation.ts";
import { type PolicyRule, RBAC_GROUP, type RoleRef, rulesOf } from "./rules.ts";

export interface GrantDependencies {
  readonly authorizer: Authorizer;
  /** Of RBAC alone: other authorizers' rules do not count. */
  readonly rbac: RuleResolver;
  readonly roles: { roleRules(role: RoleRef, namespace: string): RoleRules };
}

const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
  { verbs: ["*"], nonResourceURLs: ["*"] },
];

type Check = (ctx: RequestContext, object: KubeObject, old?: KubeObject) => Promise<void>;

/** Hooks of roles or clusterroles. */
export function roleHooks(
  resource: "roles" | "clusterroles",
  deps: () => GrantDependencies,
): StoreHooks {
  return hooksOf(async (ctx, role, old) => {
    const { authorizer } = deps();
    const name = old === undefined ? "" : (old.metadata.name ?? "");
    if (await may(ctx, authorizer, "escalate", resource, name, ctx.namespace)) return;
    const of = { group: RBAC_GROUP, resource };
    const own = role.metadata.name ?? "";
    const problem = grantProblem(ctx, deps(), rulesOf(role));
    if (problem !== undefined) throw forbidden(of, own, problem);
    if (!isAggregated(role) && !(old !== undefined && isAggregated(old))) return;
    if (grantProblem(ctx, deps(), EVERYTHING) !== undefined) {
      throw forbidden(of, own, "must have cluster-admin privileges to use the aggregationRule");
    }
  });
}

/** Hooks of rolebindings or clusterrolebindings. */
export function bindingHooks(
  resource: "rolebindings" | "clusterrolebindings",
  deps: () => GrantDependencies,
): StoreHooks {
  return hooksOf(async (ctx, binding) => {
    const { authorizer, roles } = deps();
    const ref = (binding["roleRef"] ?? {}) as RoleRef;
    const isKnown = ref.kind === "Role" || ref.kind === "ClusterRole";
    const of = ref.kind === "Role" ? "roles" : "clusterroles";
    if (isKnown && (await may(ctx, authorizer, "bind", of, ref.name, ctx.namespace))) return;
    const { rules, error } = roles.roleRules(ref, ctx.namespace);
    // Kubernetes names the resource of the request here.
    if (error !== undefined) throw notFound({ group: RBAC_GROUP, resource }, ref.name);
    const problem = grantProblem(ctx, deps(), rules);
    if (problem === undefined) return;
    const name = binding.metadata.name ?? "";
    throw forbidden({ group: RBAC_GROUP, resource }, name, problem);
  });
}

function hooksOf(check: Check): StoreHooks {
  return {
    async beginCreate(ctx, object) {
      if (!isMaster(ctx)) await check(ctx, object);
      return { object };
    },
    async beginUpdate(ctx, object, old) {
      if (!isMaster(ctx) && !changesOnlyGcFields(object, old)) await check(ctx, object, old);
      return { object };
    },
  };
}

function isMaster({ user }: RequestContext): boolean {
  return user.groups.includes(MASTERS_GROUP);
}

function isAggregated(role: KubeObject): boolean {
  return (aggregationSelectors(role)?.length ?? 0) > 0;
}

/** The garbage collector must be able to let go of an object whatever it grants. */
export function changesOnlyGcFields(object: KubeObject, old: KubeObject): boolean {
  const { ownerReferences, finalizers, managedFields } = old.metadata;
  const { resourceVersion: _, ...metadata } = {
    ...object.metadata,
    ownerReferences,
    finalizers,
    managedFields,
  };
  const { resourceVersion: __, ...before } = old.metadata;
  return semanticEqual({ ...object, metadata }, { ...old, metadata: before });
}

async function may(
  ctx: RequestContext,
  authorizer: Authorizer,
  verb: "escalate" | "bind",
  resource: string,
  name: string,
  namespace: string,
): Promise<boolean> {
  const { decision } = await authorizer.authorize({
    user: ctx.user,
    verb,
    isResourceRequest: true,
    namespace,
    group: RBAC_GROUP,
    version: "*",
    resource,
    subresource: "",
    name,
    path: "",
  });
  return decision === "allow";
}

/** Why the user may not grant some rules; undefined where it may. */
function grantProblem(
  ctx: RequestContext,
  { rbac }: GrantDependencies,
  rules: readonly PolicyRule[],
): string | undefined {
  const held = rbac.rulesFor(ctx.user, ctx.namespace);
  if (countRights(rules) * Math.max(1, held.rules.length) > MAX_RIGHTS_TO_COMPARE) {
    const covered = missingRights(held.rules, EVERYTHING).length === 0;
    return covered
      ? undefined
      : `its rules have more than ${MAX_RIGHTS_TO_COMPARE} rights to compare`;
  }
  const missing = missingRights(held.rules, rules);
  return missing.length === 0 ? undefined : escalationMessage(ctx.user, missing, held.errors);
}

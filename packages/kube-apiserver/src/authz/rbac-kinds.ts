/** The four resources of rbac.authorization.k8s.io/v1 (Kubernetes: pkg/registry/rbac). */

import {
  AGE,
  builtinSpec,
  DEFAULT_TABLE,
  type KindSource,
  type KubeObject,
  nameColumn,
  nameIsPathSegment,
  plainStrategy,
  type ResourceSpec,
  type StoreHooks,
  type Strategy,
  type TableConvertor,
  tableOf,
  textColumn,
} from "@quorate/kube-storage";
import { bindingHooks, type GrantDependencies, roleHooks } from "./grant-check.ts";
import { bindingErrors, bindingUpdateErrors, roleErrors } from "./rbac-validation.ts";
import { type RoleRef, subjectsOf } from "./rules.ts";

/**
 * @param source of each kind: Role, RoleBinding, ClusterRole, ClusterRoleBinding
 * @param deps of the escalation check; read with the first write
 */
export function rbacResources(
  source: (kind: string) => KindSource,
  deps: () => GrantDependencies,
): readonly ResourceSpec[] {
  return [
    roleSpec(source("Role"), "roles", true, roleHooks("roles", deps)),
    bindingSpec(source("RoleBinding"), "rolebindings", true, bindingHooks("rolebindings", deps)),
    roleSpec(source("ClusterRole"), "clusterroles", false, roleHooks("clusterroles", deps)),
    bindingSpec(
      source("ClusterRoleBinding"),
      "clusterrolebindings",
      false,
      bindingHooks("clusterrolebindings", deps),
    ),
  ];
}

function roleSpec(
  source: KindSource,
  resource: string,
  namespaced: boolean,
  hooks: StoreHooks,
): ResourceSpec {
  return rbacSpec(source, resource, namespaced, hooks, DEFAULT_TABLE, {
    validate: (_ctx, object) => roleErrors(object, namespaced),
    validateUpdate: (_ctx, object) => roleErrors(object, namespaced),
  });
}

const BINDING_TABLE = tableOf(
  nameColumn(),
  textColumn("Role", "The role that the binding grants.", (object) => {
    const { kind: roleKind, name } = object["roleRef"] as RoleRef;
    return `${roleKind}/${name}`;
  }),
  AGE,
  textColumn("Users", "Its subjects that are users.", (one) => subjects(one, "User"), 1),
  textColumn("Groups", "Its subjects that are groups.", (one) => subjects(one, "Group"), 1),
  textColumn(
    "ServiceAccounts",
    "Its subjects that are service accounts.",
    (one) => subjects(one, "ServiceAccount"),
    1,
  ),
);

function bindingSpec(
  source: KindSource,
  resource: string,
  namespaced: boolean,
  hooks: StoreHooks,
): ResourceSpec {
  return rbacSpec(source, resource, namespaced, hooks, BINDING_TABLE, {
    validate: (_ctx, object) => bindingErrors(object, namespaced),
    validateUpdate: (_ctx, object, old) => bindingUpdateErrors(object, old, namespaced),
  });
}

function rbacSpec(
  source: KindSource,
  resource: string,
  namespaced: boolean,
  hooks: StoreHooks,
  table: TableConvertor,
  rules: Pick<Strategy, "validate" | "validateUpdate">,
): ResourceSpec {
  const { kind } = source;
  const strategy = plainStrategy({ kind, namespaced }, { allowCreateOnUpdate: true, ...rules });
  const nameRule = nameIsPathSegment;
  return builtinSpec(source, resource, { namespaced, hooks, nameRule, strategy, table });
}

function subjects(binding: KubeObject, kind: string): string {
  return subjectsOf(binding)
    .filter((one) => one.kind === kind)
    .map((one) => (kind === "ServiceAccount" ? `${one.namespace}/${one.name}` : one.name))
    .join(", ");
}

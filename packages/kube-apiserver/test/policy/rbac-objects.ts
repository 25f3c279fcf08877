/** Roles, bindings and questions for tests. */
import type { KubeObject, UserInfo } from "@quorate/kube-storage";
import type { AuthorizerAttributes } from "../../src/authz/authorizer.ts";

export const GROUP = "rbac.authorization.k8s.io";

export function wants(
  user: UserInfo,
  verb: string,
  resource: string,
  namespace: string,
  name = "",
) {
  const [plural, subresource = ""] = resource.split("/");
  const attributes: AuthorizerAttributes = {
    user,
    verb,
    isResourceRequest: true,
    namespace,
    group: "",
    version: "v1",
    resource: plural,
    subresource,
    name,
    path: "",
  };
  return attributes;
}

export function role(kind: string, name: string, rules: unknown[], more = {}): KubeObject {
  return { apiVersion: `${GROUP}/v1`, kind, metadata: { name }, rules, ...more };
}

export function binding(
  kind: string,
  name: string,
  roleKind: string,
  of: string,
  subjects: unknown[],
) {
  const roleRef = { apiGroup: GROUP, kind: roleKind, name: of };
  return { apiVersion: `${GROUP}/v1`, kind, metadata: { name }, roleRef, subjects };
}

export const user = (name: string) => ({ kind: "User", apiGroup: GROUP, name });

export const read = { verbs: ["get", "list"], apiGroups: [""], resources: ["configmaps"] };

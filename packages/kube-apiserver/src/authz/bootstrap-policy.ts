/**
 * The roles and bindings that every cluster has (Kubernetes: plugin/pkg/auth/authorizer/rbac/
 * bootstrappolicy), as far as they do not concern nodes, scheduling and other kinds that are not
 * served here.
 */

import type { KubeObject } from "@quorate/kube-storage";
import {
  ALL_SERVICE_ACCOUNTS_GROUP,
  AUTHENTICATED_GROUP,
  MASTERS_GROUP,
  UNAUTHENTICATED_GROUP,
} from "../authn/user-names.ts";
import { EDIT_RULES, READ, READ_WRITE, ruleOf, urlRule, VIEW_RULES } from "./bootstrap-rules.ts";
import { type PolicyRule, RBAC_GROUP, type Subject } from "./rules.ts";

/** "false" keeps an object as it is when the server starts. */
export const AUTOUPDATE_ANNOTATION = "rbac.authorization.kubernetes.io/autoupdate";
const LABELS = { "kubernetes.io/bootstrapping": "rbac-defaults" };
const ANNOTATIONS = { [AUTOUPDATE_ANNOTATION]: "true" };
const API_VERSION = `${RBAC_GROUP}/v1`;
const HEALTH_URLS = ["/livez", "/readyz", "/healthz"];

export function bootstrapClusterRoles(): readonly KubeObject[] {
  return [
    clusterRole("cluster-admin", [ruleOf(["*"], ["*"], "*"), urlRule("*", "*")]),
    clusterRole("system:discovery", [
      urlRule(
        "get",
        ...HEALTH_URLS,
        "/version",
        "/version/",
        "/openapi",
        "/openapi/*",
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
      ),
    ]),
    clusterRole("system:monitoring", [
      urlRule(
        "get",
        "/metrics",
        "/metrics/slis",
        "/flagz",
        "/statusz",
        ...HEALTH_URLS,
        ...HEALTH_URLS.map((url) => `${url}/*`),
      ),
      ruleOf(["get"], [""], "nodes/metrics"),
    ]),
    clusterRole("system:basic-user", [
      ruleOf(
        ["create"],
        ["authorization.k8s.io"],
        "selfsubjectaccessreviews selfsubjectrulesreviews",
      ),
      ruleOf(["create"], ["authentication.k8s.io"], "selfsubjectreviews"),
    ]),
    clusterRole("system:public-info-viewer", [
      urlRule("get", ...HEALTH_URLS, "/version", "/version/"),
    ]),
    aggregated("admin", undefined),
    aggregated("edit", "admin"),
    aggregated("view", "edit"),
    part("admin", [
      ruleOf(["create"], ["authorization.k8s.io"], "localsubjectaccessreviews"),
      ruleOf(READ_WRITE, [RBAC_GROUP], "roles rolebindings"),
    ]),
    part("edit", EDIT_RULES),
    part("view", VIEW_RULES),
    clusterRole("system:auth-delegator", [
      ruleOf(["create"], ["authentication.k8s.io"], "tokenreviews"),
      ruleOf(["create"], ["authorization.k8s.io"], "subjectaccessreviews"),
    ]),
    clusterRole("system:service-account-issuer-discovery", [
      urlRule(
        "get",
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/",
        "/openid/v1/jwks",
        "/openid/v1/jwks/",
      ),
    ]),
  ];
}

export function bootstrapClusterRoleBindings(): readonly KubeObject[] {
  return [
    clusterBinding("cluster-admin", MASTERS_GROUP),
    clusterBinding("system:monitoring", "system:monitoring"),
    clusterBinding("system:discovery", AUTHENTICATED_GROUP),
    clusterBinding("system:basic-user", AUTHENTICATED_GROUP),
    clusterBinding("system:public-info-viewer", AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP),
    clusterBinding("system:service-account-issuer-discovery", ALL_SERVICE_ACCOUNTS_GROUP),
  ];
}

/** Roles in namespaces; an extension API server reads its authentication's configuration. */
export function bootstrapRoles(): readonly KubeObject[] {
  const name = "extension-apiserver-authentication-reader";
  const rule = {
    ...ruleOf(READ, [""], "configmaps"),
    resourceNames: ["extension-apiserver-authentication"],
  };
  const role = object("Role", name, {});
  const metadata = { ...role.metadata, namespace: "kube-system" };
  return [{ ...role, metadata, rules: [rule] }];
}

function object(kind: string, name: string, labels: Readonly<Record<string, string>>): KubeObject {
  return {
    kind,
    apiVersion: API_VERSION,
    metadata: { name, labels: { ...labels, ...LABELS }, annotations: ANNOTATIONS },
  };
}

function clusterRole(name: string, rules: readonly PolicyRule[]): KubeObject {
  return { ...object("ClusterRole", name, {}), rules };
}

function aggregateLabel(name: string): string {
  return `rbac.authorization.k8s.io/aggregate-to-${name}`;
}

/** A role that has the rules of all with its label; itself a part of `into`. */
function aggregated(name: string, into: string | undefined): KubeObject {
  const labels = into === undefined ? {} : { [aggregateLabel(into)]: "true" };
  const matchLabels = { [aggregateLabel(name)]: "true" };
  const aggregationRule = { clusterRoleSelectors: [{ matchLabels }] };
  return { ...object("ClusterRole", name, labels), aggregationRule, rules: null };
}

/** What this server contributes to an aggregated role. */
function part(of: string, rules: readonly PolicyRule[]): KubeObject {
  const labels = { [aggregateLabel(of)]: "true" };
  return { ...object("ClusterRole", `system:aggregate-to-${of}`, labels), rules };
}

function clusterBinding(role: string, ...groups: readonly string[]): KubeObject {
  const subjects = groups.map((name): Subject => ({ kind: "Group", apiGroup: RBAC_GROUP, name }));
  const roleRef = { apiGroup: RBAC_GROUP, kind: "ClusterRole", name: role };
  return { ...object("ClusterRoleBinding", role, {}), roleRef, subjects };
}

/**
 * Rules of the default roles, in a short notation (Kubernetes: bootstrappolicy/policy.go). Their
 * lists are sorted.
 */
import type { PolicyRule } from "./rules.ts";

export const READ: readonly string[] = ["get", "list", "watch"];
export const WRITE: readonly string[] = ["create", "update", "patch", "delete", "deletecollection"];
export const READ_WRITE: readonly string[] = [...READ, ...WRITE];

/** @param resources separated by blanks */
export function ruleOf(
  verbs: readonly string[],
  apiGroups: string[],
  resources: string,
): PolicyRule {
  return {
    verbs: [...verbs].sort(),
    apiGroups: [...apiGroups].sort(),
    resources: resources.split(" ").sort(),
  };
}

export function urlRule(verb: string, ...nonResourceURLs: string[]): PolicyRule {
  return { verbs: [verb], nonResourceURLs: nonResourceURLs.sort() };
}

const EVENT_GROUPS = ["", "events.k8s.io"];

/** What "view" shows: all that does not lead to more rights, so no secrets and no roles. */
export const VIEW_RULES: readonly PolicyRule[] = [
  ruleOf(
    READ,
    [""],
    "pods replicationcontrollers replicationcontrollers/scale serviceaccounts services " +
      "services/status endpoints persistentvolumeclaims persistentvolumeclaims/status configmaps",
  ),
  ruleOf(
    READ,
    [""],
    "limitranges resourcequotas bindings pods/status resourcequotas/status namespaces/status " +
      "replicationcontrollers/status pods/log",
  ),
  ruleOf(READ, [""], "namespaces"),
  ruleOf(READ, EVENT_GROUPS, "events"),
  ruleOf(READ, ["discovery.k8s.io"], "endpointslices"),
  ruleOf(
    READ,
    ["apps"],
    "controllerrevisions statefulsets statefulsets/status statefulsets/scale daemonsets " +
      "daemonsets/status deployments deployments/status deployments/scale replicasets " +
      "replicasets/status replicasets/scale",
  ),
  ruleOf(READ, ["autoscaling"], "horizontalpodautoscalers horizontalpodautoscalers/status"),
  ruleOf(READ, ["batch"], "jobs cronjobs cronjobs/status jobs/status"),
  ruleOf(
    READ,
    ["extensions"],
    "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses " +
      "ingresses/status replicasets replicasets/scale replicasets/status " +
      "replicationcontrollers/scale networkpolicies",
  ),
  ruleOf(READ, ["policy"], "poddisruptionbudgets poddisruptionbudgets/status"),
  ruleOf(READ, ["networking.k8s.io"], "networkpolicies ingresses ingresses/status"),
  ruleOf(READ, ["resource.k8s.io"], "resourceclaims resourceclaims/status resourceclaimtemplates"),
];

/** What "edit" adds to "view". */
export const EDIT_RULES: readonly PolicyRule[] = [
  ruleOf(READ, [""], "pods/attach pods/proxy pods/exec pods/portforward secrets services/proxy"),
  ruleOf(["impersonate"], [""], "serviceaccounts"),
  ruleOf(WRITE, [""], "pods pods/attach pods/proxy pods/exec pods/portforward"),
  ruleOf(["create"], [""], "pods/eviction"),
  ruleOf(
    WRITE,
    [""],
    "replicationcontrollers replicationcontrollers/scale serviceaccounts services " +
      "services/proxy persistentvolumeclaims configmaps secrets",
  ),
  ruleOf(["create"], [""], "serviceaccounts/token"),
  ruleOf(WRITE, EVENT_GROUPS, "events"),
  ruleOf(
    WRITE,
    ["apps"],
    "statefulsets statefulsets/scale daemonsets deployments deployments/scale " +
      "deployments/rollback replicasets replicasets/scale",
  ),
  ruleOf(WRITE, ["autoscaling"], "horizontalpodautoscalers"),
  ruleOf(WRITE, ["batch"], "jobs cronjobs"),
  ruleOf(
    WRITE,
    ["extensions"],
    "daemonsets deployments deployments/scale deployments/rollback ingresses replicasets " +
      "replicasets/scale replicationcontrollers/scale networkpolicies",
  ),
  ruleOf(WRITE, ["policy"], "poddisruptionbudgets"),
  ruleOf(WRITE, ["networking.k8s.io"], "networkpolicies ingresses"),
  ruleOf(READ_WRITE, ["coordination.k8s.io"], "leases"),
  ruleOf(WRITE, ["resource.k8s.io"], "resourceclaims resourceclaimtemplates"),
];

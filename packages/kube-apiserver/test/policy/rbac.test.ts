/** RBAC's rules and index by themselves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@quorate/kube-storage";
import { forbiddenError } from "../../src/authn/forbidden.ts";
import { missingRights } from "../../src/authz/escalation.ts";
import { RbacAuthorizer } from "../../src/authz/rbac-authorizer.ts";
import { RbacIndex } from "../../src/authz/rbac-index.ts";
import type { PolicyRule } from "../../src/authz/rules.ts";
import { binding, read, role, user, wants } from "./rbac-objects.ts";
import { userOf } from "./world.ts";

test("the error of a refused request has Kubernetes' text", () => {
  const attributes = wants(userOf("x"), "list", "configmaps", "y");
  const error = forbiddenError(attributes, "");
  assert.equal(
    error.message,
    'configmaps is forbidden: User "x" cannot list resource "configmaps" in API group "" in the ' +
      'namespace "y"',
  );
  const named = wants(userOf("<x>"), "get", "pods/log", "", "p");
  assert.equal(
    forbiddenError({ ...named, group: "apps" }, "why").message,
    'pods.apps "p" is forbidden: User "&lt;x&gt;" cannot get resource "pods/log" in API group ' +
      '"apps" at the cluster scope: why',
  );
  const path = forbiddenError(
    { ...attributes, isResourceRequest: false, path: "/x", group: "", resource: "" },
    "",
  );
  assert.equal(path.message, 'forbidden: User "x" cannot list path "/x"');
  assert.equal(path.httpStatus, 403);
});

test("rights are covered only by rules that have all of them", () => {
  const of = (rule: Partial<PolicyRule>): PolicyRule => ({
    verbs: ["get"],
    apiGroups: [""],
    resources: ["secrets"],
    ...rule,
  });
  const isCovered = (held: Partial<PolicyRule>, wanted: Partial<PolicyRule>): boolean =>
    missingRights([of(held)], [of(wanted)]).length === 0;
  assert.equal(isCovered({}, {}), true);
  assert.equal(isCovered({}, { verbs: ["delete"] }), false);
  assert.equal(isCovered({ verbs: ["*"] }, { verbs: ["delete"] }), true);
  assert.equal(isCovered({ verbs: ["get"] }, { verbs: ["*"] }), false);
  assert.equal(isCovered({}, { apiGroups: ["apps"] }), false);
  assert.equal(isCovered({}, { resources: ["secrets/status"] }), false);
  assert.equal(isCovered({ resources: ["*/status"] }, { resources: ["secrets/status"] }), true);
  assert.equal(isCovered({ resources: ["*"] }, { resources: ["secrets/status"] }), true);
  assert.equal(isCovered({ resourceNames: ["a"] }, {}), false);
  assert.equal(isCovered({ resourceNames: ["a"] }, { resourceNames: ["a", "b"] }), false);
  assert.equal(isCovered({}, { resourceNames: ["a"] }), true);
  const url = (nonResourceURLs: string[]): PolicyRule => ({ verbs: ["get"], nonResourceURLs });
  const covers = (held: string, wanted: string) =>
    missingRights([url([held])], [url([wanted])]).length === 0;
  assert.equal(covers("/a/*", "/a/b"), true);
  assert.equal(covers("/a/*", "/b"), false);
  assert.equal(covers("/a", "/a/b"), false);
  assert.equal(covers("*", "/a/*"), true);
});

test("a decision among 10,000 bindings looks only at those of its user", () => {
  const index = new RbacIndex();
  const rbac = new RbacAuthorizer(index);
  const make = (i: number): KubeObject => {
    const namespaced = binding("RoleBinding", `b${i}`, "ClusterRole", `r${i % 10}`, [
      user(`u${i}`),
    ]);
    return { ...namespaced, metadata: { name: `b${i}`, namespace: "n" } } as KubeObject;
  };
  for (let i = 0; i < 10; i++) index.setRole(role("ClusterRole", `r${i}`, [read]));
  for (let i = 0; i < 10_000; i++) index.addBinding(make(i));
  let visited = 0;
  index.visitRules(userOf("u77", "g"), "n", () => ++visited > 0);
  assert.equal(visited, 1);
  assert.equal(rbac.decide(wants(userOf("u77"), "get", "configmaps", "n")).decision, "allow");
  for (let i = 0; i < 10_000; i++) index.deleteBinding(make(i));
  assert.equal(rbac.decide(wants(userOf("u77"), "get", "configmaps", "n")).decision, "no-opinion");
  index.addBinding(make(11));
  index.deleteRole(role("ClusterRole", "r1", []));
  assert.equal(
    rbac.decide(wants(userOf("u11"), "get", "configmaps", "n")).reason,
    'RBAC: clusterrole.rbac.authorization.k8s.io "r1" not found',
  );
});

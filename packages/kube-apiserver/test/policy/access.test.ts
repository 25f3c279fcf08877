/** Authorization by RBAC: decisions, the default roles, and what keeps users from escalating. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "@quorate/host/testing";
import type { ApiError } from "@quorate/kube-storage";
import type { Access } from "../../src/authz/access.ts";
import { reconcileDefaultPolicy } from "../../src/authz/bootstrap.ts";
import { binding, GROUP, read, role, user, wants } from "./rbac-objects.ts";
import { contextOf, MASTER, source, userOf, World } from "./world.ts";
import { accessOf } from "./world-access.ts";

interface Server {
  readonly world: World;
  readonly access: Access;
}

async function start(): Promise<Server> {
  const world = new World(new ManualClock());
  const access = accessOf(world);
  for (const spec of access.resources(source)) world.add(spec);
  world.serve(...access.endpoints(source));
  await world.namespace("team-a");
  await world.namespace("kube-system");
  await access.start(world);
  return { world, access };
}

const stop = ({ access }: Server): void => access.stop();

/** Waits until the informers have brought a change. */
async function until(isTrue: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 1000; turn++) {
    if (await isTrue()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.fail("the change did not arrive");
}

test("a role counts in its namespace, a cluster role bound there too, and no further", async () => {
  const server = await start();
  const { world, access } = server;
  const ann = userOf("ann");
  await world.create(MASTER, "roles", "team-a", role("Role", "reader", [read]), GROUP);
  const bound = binding("RoleBinding", "ann-reads", "Role", "reader", [user("ann")]);
  await world.create(MASTER, "rolebindings", "team-a", bound, GROUP);
  const decide = (...of: Parameters<typeof wants>) => access.authorizer.authorize(wants(...of));
  await until(async () => (await decide(ann, "get", "configmaps", "team-a")).decision === "allow");
  assert.equal(
    (await decide(ann, "list", "configmaps", "team-a")).reason,
    'RBAC: allowed by RoleBinding "ann-reads/team-a" of Role "reader" to User "ann"',
  );
  assert.equal((await decide(ann, "delete", "configmaps", "team-a")).decision, "no-opinion");
  assert.equal((await decide(ann, "get", "configmaps", "kube-system")).decision, "no-opinion");
  assert.equal((await decide(ann, "get", "configmaps/status", "team-a")).decision, "no-opinion");
  assert.equal((await decide(userOf("bob"), "get", "configmaps", "team-a")).decision, "no-opinion");
  const masters = userOf("root", "system:masters");
  assert.equal((await decide(masters, "delete", "secrets", "")).decision, "allow");
  stop(server);
});

test("the default roles are there, are repaired, and are left alone where protected", async () => {
  const server = await start();
  const { world, access } = server;
  await reconcileDefaultPolicy(world.client);
  const ref = { group: GROUP, version: "v1", resource: "clusterroles" };
  const protectedRole = "system:discovery";
  await world.client.update(ref, "", "cluster-admin", (it) => ({ ...it, rules: [] }));
  await world.client.update(ref, "", protectedRole, (it) => ({
    ...it,
    metadata: {
      ...it.metadata,
      annotations: { "rbac.authorization.kubernetes.io/autoupdate": "false" },
    },
    rules: [],
  }));
  await reconcileDefaultPolicy(world.client);
  const admin = await world.client.get(ref, "", "cluster-admin");
  assert.equal((admin!["rules"] as unknown[]).length, 2);
  assert.equal((await world.client.get(ref, "", protectedRole))!["rules"], null);
  const anonymous = {
    name: "system:anonymous",
    uid: "",
    groups: ["system:unauthenticated"],
    extra: {},
  };
  const version = (path: string) =>
    access.authorizer.authorize({
      ...wants(anonymous, "get", "", ""),
      isResourceRequest: false,
      path,
    });
  await until(async () => (await version("/version")).decision === "allow");
  assert.equal((await version("/metrics")).decision, "no-opinion");
  stop(server);
});

async function refused(work: Promise<unknown>): Promise<ApiError> {
  return (await work.then(
    () => assert.fail("it was not refused"),
    (error: unknown) => error,
  )) as ApiError;
}

test("a user can grant only what it has, or may bind or escalate", async () => {
  const server = await start();
  const { world, access } = server;
  const ann = userOf("ann");
  const rules = [
    read,
    { verbs: ["create"], apiGroups: [GROUP], resources: ["rolebindings", "roles"] },
  ];
  await world.create(MASTER, "roles", "team-a", role("Role", "own", rules), GROUP);
  const own = binding("RoleBinding", "own", "Role", "own", [user("ann")]);
  await world.create(MASTER, "rolebindings", "team-a", own, GROUP);
  const may = wants(ann, "get", "configmaps", "team-a");
  await until(async () => (await access.authorizer.authorize(may)).decision === "allow");
  const more = { verbs: ["get", "delete"], apiGroups: [""], resources: ["secrets"] };
  const grant = (name: string, of: unknown[]) =>
    world.create(ann, "roles", "team-a", role("Role", name, of), GROUP);
  await grant("same", [{ ...read, resourceNames: ["one"] }]);
  const error = await refused(grant("more", [more]));
  assert.equal(error.httpStatus, 403);
  assert.equal(
    error.message,
    'roles.rbac.authorization.k8s.io "more" is forbidden: user "ann" (groups=["system:authenticated"]) ' +
      "is attempting to grant RBAC permissions not currently held:\n" +
      '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}',
  );
  await world.create(MASTER, "clusterroles", "", role("ClusterRole", "all", [more]), GROUP);
  const bindAll = binding("RoleBinding", "all", "ClusterRole", "all", [user("ann")]);
  const unbound = await refused(world.create(ann, "rolebindings", "team-a", bindAll, GROUP));
  assert.match(unbound.message, /attempting to grant RBAC|not found/);
  const bind = {
    verbs: ["bind"],
    apiGroups: [GROUP],
    resources: ["clusterroles"],
    resourceNames: ["all"],
  };
  await world.create(MASTER, "roles", "team-a", role("Role", "binder", [bind]), GROUP);
  const binder = binding("RoleBinding", "binder", "Role", "binder", [user("ann")]);
  await world.create(MASTER, "rolebindings", "team-a", binder, GROUP);
  const bindAttributes = { ...wants(ann, "bind", "clusterroles", "team-a", "all"), group: GROUP };
  await until(async () => (await access.authorizer.authorize(bindAttributes)).decision === "allow");
  await world.create(ann, "rolebindings", "team-a", bindAll, GROUP);
  stop(server);
});

test("aggregation needs every right, and an update cannot change a binding's role", async () => {
  const server = await start();
  const { world } = server;
  const ann = userOf("ann");
  const selectors = { clusterRoleSelectors: [{ matchLabels: { a: "b" } }] };
  const wide = role("ClusterRole", "wide", [], { aggregationRule: selectors });
  const error = await refused(world.create(ann, "clusterroles", "", wide, GROUP));
  assert.equal(
    error.message,
    'clusterroles.rbac.authorization.k8s.io "wide" is forbidden: must have cluster-admin ' +
      "privileges to use the aggregationRule",
  );
  const bound = binding("ClusterRoleBinding", "b", "ClusterRole", "wide", [user("ann")]);
  await world.create(MASTER, "clusterrolebindings", "", bound, GROUP);
  const ref = { group: GROUP, version: "v1", resource: "clusterrolebindings" };
  const changed = await refused(
    world.client.update(ref, "", "b", (it) => ({
      ...it,
      roleRef: { apiGroup: GROUP, kind: "ClusterRole", name: "other" },
    })),
  );
  assert.match(changed.message, /roleRef: Invalid value: .*: cannot change roleRef$/);
  stop(server);
});

test("objects that break the rules of their kind are refused with Kubernetes' texts", async () => {
  const server = await start();
  const { world } = server;
  const bad = role("Role", "bad", [
    { verbs: [], apiGroups: [""], resources: ["x"] },
    { verbs: ["get"], nonResourceURLs: ["/x"] },
    { verbs: ["get"] },
  ]);
  const error = await refused(world.create(MASTER, "roles", "team-a", bad, GROUP));
  assert.equal(
    error.message,
    'Role.rbac.authorization.k8s.io "bad" is invalid: [rules[0].verbs: Required value: verbs must ' +
      'contain at least one value, rules[1].nonResourceURLs: Invalid value: ["/x"]: namespaced ' +
      "rules cannot apply to non-resource URLs, rules[2].apiGroups: Required value: resource rules " +
      "must supply at least one api group, rules[2].resources: Required value: resource rules must " +
      "supply at least one resource]",
  );
  const wrong = binding("ClusterRoleBinding", "b", "Role", "r", [
    { kind: "ServiceAccount", name: "sa" },
    { kind: "Robot", name: "x" },
  ]);
  const texts = await refused(world.create(MASTER, "clusterrolebindings", "", wrong, GROUP));
  assert.deepEqual(
    texts.details!.causes!.map(({ field, message }) => `${field}: ${message}`),
    [
      'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
      "subjects[0].namespace: Required value",
      'subjects[1].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
    ],
  );
  stop(server);
});

test("reviews show what the authorizer decides", async () => {
  const server = await start();
  const { world } = server;
  const ann = userOf("ann");
  const review = (kind: string, spec: unknown, by = ann, namespace = "") =>
    world.create(
      by,
      `${kind.toLowerCase()}s`,
      namespace,
      {
        apiVersion: "authorization.k8s.io/v1",
        kind,
        metadata: namespace === "" ? {} : { namespace },
        spec,
      },
      "authorization.k8s.io",
    );
  const resourceAttributes = { verb: "get", resource: "secrets", namespace: "team-a" };
  const mine = await review("SelfSubjectAccessReview", { resourceAttributes });
  assert.deepEqual(mine["status"], { allowed: false });
  const groups = ["system:masters"];
  const theirs = await review("SubjectAccessReview", { resourceAttributes, user: "eve", groups });
  assert.deepEqual(theirs["status"], { allowed: true });
  const none = await refused(review("SubjectAccessReview", {}));
  assert.equal(
    none.message,
    '.authorization.k8s.io "" is invalid: [spec.resourceAttributes: Invalid ' +
      "value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified, " +
      'spec.user: Invalid value: "": at least one of user or group must be specified]',
  );
  const rules = await review("SelfSubjectRulesReview", { namespace: "team-a" });
  assert.deepEqual(rules["status"], { resourceRules: [], nonResourceRules: [], incomplete: false });
  const local = await refused(
    review(
      "LocalSubjectAccessReview",
      { resourceAttributes: { ...resourceAttributes, namespace: "b" }, user: "a" },
      ann,
      "team-a",
    ),
  );
  assert.match(
    local.message,
    /spec.resourceAttributes.namespace: Invalid value: "b": must match metadata.namespace/,
  );
  stop(server);
});

test("a comparison of rights that would take too long is refused, but not to who has all", async () => {
  const server = await start();
  const { world, access } = server;
  const names = Array.from({ length: 1000 }, (_, i) => `r${i}`);
  const huge = role("Role", "huge", [{ verbs: names, apiGroups: ["a", "b"], resources: names }]);
  const rules = [{ verbs: ["create"], apiGroups: [GROUP], resources: ["roles"] }, read];
  await world.create(MASTER, "clusterroles", "", role("ClusterRole", "own", rules), GROUP);
  const own = binding("ClusterRoleBinding", "own", "ClusterRole", "own", [user("ann")]);
  await world.create(MASTER, "clusterrolebindings", "", own, GROUP);
  const all = [
    { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
    { verbs: ["*"], nonResourceURLs: ["*"] },
  ];
  await world.create(MASTER, "clusterroles", "", role("ClusterRole", "all", all), GROUP);
  const root = binding("ClusterRoleBinding", "root", "ClusterRole", "all", [user("bea")]);
  await world.create(MASTER, "clusterrolebindings", "", root, GROUP);
  const may = wants(userOf("bea"), "get", "configmaps", "team-a");
  await until(async () => (await access.authorizer.authorize(may)).decision === "allow");
  const error = await refused(world.create(userOf("ann"), "roles", "team-a", huge, GROUP));
  assert.match(error.message, /its rules have more than 250000 rights to compare$/);
  await world.create(userOf("bea"), "roles", "team-a", huge, GROUP);
  stop(server);
});

test("a client's own claims do not reach the answer to who it is", async () => {
  const server = await start();
  const { world } = server;
  const whoami = await world.storage("authentication.k8s.io", "selfsubjectreviews").create!(
    contextOf(userOf("ann", "dev"), ""),
    {
      apiVersion: "authentication.k8s.io/v1",
      kind: "SelfSubjectReview",
      metadata: {},
      status: { userInfo: { username: "root" } },
    },
    async () => {},
    { dryRun: false, fieldManager: "", fieldValidation: "Strict" },
  );
  assert.deepEqual(whoami["status"], {
    userInfo: { username: "ann", groups: ["dev", "system:authenticated"] },
  });
  stop(server);
});

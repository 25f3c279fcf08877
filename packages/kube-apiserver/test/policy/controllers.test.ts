/** Controllers over real registries in memory: namespaces, their contents, roles, the lease. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApiError, KubeObject } from "@quorate/kube-storage";
import { LeaderElection } from "../../src/controllers/leader-election.ts";
import { driven, startServer, until } from "./server.ts";
import { MASTER } from "./world.ts";

const GROUP = "rbac.authorization.k8s.io";
const namespaces = { group: "", version: "v1", resource: "namespaces" };
const configMaps = { group: "", version: "v1", resource: "configmaps" };
const serviceAccounts = { group: "", version: "v1", resource: "serviceaccounts" };

function configMap(name: string, more = {}): KubeObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...more } };
}

test("a server starts with its namespaces, and each has an account and the CA", async () => {
  const { world, clock, stop } = await startServer();
  const { client } = world;
  const list = await driven(clock, client.list(namespaces, "", 0));
  assert.deepEqual(
    list.items.map((item) => item.object().metadata.name),
    ["default", "kube-node-lease", "kube-public", "kube-system"],
  );
  await driven(clock, world.namespace("new"));
  for (const name of ["default", "new"]) {
    await until(clock, `contents of ${name}`, async () => {
      const account = await client.get(serviceAccounts, name, "default");
      return (
        account !== undefined &&
        (await client.get(configMaps, name, "kube-root-ca.crt")) !== undefined
      );
    });
  }
  await driven(clock, client.delete(serviceAccounts, "new", "default"));
  await driven(
    clock,
    client.update(configMaps, "new", "kube-root-ca.crt", (it) => ({ ...it, data: {} })),
  );
  await until(clock, "the repair", async () => {
    const ca = await client.get(configMaps, "new", "kube-root-ca.crt");
    const account = await client.get(serviceAccounts, "new", "default");
    return (
      account !== undefined && (ca?.["data"] as Record<string, string>)?.["ca.crt"] !== undefined
    );
  });
  await stop();
});

test("controllers that are off do nothing", async () => {
  const controllers = new Set(["serviceaccount-controller"] as const);
  const { world, clock, stop } = await startServer({ controllers });
  const { client } = world;
  await driven(clock, world.namespace("new"));
  await until(clock, "the account", async () => {
    return (await client.get(serviceAccounts, "new", "default")) !== undefined;
  });
  assert.equal(await client.get(configMaps, "new", "kube-root-ca.crt"), undefined);
  await driven(clock, client.delete(namespaces, "", "new"));
  await clock.advanceAsync(60_000);
  const left = await driven(clock, client.get(namespaces, "", "new"));
  assert.equal(left?.metadata.finalizers, undefined);
  assert.deepEqual((left?.["spec"] as object | undefined) ?? {}, { finalizers: ["kubernetes"] });
  await stop();
});

test("a deleted namespace is emptied, reports what holds it up, and goes", async () => {
  const { world, clock, stop } = await startServer();
  const { client } = world;
  await driven(clock, world.namespace("team"));
  const held = configMap("held", { finalizers: ["example.org/wait"] });
  await driven(clock, client.create(configMaps, "team", held));
  await driven(clock, client.create(configMaps, "team", configMap("free")));
  await driven(clock, client.delete(namespaces, "", "team"));
  type Condition = { type: string; status: string; message: string };
  await until(clock, "the report", async () => {
    const status = (await client.get(namespaces, "", "team"))!["status"] as {
      conditions?: Condition[];
    };
    const remaining = status.conditions?.find(({ type }) => type === "NamespaceContentRemaining");
    return (
      remaining?.message === "Some resources are remaining: configmaps. has 1 resource instances"
    );
  });
  const { conditions } = (await driven(clock, client.get(namespaces, "", "team")))!["status"] as {
    conditions: Condition[];
  };
  assert.deepEqual(
    conditions.map(({ type, status }) => `${type}=${status}`),
    [
      "NamespaceDeletionDiscoveryFailure=False",
      "NamespaceDeletionGroupVersionParsingFailure=False",
      "NamespaceDeletionContentFailure=False",
      "NamespaceContentRemaining=True",
      "NamespaceFinalizersRemaining=True",
    ],
  );
  assert.equal(
    conditions[4].message,
    "Some content in the namespace has finalizers remaining: example.org/wait in 1 resource instances",
  );
  const error = (await driven(
    clock,
    client.create(configMaps, "team", configMap("late")).catch((it) => it),
  )) as ApiError;
  assert.equal(
    error.message,
    'configmaps "late" is forbidden: unable to create new content in namespace team because it is ' +
      "being terminated",
  );
  assert.equal(error.details!.causes![0].reason, "NamespaceTerminating");
  await driven(
    clock,
    client.update(configMaps, "team", "held", (it) => ({
      ...it,
      metadata: { ...it.metadata, finalizers: [] },
    })),
  );
  await until(
    clock,
    "the end",
    async () => (await client.get(namespaces, "", "team")) === undefined,
  );
  await stop();
});

test("admission keeps objects out of namespaces that are not there, and some for ever", async () => {
  const { world, clock, stop } = await startServer();
  const { client } = world;
  const fails = async (work: Promise<unknown>) =>
    (await driven(
      clock,
      work.catch((it: unknown) => it),
    )) as ApiError;
  const missing = await fails(client.create(configMaps, "nowhere", configMap("a")));
  assert.equal(missing.message, 'namespaces "nowhere" not found');
  assert.equal(missing.httpStatus, 404);
  const immortal = await fails(client.delete(namespaces, "", "default"));
  assert.equal(
    immortal.message,
    'namespaces "default" is forbidden: this namespace may not be deleted',
  );
  await stop();
});

test("a cluster role with an aggregation rule has the rules of those it chooses", async () => {
  const { world, clock, stop } = await startServer();
  const { client } = world;
  const roles = { group: GROUP, version: "v1", resource: "clusterroles" };
  const rulesOf = async (name: string) =>
    ((await client.get(roles, "", name))?.["rules"] as { resources?: string[] }[] | null) ?? [];
  await until(clock, "admin", async () => {
    const admin = await rulesOf("admin");
    const has = (resource: string) => admin.some(({ resources }) => resources?.includes(resource));
    return has("rolebindings") && has("secrets") && has("namespaces");
  });
  const labels = { "rbac.authorization.k8s.io/aggregate-to-view": "true" };
  const extra = {
    apiVersion: `${GROUP}/v1`,
    kind: "ClusterRole",
    metadata: { name: "widgets", labels },
    rules: [{ verbs: ["get"], apiGroups: ["example.org"], resources: ["widgets"] }],
  };
  await driven(clock, world.create(MASTER, "clusterroles", "", extra, GROUP));
  const hasWidgets = async (name: string) =>
    (await rulesOf(name)).some(({ resources }) => resources?.includes("widgets"));
  await until(clock, "the new rule", async () => (await hasWidgets("view")) && hasWidgets("admin"));
  await driven(clock, client.delete(roles, "", "widgets"));
  await until(
    clock,
    "its end",
    async () => !(await hasWidgets("view")) && !(await hasWidgets("admin")),
  );
  await stop();
});

test("one server leads; another one follows when the lease is free or has ended", async () => {
  const { world, clock, runtime, stop } = await startServer();
  await until(clock, "the first leader", () => runtime.isLeader);
  const events: string[] = [];
  const second = new LeaderElection(
    "server-2",
    { started: () => events.push("started"), stopped: () => events.push("stopped") },
    { client: world.client, clock, random: world.random.fork("2"), logger: world.logger },
  );
  second.start();
  await driven(clock, clock.advanceAsync(30_000));
  assert.deepEqual(events, []);
  await stop();
  assert.equal(runtime.isLeader, false);
  await until(clock, "the second leader", () => second.isLeader);
  assert.deepEqual(events, ["started"]);
  // The store is unreachable: the lease cannot be renewed, so the leader steps down.
  const leases = { group: "coordination.k8s.io", version: "v1", resource: "leases" };
  const taken = world.client.update(
    leases,
    "kube-system",
    "quorate-apiserver-controllers",
    (it) => ({
      ...it,
      spec: { ...(it["spec"] as object), holderIdentity: "server-3", leaseDurationSeconds: 15 },
    }),
  );
  await driven(clock, taken);
  await until(clock, "the loss", () => !second.isLeader);
  assert.deepEqual(events, ["started", "stopped"]);
  await until(clock, "a lease that ended", () => second.isLeader);
  await driven(clock, second.stop());
});

/** ResourceQuotas: no more than they allow is stored, and what goes is free again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import {
  addQuantities,
  compareQuantities,
  quantityMilli,
  subtractQuantities,
} from "@quorate/kube-storage";
import { MemoryCluster } from "@quorate/kube-storage/testing";
import { ApiWorld } from "../support/api-world.ts";

const ROOT = "/api/v1/namespaces/default";

type Fields = Readonly<Record<string, unknown>>;

const POLICY = {
  plugins: new Set(["ResourceQuota"] as const),
  rootCaPem: "",
  identity: "test",
  createsDefaultRoles: false,
};

/** A server whose admission judges, and whose controller counts if it has one. */
const open = (
  t: Parameters<typeof ApiWorld.open>[0],
  cluster = new MemoryCluster(),
  counts = true,
) =>
  ApiWorld.open(
    t,
    { policy: { ...POLICY, controllers: new Set(counts ? ["resourcequota-controller"] : []) } },
    cluster,
  );

async function quota(world: ApiWorld, name: string, spec: Fields): Promise<void> {
  await world.ok(`${ROOT}/resourcequotas`, { method: "POST", body: { metadata: { name }, spec } });
  await used(world, name, (status) => Object.keys(status.hard ?? {}).length > 0);
}

/** What the quota says is used, once `isGood`. */
async function used(
  world: ApiWorld,
  name: string,
  isGood: (status: { hard?: Fields; used?: Fields }) => boolean,
): Promise<Fields> {
  for (;;) {
    const { status } = await world.ok(`${ROOT}/resourcequotas/${name}`);
    if (isGood(status)) return status.used ?? {};
    await delay(5);
  }
}

const pod = (name: string, resources: Fields = {}, more: Fields = {}) => ({
  metadata: { name },
  spec: { containers: [{ name: "c", image: "i", resources }], ...more },
});

const create = (world: ApiWorld, resource: string, body: unknown, query = "") =>
  world.request(`${ROOT}/${resource}${query}`, { method: "POST", body });

test("Quantities are added, subtracted and compared exactly", () => {
  assert.equal(addQuantities("100m", "0.2"), "300m");
  assert.equal(addQuantities("1Gi", "512Mi"), "1536Mi");
  assert.equal(addQuantities("0", "1Ki"), "1Ki");
  assert.equal(addQuantities("1Ki", "1k"), "2024");
  assert.equal(subtractQuantities("1Gi", "1G"), "73741824");
  assert.equal(subtractQuantities("1", "3"), "-2");
  assert.equal(subtractQuantities("5", "5"), "0");
  assert.equal(addQuantities("9007199254740993", "1"), "9007199254740994");
  assert.ok(compareQuantities("9007199254740993", "9007199254740992") > 0);
  assert.equal(compareQuantities("1024Mi", "1Gi"), 0);
  assert.ok(compareQuantities("-1", "0") < 0);
  assert.equal(quantityMilli("100.1m"), 101);
  assert.equal(quantityMilli("0.1"), 100);
});

test("Many at once get what there is, on two servers, and no more", async (t) => {
  const cluster = new MemoryCluster();
  const worlds = [await open(t, cluster), await open(t, cluster, false)] as const;
  await quota(worlds[0], "q", { hard: { pods: "10", "requests.cpu": "1" } });
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      create(worlds[i % 2] as ApiWorld, "pods", pod(`p${i}`, { requests: { cpu: "100m" } })),
    ),
  );
  const made = answers.filter(({ status }) => status === 201).length;
  assert.ok(made <= 10);
  const { items } = await worlds[0].ok(`${ROOT}/pods`);
  assert.equal(items.length, made);
  for (const { status, json } of answers.filter(({ status: one }) => one !== 201))
    assert.ok(status === 409 || /exceeded quota: q, requested: /.test(json.message), json.message);
  // Those that lost their races come again, one after the other.
  for (let i = 0; i < 12; i++)
    await create(worlds[1], "pods", pod(`again${i}`, { requests: { cpu: "100m" } }));
  const all = await worlds[0].ok(`${ROOT}/pods`);
  assert.equal(all.items.length, 10);
  const one = await create(worlds[0], "pods", pod("more", { requests: { cpu: "100m" } }));
  assert.equal(
    one.json.message,
    'pods "more" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=100m, ' +
      "used: pods=10,requests.cpu=1, limited: pods=10,requests.cpu=1",
  );
  await worlds[0].ok(`${ROOT}/pods/${all.items[0].metadata.name}`, { method: "DELETE" });
  await used(worlds[0], "q", ({ used: now }) => now?.["pods"] === "9");
  const freed = await create(worlds[1], "pods", pod("more", { requests: { cpu: "100m" } }));
  assert.equal(freed.status, 201);
});

test("A quota of cpu needs requests; a dry run uses nothing; scopes decide", async (t) => {
  const world = await open(t);
  await quota(world, "cpu", {
    hard: { "limits.cpu": "2", memory: "1Gi" },
    scopes: ["Terminating"],
  });
  const ends = { activeDeadlineSeconds: 5 };
  const silent = await create(world, "pods", pod("a", {}, ends));
  assert.equal(
    silent.json.message,
    'pods "a" is forbidden: failed quota: cpu: must specify limits.cpu for: c; memory for: c',
  );
  assert.equal((await create(world, "pods", pod("b"))).status, 201, "not in the scope");
  const limits = { cpu: "2", memory: "1Gi" };
  const asks = pod("a", { limits, requests: limits }, ends);
  assert.equal((await create(world, "pods", asks, "?dryRun=All")).status, 201);
  const before = await used(world, "cpu", () => true);
  assert.deepEqual(before, { "limits.cpu": "0", memory: "0" });
  assert.equal((await create(world, "pods", asks)).status, 201);
  assert.deepEqual(await used(world, "cpu", () => true), { "limits.cpu": "2", memory: "1Gi" });
  // A pod that has ended frees what it had.
  const headers = { "content-type": "application/merge-patch+json" };
  const body = { status: { phase: "Succeeded" } };
  await world.ok(`${ROOT}/pods/a/status`, { method: "PATCH", headers, body });
  await used(world, "cpu", ({ used: now }) => now?.["limits.cpu"] === "0");
});

test("Services, claims and counts of any resource", async (t) => {
  const world = await open(t);
  const gold = "gold.storageclass.storage.k8s.io/requests.storage";
  const hard = {
    "services.nodeports": "1",
    "requests.storage": "5Gi",
    [gold]: "2Gi",
    configmaps: "1",
    "count/deployments.apps": "0",
  };
  await quota(world, "q", { hard });
  const service = (name: string, type: string) => ({
    metadata: { name },
    spec: { type, ports: [{ port: 80 }] },
  });
  assert.equal((await create(world, "services", service("a", "NodePort"))).status, 201);
  assert.equal((await create(world, "services", service("b", "ClusterIP"))).status, 201);
  const headers = { "content-type": "application/merge-patch+json" };
  const body = { spec: { type: "NodePort" } };
  const second = await world.request(`${ROOT}/services/b`, { method: "PATCH", headers, body });
  assert.match(second.json.message, /requested: services.nodeports=1, used: services.nodeports=1/);
  const claim = (name: string, storage: string, storageClassName: string) => ({
    metadata: { name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName,
      resources: { requests: { storage } },
    },
  });
  const claims = "persistentvolumeclaims";
  assert.equal((await create(world, claims, claim("a", "2Gi", "gold"))).status, 201);
  const more = await create(world, claims, claim("b", "1", "gold"));
  assert.match(more.json.message, /exceeded quota: q, requested: gold.*=1, used: gold.*=2Gi/);
  assert.equal((await create(world, claims, claim("b", "3Gi", "tin"))).status, 201);
  assert.equal((await create(world, "configmaps", { metadata: { name: "a" } })).status, 201);
  const config = await create(world, "configmaps", { metadata: { name: "b" } });
  assert.match(config.json.message, /requested: configmaps=1, used: configmaps=1, limited: confi/);
  const template = { metadata: { labels: { a: "b" } }, spec: pod("x").spec };
  const deployment = await world.request("/apis/apps/v1/namespaces/default/deployments", {
    method: "POST",
    body: { metadata: { name: "a" }, spec: { selector: { matchLabels: { a: "b" } }, template } },
  });
  assert.match(deployment.json.message, /requested: count\/deployments.apps=1/);
});

/** npm's @kubernetes/client-node with the API server: lists, watches, informers, patches. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  ApiException,
  type ConfigurationOptions,
  CoreV1Api,
  KubeConfig,
  KubernetesObjectApi,
  makeInformer,
  type ObservableMiddleware,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
  Watch,
} from "@kubernetes/client-node";
import { type RunningApiServer, startApiServer } from "@quorate/kube-apiserver/node";
import { until } from "../../../../test/support/until.ts";

const NAMESPACE = "clients";

let api: RunningApiServer;
let config: KubeConfig;
let core: CoreV1Api;

before(async () => {
  api = await startApiServer();
  config = new KubeConfig();
  config.loadFromString(api.kubeconfig);
  core = config.makeApiClient(CoreV1Api);
  await core.createNamespace({ body: { metadata: { name: NAMESPACE } } });
});

after(() => api.stop());

function configMap(name: string, data: Record<string, string> = {}): V1ConfigMap {
  return { metadata: { name, labels: { test: "yes" } }, data };
}

function create(name: string, data?: Record<string, string>): Promise<V1ConfigMap> {
  const body = configMap(name, data);
  return core.createNamespacedConfigMap({ namespace: NAMESPACE, body });
}

function patchType(type: string): ConfigurationOptions<ObservableMiddleware> {
  return setHeaderOptions("Content-Type", type);
}

test("client-node: create, read, list in pages, replace, delete", async () => {
  for (const name of ["a", "b", "c"]) await create(name, { key: name });
  const selected = { namespace: NAMESPACE, labelSelector: "test=yes" };
  const names: (string | undefined)[] = [];
  let _continue: string | undefined = "";
  do {
    const page = await core.listNamespacedConfigMap({ ...selected, limit: 2, _continue });
    names.push(...page.items.map((item) => item.metadata?.name));
    _continue = page.metadata?._continue;
  } while (_continue);
  assert.deepEqual(names, ["a", "b", "c"]);

  const read = await core.readNamespacedConfigMap({ namespace: NAMESPACE, name: "a" });
  assert.equal(read.metadata?.uid?.length, 36);
  assert.ok(read.metadata?.creationTimestamp instanceof Date);
  const body = { ...read, data: { key: "changed" } };
  await core.replaceNamespacedConfigMap({ namespace: NAMESPACE, name: "a", body });
  await assert.rejects(
    core.replaceNamespacedConfigMap({ namespace: NAMESPACE, name: "a", body }),
    (error: unknown) => error instanceof ApiException && error.code === 409,
  );
  for (const name of ["a", "b", "c"]) {
    await core.deleteNamespacedConfigMap({ namespace: NAMESPACE, name });
  }
  await assert.rejects(
    core.readNamespacedConfigMap({ namespace: NAMESPACE, name: "a" }),
    (error: unknown) => {
      assert.ok(error instanceof ApiException);
      assert.equal(error.code, 404);
      assert.match(error.body, /configmaps \\?"a\\?" not found/);
      return true;
    },
  );
});

test("client-node: the four kinds of patches", async () => {
  await create("patched", { a: "1", b: "2" });
  const named = { namespace: NAMESPACE, name: "patched" };
  await core.patchNamespacedConfigMap(
    { ...named, body: [{ op: "replace", path: "/data/a", value: "x" }] },
    patchType(PatchStrategy.JsonPatch),
  );
  await core.patchNamespacedConfigMap(
    { ...named, body: { data: { b: null } } },
    patchType(PatchStrategy.MergePatch),
  );
  await core.patchNamespacedConfigMap(
    { ...named, body: { metadata: { finalizers: ["example.org/a"] } } },
    patchType(PatchStrategy.StrategicMergePatch),
  );
  const applied = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "patched" },
    data: { c: "3" },
  };
  const body = await core.patchNamespacedConfigMap(
    { ...named, body: applied, fieldManager: "client-node", force: true },
    patchType(PatchStrategy.ServerSideApply),
  );
  assert.deepEqual(body.data, { a: "x", c: "3" });
  assert.deepEqual(body.metadata?.finalizers, ["example.org/a"]);
  const operations = body.metadata?.managedFields?.map((entry) => entry.operation);
  assert.deepEqual(operations, ["Apply", "Update"]);
  await core.patchNamespacedConfigMap(
    { ...named, body: [{ op: "remove", path: "/metadata/finalizers" }] },
    patchType(PatchStrategy.JsonPatch),
  );
  await core.deleteNamespacedConfigMap(named);
});

test("client-node: a watch reports changes in order", async () => {
  const list = await core.listNamespacedConfigMap({ namespace: NAMESPACE });
  const events: string[] = [];
  const watch = new Watch(config);
  const running = await watch.watch(
    `/api/v1/namespaces/${NAMESPACE}/configmaps`,
    { resourceVersion: list.metadata?.resourceVersion, labelSelector: "test=yes" },
    (type, object: V1ConfigMap) => events.push(`${type} ${object.metadata?.name}`),
    () => {},
  );
  await create("w1");
  await create("w2");
  await core.deleteNamespacedConfigMap({ namespace: NAMESPACE, name: "w1" });
  await until("three events", () => events.length >= 3);
  running.abort();
  assert.deepEqual(events, ["ADDED w1", "ADDED w2", "DELETED w1"]);
  await core.deleteNamespacedConfigMap({ namespace: NAMESPACE, name: "w2" });
});

test("client-node: an informer keeps a cache", async () => {
  await create("i1");
  const path = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
  const list = () =>
    core.listNamespacedConfigMap({ namespace: NAMESPACE, labelSelector: "test=yes" });
  const informer = makeInformer<V1ConfigMap>(config, path, list, "test=yes");
  const events: string[] = [];
  for (const verb of ["add", "update", "delete"] as const) {
    informer.on(verb, (object) => void events.push(`${verb} ${object.metadata?.name}`));
  }
  await informer.start();
  await until("the listed object", () => informer.get("i1", NAMESPACE) !== undefined);
  await create("i2");
  await until("the created object", () => informer.get("i2", NAMESPACE) !== undefined);
  await core.patchNamespacedConfigMap(
    { namespace: NAMESPACE, name: "i2", body: { data: { x: "y" } } },
    patchType(PatchStrategy.MergePatch),
  );
  await until("the change", () => informer.get("i2", NAMESPACE)?.data?.["x"] === "y");
  await core.deleteNamespacedConfigMap({ namespace: NAMESPACE, name: "i1" });
  await until("the deletion", () => informer.get("i1", NAMESPACE) === undefined);
  await informer.stop();
  assert.deepEqual(events, ["add i1", "add i2", "update i2", "delete i1"]);
  await core.deleteNamespacedConfigMap({ namespace: NAMESPACE, name: "i2" });
});

test("client-node: objects of any kind by discovery", async () => {
  const objects = KubernetesObjectApi.makeApiClient(config);
  const lease = {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: "leader", namespace: NAMESPACE },
    spec: { holderIdentity: "me" },
  };
  const created = await objects.create(lease);
  assert.equal(created.metadata?.name, "leader");
  const listed = await objects.list("coordination.k8s.io/v1", "Lease", NAMESPACE);
  assert.deepEqual(
    listed.items.map((item) => item.metadata?.name),
    ["leader"],
  );
  await objects.delete(lease);
});

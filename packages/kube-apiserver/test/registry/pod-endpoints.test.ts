/** Endpoints that act: bindings, evictions, approvals; and autoscalers in both versions. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiWorld } from "../support/api-world.ts";

const PODS = "/api/v1/namespaces/default/pods";
const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", labels: { app: "x" } },
  spec: { containers: [{ name: "c", image: "i" }] },
};

const post = (body: object) => ({ method: "POST", body });

test("A binding assigns a pod once, and an eviction takes a disruption of its budget", async (t) => {
  const world = await ApiWorld.open(t);
  await world.ok(PODS, post(POD));
  const binding = {
    apiVersion: "v1",
    kind: "Binding",
    metadata: { name: "p", annotations: { by: "me" } },
    target: { kind: "Node", name: "n" },
  };
  const bound = await world.ok(`${PODS}/p/binding`, post(binding));
  assert.equal(bound.status, "Success");
  const pod = await world.ok(`${PODS}/p`);
  assert.equal(pod.spec.nodeName, "n");
  assert.equal(pod.metadata.annotations.by, "me");
  const [condition] = pod.status.conditions;
  assert.deepEqual([condition.type, condition.status], ["PodScheduled", "True"]);
  const again = await world.request("/api/v1/namespaces/default/bindings", post(binding));
  assert.equal(again.status, 409);
  assert.match(again.json.message, /pod p is already assigned to node "n"$/);

  const budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
  const budget = await world.ok(
    budgets,
    post({
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "b" },
      spec: { minAvailable: 1, selector: { matchLabels: { app: "x" } } },
    }),
  );
  const allow = async (disruptionsAllowed: number) => {
    const { metadata } = await world.ok(`${budgets}/b`);
    const status = {
      observedGeneration: 1,
      disruptionsAllowed,
      currentHealthy: 1,
      desiredHealthy: 1,
      expectedPods: 1,
    };
    await world.ok(`${budgets}/b/status`, { method: "PUT", body: { ...budget, metadata, status } });
  };
  const running = { ...(await world.ok(`${PODS}/p`)), status: { phase: "Running" } };
  await world.ok(`${PODS}/p/status`, { method: "PUT", body: running });
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "p" } };
  const evict = () => world.request(`${PODS}/p/eviction`, post(eviction));
  await allow(0);
  const refused = await evict();
  assert.equal(refused.status, 429);
  assert.deepEqual(refused.json.details.causes, [
    {
      reason: "DisruptionBudget",
      message: "The disruption budget b needs 1 healthy pods and has 1 currently",
    },
  ]);
  await allow(1);
  assert.equal((await evict()).json.status, "Success");
  assert.equal((await world.ok(`${budgets}/b`)).status.disruptionsAllowed, 0);
});

test("A signing request has its author, and /approval changes the conditions alone", async (t) => {
  const world = await ApiWorld.open(t);
  const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const made = await world.ok(
    requests,
    post({
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: { name: "r" },
      spec: {
        request: "AAAA",
        signerName: "example.com/s",
        usages: ["client auth"],
        username: "x",
      },
    }),
  );
  assert.equal(made.spec.username, "admin");
  assert.deepEqual(made.status, {});
  const conditions = [{ type: "Approved", status: "True", reason: "Fine" }];
  const changed = { ...made, spec: {}, status: { conditions, certificate: "AAAA" } };
  const put = (path: string, body: object) =>
    world.ok(`${requests}/r${path}`, { method: "PUT", body });
  const approved = await put("/approval", changed);
  assert.equal(approved.spec.signerName, "example.com/s");
  assert.equal(approved.status.certificate, undefined);
  const [condition] = approved.status.conditions;
  assert.equal(condition.reason, "Fine");
  assert.match(condition.lastUpdateTime, /^\d{4}-/);
  const signed = await put("/status", { ...approved, status: { certificate: "AAAA" } });
  assert.equal(signed.status.certificate, "AAAA");
  assert.deepEqual(signed.status.conditions, approved.status.conditions);
});

test("An autoscaler of version 2 is whole in version 1", async (t) => {
  const world = await ApiWorld.open(t);
  const path = (version: string, name = "") =>
    `/apis/autoscaling/${version}/namespaces/default/horizontalpodautoscalers${name}`;
  const target = { type: "AverageValue", averageValue: "5" };
  const metrics = [
    { type: "Pods", pods: { metric: { name: "queue" }, target } },
    {
      type: "Resource",
      resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 70 } },
    },
  ];
  const scaleTargetRef = { kind: "Deployment", name: "d", apiVersion: "apps/v1" };
  const made = await world.ok(
    path("v2"),
    post({
      apiVersion: "autoscaling/v2",
      kind: "HorizontalPodAutoscaler",
      metadata: { name: "a" },
      spec: { scaleTargetRef, maxReplicas: 3, metrics, behavior: { scaleUp: {} } },
    }),
  );
  const old = await world.ok(path("v1", "/a"));
  assert.equal(old.apiVersion, "autoscaling/v1");
  assert.equal(old.spec.targetCPUUtilizationPercentage, 70);
  assert.deepEqual(
    JSON.parse(old.metadata.annotations["autoscaling.alpha.kubernetes.io/metrics"]),
    [{ type: "Pods", pods: { metricName: "queue", targetAverageValue: "5" } }],
  );
  const spec = { ...old.spec, maxReplicas: 4 };
  await world.ok(path("v1", "/a"), { method: "PUT", body: { ...old, spec } });
  const back = await world.ok(path("v2", "/a"));
  assert.deepEqual(back.spec, { ...made.spec, maxReplicas: 4 });
  assert.equal(back.metadata.annotations, undefined);
  const plain = await world.ok(
    path("v1"),
    post({
      apiVersion: "autoscaling/v1",
      kind: "HorizontalPodAutoscaler",
      metadata: { name: "plain" },
      spec: { scaleTargetRef, maxReplicas: 2 },
    }),
  );
  assert.equal(plain.spec.targetCPUUtilizationPercentage, 80);
});

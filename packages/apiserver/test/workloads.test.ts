/** Kinds for clusters with nodes: their declarations, and defaults as Kubernetes 1.36 sets them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubeObject, kindSource } from "../index.ts";
import { workloadSpecs } from "../src/workloads/workload-resources.ts";

const specs = workloadSpecs(kindSource);

function specOf(resource: string) {
  const found = specs.find((each) => each.resource === resource);
  assert.ok(found, resource);
  return found;
}

function decoded(group: string, kind: string, value: object): Record<string, unknown> {
  return kindSource(group, "v1", kind).decode(value).object;
}

describe("declarations of workload kinds", () => {
  it("name kinds of the tables, and storages of their own", () => {
    for (const { kind, schema } of specs) assert.deepEqual(schema?.kind, kind);
    assert.equal(new Set(specs.map((each) => each.storagePrefix)).size, specs.length);
    assert.equal(specs.length, 24);
  });

  it("select pods by their fields", () => {
    const { selectableFields } = specOf("pods");
    const object = { metadata: {}, spec: { nodeName: "n" } } as unknown as KubeObject;
    const { "spec.nodeName": nodeName, "status.phase": phase } = selectableFields!(object);
    assert.equal(nodeName, "n");
    assert.equal(phase, "");
  });

  it("delete pods gracefully where a node runs them", () => {
    const { strategy } = specOf("pods");
    const pod = (spec: object, phase = "Running") =>
      ({ metadata: {}, spec, status: { phase } }) as unknown as KubeObject;
    const seconds = (object: KubeObject, requested?: number) =>
      strategy.gracePeriodSeconds!(object, requested);
    assert.equal(seconds(pod({})), 0);
    assert.equal(seconds(pod({ nodeName: "n" })), 30);
    assert.equal(seconds(pod({ nodeName: "n", terminationGracePeriodSeconds: 5 })), 5);
    assert.equal(seconds(pod({ nodeName: "n" }), 7), 7);
    assert.equal(seconds(pod({ nodeName: "n" }, "Failed")), 0);
  });
});

describe("defaults of workload kinds", () => {
  it("of a deployment and its pods", () => {
    const container = {
      name: "a",
      image: "registry:5000/a",
      livenessProbe: { httpGet: { port: 1 } },
    };
    const { spec } = decoded("apps", "Deployment", {
      spec: { template: { spec: { containers: [container], volumes: [{ name: "v" }] } } },
    }) as { spec: Record<string, Record<string, unknown>> };
    assert.equal(spec["replicas"], 1);
    assert.deepEqual(spec["strategy"], {
      type: "RollingUpdate",
      rollingUpdate: { maxUnavailable: "25%", maxSurge: "25%" },
    });
    const pod = spec["template"]["spec"] as Record<string, unknown>;
    assert.equal(pod["restartPolicy"], "Always");
    assert.deepEqual(pod["volumes"], [{ name: "v", emptyDir: {} }]);
    const [first] = pod["containers"] as Record<string, unknown>[];
    assert.equal(first["imagePullPolicy"], "Always");
    assert.deepEqual(first["livenessProbe"], {
      httpGet: { path: "/", port: 1, scheme: "HTTP" },
      timeoutSeconds: 1,
      periodSeconds: 10,
      successThreshold: 1,
      failureThreshold: 3,
    });
  });

  it("of a pod alone: it asks for what it may use at most", () => {
    const resources = { limits: { cpu: "1000m" } };
    const { spec } = decoded("", "Pod", {
      spec: {
        hostNetwork: true,
        containers: [{ image: "a:1", resources, ports: [{ containerPort: 8 }] }],
      },
    }) as { spec: Record<string, unknown> };
    assert.deepEqual(spec["containers"], [
      {
        name: "",
        image: "a:1",
        ports: [{ hostPort: 8, containerPort: 8, protocol: "TCP" }],
        resources: { limits: { cpu: "1" }, requests: { cpu: "1" } },
        terminationMessagePath: "/dev/termination-log",
        terminationMessagePolicy: "File",
        imagePullPolicy: "IfNotPresent",
      },
    ]);
    assert.equal(spec["enableServiceLinks"], true);
  });

  it("of a service's ports", () => {
    const { spec } = decoded("", "Service", {
      spec: { type: "NodePort", ports: [{ port: 80 }, { port: 81, targetPort: "web" }] },
    }) as { spec: Record<string, unknown> };
    assert.deepEqual(spec["ports"], [
      { protocol: "TCP", port: 80, targetPort: 80 },
      { protocol: "TCP", port: 81, targetPort: "web" },
    ]);
    assert.equal(spec["externalTrafficPolicy"], "Cluster");
    assert.equal(spec["sessionAffinity"], "None");
  });

  it("of jobs, claims and policies", () => {
    const { spec } = decoded("batch", "Job", {}) as { spec: Record<string, unknown> };
    assert.equal(spec["completions"], 1);
    assert.equal(spec["backoffLimit"], 6);
    const claim = decoded("", "PersistentVolumeClaim", {});
    assert.deepEqual(claim["status"], { phase: "Pending" });
    const policy = decoded("networking.k8s.io", "NetworkPolicy", { spec: { egress: [{}] } });
    assert.deepEqual((policy["spec"] as Record<string, unknown>)["policyTypes"], [
      "Ingress",
      "Egress",
    ]);
    const set = decoded("apps", "StatefulSet", { spec: { volumeClaimTemplates: [{}] } });
    const [template] = (set["spec"] as { volumeClaimTemplates: KubeObject[] }).volumeClaimTemplates;
    assert.equal(template.kind, "PersistentVolumeClaim");
  });
});

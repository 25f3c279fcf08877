/** Defaults of kinds for clusters with nodes, as Kubernetes 1.36 sets them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { kindSource } from "../../src/codec/builtin-kind.ts";
import type { KubeObject } from "../../src/meta/object.ts";

function decoded(group: string, kind: string, value: object): Record<string, unknown> {
  return kindSource(group, "v1", kind).decode(value).object;
}

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

  it("of a whole pod: what it does not say follows from its containers, and from its limits", () => {
    const of = (resources: object, ...parts: readonly object[]) => {
      const containers = parts.map((part, i) => ({ name: `c${i}`, image: "i", resources: part }));
      const { spec } = decoded("", "Pod", { spec: { resources, containers } });
      return JSON.stringify((spec as { resources: unknown }).resources);
    };
    const limits = { cpu: "2", memory: "1Gi" };
    const asking = (cpu: string) => ({ requests: { cpu } });
    // As kube-apiserver 1.36.3 answers.
    assert.equal(of({ limits }, {}), JSON.stringify({ limits, requests: limits }));
    assert.equal(
      of({ limits }, asking("500m"), asking("250m")),
      JSON.stringify({ limits, requests: { cpu: "750m", memory: "1Gi" } }),
    );
    assert.equal(of({ requests: { cpu: "1" } }, asking("2")), '{"requests":{"cpu":"1"}}');
    assert.equal(
      of({ requests: { cpu: "1" } }, { limits: { "hugepages-2Mi": "4Mi", cpu: "1" } }),
      '{"limits":{"hugepages-2Mi":"4Mi"},"requests":{"cpu":"1","hugepages-2Mi":"4Mi"}}',
    );
    assert.equal(of({}, asking("1")), "{}");
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

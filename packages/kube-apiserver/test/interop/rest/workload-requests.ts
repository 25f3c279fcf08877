/** Kinds for clusters with nodes: defaults, tables and /scale. */
import { AS_TABLE, type Sent } from "./objects.ts";
import type { Step } from "./step.ts";

const APPS = "/apis/apps/v1/namespaces/t";
const WEB = `${APPS}/deployments/web`;
const TEMPLATE = {
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "c", image: "web:1", ports: [{ containerPort: 80 }] }] },
};
const SELECTED = { selector: { matchLabels: { app: "web" } }, template: TEMPLATE };
const SCALE = { kind: "Scale", apiVersion: "autoscaling/v1" };
const MERGE = { "content-type": "application/merge-patch+json" };

function object(apiVersion: string, kind: string, fields: object): Sent {
  return { apiVersion, kind, metadata: { name: "web" }, ...fields };
}

/** Creates an object named "web", and shows it as a row. */
function created(path: string, body: Sent): Step[] {
  return [
    { method: "POST", path, body },
    { method: "GET", path: `${path}/web`, headers: AS_TABLE },
  ];
}

function scaled(): Step[] {
  const scale = `${WEB}/scale`;
  return [
    { method: "GET", path: scale },
    {
      method: "PUT",
      path: scale,
      body: { ...SCALE, metadata: { name: "web" }, spec: { replicas: 4 } },
    },
    { method: "GET", path: WEB },
    { method: "PATCH", path: scale, body: { spec: { replicas: 5 } }, headers: MERGE },
    { method: "GET", path: WEB, headers: AS_TABLE },
    { method: "PATCH", path: `${WEB}/status`, body: { status: { replicas: 1 } }, headers: MERGE },
    { method: "GET", path: WEB },
    { method: "DELETE", path: WEB },
  ];
}

export function workloadRequests(): Step[] {
  const core = "/api/v1/namespaces/t";
  const networking = "/apis/networking.k8s.io/v1";
  const rule = { apiGroup: "example.org", kind: "x", name: "y" };
  return [
    ...created(`${APPS}/deployments`, object("apps/v1", "Deployment", { spec: SELECTED })),
    ...scaled(),
    ...created(
      `${APPS}/replicasets`,
      object("apps/v1", "ReplicaSet", { spec: { ...SELECTED, replicas: 2 } }),
    ),
    ...created(
      `${APPS}/statefulsets`,
      object("apps/v1", "StatefulSet", { spec: { ...SELECTED, serviceName: "web" } }),
    ),
    ...created(
      `${core}/limitranges`,
      object("v1", "LimitRange", { spec: { limits: [{ type: "Pod", max: { cpu: "1000m" } }] } }),
    ),
    ...created(
      `${core}/resourcequotas`,
      object("v1", "ResourceQuota", { spec: { hard: { pods: "4" } } }),
    ),
    ...created(`${core}/podtemplates`, object("v1", "PodTemplate", { template: TEMPLATE })),
    ...created(
      `${networking}/namespaces/t/networkpolicies`,
      object("networking.k8s.io/v1", "NetworkPolicy", { spec: { podSelector: {} } }),
    ),
    ...created(
      "/apis/policy/v1/namespaces/t/poddisruptionbudgets",
      object("policy/v1", "PodDisruptionBudget", {
        spec: { minAvailable: 1, selector: { matchLabels: { app: "web" } } },
      }),
    ),
    ...created(
      "/apis/scheduling.k8s.io/v1/priorityclasses",
      object("scheduling.k8s.io/v1", "PriorityClass", { value: 5 }),
    ),
    ...created(
      `${networking}/ingressclasses`,
      object("networking.k8s.io/v1", "IngressClass", {
        spec: { controller: "example.org/c", parameters: rule },
      }),
    ),
  ];
}

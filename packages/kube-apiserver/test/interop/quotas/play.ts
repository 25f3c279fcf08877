/** Objects under ResourceQuotas, beside kube-apiserver; no controller counts, so tests write it. */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import type { Answer } from "../comparison.ts";
import { type ApiAccess, type ApiResponse, exchange } from "../rest/exchange.ts";
import { normalised } from "../rest/normalise.ts";

type Fields = Readonly<Record<string, unknown>>;

const GOLD = "gold.storageclass.storage.k8s.io";
const IN_GOLD = { scopeName: "PriorityClass", operator: "In", values: ["system-node-critical"] };

/** Each has a namespace of its own: its spec, and what is used before. */
const QUOTAS: Readonly<Record<string, readonly [spec: Fields, used: Fields | undefined]>> = {
  pods: [{ hard: { pods: "3", "count/pods": "4" } }, { pods: "1", "count/pods": "1" }],
  compute: [
    { hard: { cpu: "1", "limits.memory": "1Gi", "requests.example.com/gpu": "1" } },
    { cpu: "0.5", "limits.memory": "0", "requests.example.com/gpu": "0" },
  ],
  unknown: [{ hard: { pods: "3", secrets: "1" } }, undefined],
  best: [{ hard: { pods: "1" }, scopes: ["BestEffort"] }, { pods: "0" }],
  burst: [{ hard: { pods: "1" }, scopes: ["NotBestEffort", "NotTerminating"] }, { pods: "0" }],
  ends: [{ hard: { pods: "1" }, scopes: ["Terminating"] }, { pods: "0" }],
  across: [{ hard: { pods: "0" }, scopes: ["CrossNamespacePodAffinity"] }, { pods: "0" }],
  classes: [{ hard: { pods: "0" }, scopeSelector: { matchExpressions: [IN_GOLD] } }, { pods: "0" }],
  objects: [
    {
      hard: {
        services: "4",
        "services.nodeports": "2",
        "services.loadbalancers": "1",
        configmaps: "1",
        secrets: "0",
        "count/deployments.apps": "1",
        persistentvolumeclaims: "3",
        "requests.storage": "5Gi",
        [`${GOLD}/requests.storage`]: "2Gi",
      },
    },
    {
      services: "0",
      "services.nodeports": "0",
      "services.loadbalancers": "0",
      configmaps: "0",
      secrets: "0",
      "count/deployments.apps": "0",
      persistentvolumeclaims: "0",
      "requests.storage": "0",
      [`${GOLD}/requests.storage`]: "0",
    },
  ],
};

const pod = (name: string, resources: Fields, more: Fields = {}): Fields => ({
  metadata: { name },
  spec: {
    containers: [{ name: "c", image: "i", resources }],
    automountServiceAccountToken: false,
    ...more,
  },
});

const GPU = { requests: { "example.com/gpu": "1" }, limits: { "example.com/gpu": "1" } };
const WHOLE = { cpu: "300m", memory: "600Mi" };
const TERM = { topologyKey: "z", namespaces: ["x"] };

const PODS: readonly Fields[] = [
  pod("plain", {}),
  pod("some", { requests: WHOLE, limits: WHOLE }),
  pod("more", { requests: WHOLE, limits: WHOLE }),
  pod("gpu", {
    ...GPU,
    requests: { ...GPU.requests, ...WHOLE },
    limits: { ...GPU.limits, ...WHOLE },
  }),
  pod("silent", { requests: { cpu: "1" } }),
  pod("ends", {}, { activeDeadlineSeconds: 5 }),
  pod("ends-too", {}, { activeDeadlineSeconds: 5 }),
  pod(
    "inits",
    { limits: { memory: "1Gi", cpu: "1m" } },
    {
      initContainers: [{ name: "i", image: "i" }],
    },
  ),
  pod(
    "across",
    {},
    {
      affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [TERM] } },
    },
  ),
  pod("again", {}),
];

const claim = (name: string, storage: string, storageClassName: string): Fields => ({
  metadata: { name },
  spec: { accessModes: ["ReadWriteOnce"], storageClassName, resources: { requests: { storage } } },
});

const service = (name: string, spec: Fields): Fields => ({
  metadata: { name },
  spec: { ports: [{ port: 80 }], ...spec },
});

const deployment = (name: string): Fields => ({
  metadata: { name },
  spec: {
    selector: { matchLabels: { a: "b" } },
    template: { metadata: { labels: { a: "b" } }, spec: pod("x", {})["spec"] },
  },
});

const OBJECTS: readonly (readonly [path: string, body: Fields])[] = [
  ["v1 services", service("a", {})],
  ["v1 services", service("b", { type: "NodePort" })],
  ["v1 services", service("c", { type: "LoadBalancer" })],
  ["v1 services", service("d", { type: "LoadBalancer" })],
  ["v1 services", service("e", { type: "NodePort" })],
  ["v1 configmaps", { metadata: { name: "a" } }],
  ["v1 configmaps", { metadata: { name: "b" } }],
  ["v1 secrets", { metadata: { name: "a" } }],
  ["apps/v1 deployments", deployment("a")],
  ["apps/v1 deployments", deployment("b")],
  ["v1 persistentvolumeclaims", claim("a", "1.5Gi", "gold")],
  ["v1 persistentvolumeclaims", claim("b", "1Gi", "gold")],
  ["v1 persistentvolumeclaims", claim("c", "3Gi", "tin")],
  ["v1 persistentvolumeclaims", claim("d", "1G", "tin")],
];

/** The same requests to any server, and its answers. */
export async function play(access: ApiAccess): Promise<Answer[]> {
  const answers: Answer[] = [];
  const send = (method: string, path: string, body?: unknown): Promise<ApiResponse> => {
    const type = "application/merge-patch+json";
    const headers = method === "PATCH" ? { headers: { "content-type": type } } : {};
    return exchange(access, { method, path, body, ...headers });
  };
  const placeOf = (namespace: string, version = "v1"): string =>
    `/${version === "v1" ? "api" : "apis"}/${version}/namespaces/${namespace}`;
  for (const [name, [spec, used]] of Object.entries(QUOTAS)) {
    await send("POST", "/api/v1/namespaces", { metadata: { name } });
    const root = placeOf(name);
    await send("POST", `${root}/serviceaccounts`, { metadata: { name: "default" } });
    const quotas = `${root}/resourcequotas`;
    const set = async (quota: string, own: Fields, status: Fields): Promise<void> => {
      await send("POST", quotas, { metadata: { name: quota }, spec: own });
      const written = await send("PATCH", `${quotas}/${quota}/status`, { status });
      assert.equal(written.status, 200);
    };
    const { hard } = spec;
    await set("quota", spec, { hard, ...(used && { used }) });
    // The last one that is written is known when this one refuses.
    const none = { "count/leases.coordination.k8s.io": "0" };
    await set("seen", { hard: none }, { hard: none, used: none });
    const lease = { metadata: { generateName: "probe-" } };
    const leases = `${placeOf(name, "coordination.k8s.io/v1")}/leases?dryRun=All`;
    while ((await send("POST", leases, lease)).status !== 403) await delay(20);
    const post = async (path: string, body: Fields): Promise<void> => {
      for (const query of ["?dryRun=All", ""]) {
        const response = await send("POST", `${path}${query}`, body);
        const request = `${name} ${path}${query} ${JSON.stringify(body["metadata"])}`;
        answers.push({ request, response: judged(response) });
      }
    };
    if (name !== "objects") for (const one of PODS) await post(`${root}/pods`, one);
    if (name === "unknown") await post(`${root}/secrets`, { metadata: { name: "a" } });
    if (name === "objects") {
      for (const [path, body] of OBJECTS) {
        const [version = "", resource = ""] = path.split(" ");
        await post(`${placeOf(name, version)}/${resource}`, body);
      }
      for (const type of ["NodePort", "LoadBalancer"]) {
        const response = await send("PATCH", `${root}/services/a`, { spec: { type } });
        answers.push({ request: `a ${type}`, response: judged(response) });
      }
    }
    const { body } = await send("GET", `${quotas}/quota`);
    const { status } = body as { readonly status: unknown };
    answers.push({ request: `${name} used`, response: { status: 200, body: status } });
  }
  // As they are stored: without what is undefined.
  return JSON.parse(JSON.stringify(answers)) as Answer[];
}

/** Of what is allowed, only that. */
function judged(response: ApiResponse): ApiResponse {
  const { status, body } = normalised(response);
  return { status, body: status < 400 ? undefined : body };
}

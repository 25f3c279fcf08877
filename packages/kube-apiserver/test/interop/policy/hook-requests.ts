/** Requests about webhook configurations, and such that call a webhook. */
import { get, type PolicyStep, post } from "./steps.ts";

const HOOKS = "/apis/admissionregistration.k8s.io/v1";

/** A webhook that breaks as many rules as it can. */
const bad = {
  name: "short",
  clientConfig: { url: "http://u@h/?q#f", service: undefined },
  rules: [
    {
      operations: ["*", "CREATE", "X"],
      apiGroups: ["*", "a"],
      apiVersions: ["", "*"],
      resources: ["*/*", "x", "x/*", "x/status", "*/scale", "y/scale", ""],
      scope: "World",
    },
  ],
  failurePolicy: "Maybe",
  matchPolicy: "Some",
  sideEffects: "Some",
  timeoutSeconds: 0,
  admissionReviewVersions: ["v9", "v9", "V"],
  namespaceSelector: { matchExpressions: [{ key: "a b", operator: "Near" }] },
  objectSelector: { matchLabels: { ok: "not ok!" } },
  matchConditions: [
    { name: "", expression: "" },
    { name: "a b", expression: "object.x ==" },
    { name: "c", expression: "1" },
    { name: "c", expression: "what" },
  ],
};

export function hookRequests(): PolicyStep[] {
  const validating = `${HOOKS}/validatingwebhookconfigurations`;
  const mutating = `${HOOKS}/mutatingwebhookconfigurations`;
  const object = (kind: string, name: string, webhooks: unknown) => ({
    apiVersion: "admissionregistration.k8s.io/v1",
    kind,
    metadata: { name },
    webhooks,
  });
  const rules = [
    { operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"] },
  ];
  const hook = {
    name: "hook.example.org",
    clientConfig: { url: "https://127.0.0.1:1/x" },
    rules,
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    namespaceSelector: { matchLabels: { hooked: "true" } },
  };
  return [
    post(validating, object("ValidatingWebhookConfiguration", "good", [hook])),
    post(mutating, object("MutatingWebhookConfiguration", "good", [hook])),
    post(validating, object("ValidatingWebhookConfiguration", "bad", [bad])),
    post(
      mutating,
      object("MutatingWebhookConfiguration", "bad", [{ ...bad, reinvocationPolicy: "X" }]),
    ),
    post(validating, object("ValidatingWebhookConfiguration", "twice", [hook, hook])),
    post(
      validating,
      object("ValidatingWebhookConfiguration", "service", [
        {
          ...hook,
          clientConfig: { service: { name: "", namespace: "", path: "a//b", port: 70000 } },
        },
        {
          ...hook,
          name: "b.example.org",
          clientConfig: {},
          sideEffects: undefined,
          admissionReviewVersions: [],
        },
        {
          ...hook,
          name: "",
          rules: [{}],
          clientConfig: { service: { name: "n", namespace: "ns" } },
        },
      ]),
    ),
    get(`${validating}/good`),
    get(`${validating}?limit=500`, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" }),
    ...callRequests(),
  ];
}

/** Requests that a webhook which cannot be reached guards, and namespaces that are guarded. */
function callRequests(): PolicyStep[] {
  return [
    {
      ...post("/api/v1/namespaces", {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: "hooked", labels: { hooked: "true" } },
      }),
      pauseMs: 1000,
    },
    post("/api/v1/namespaces/hooked/configmaps", {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a" },
    }),
    post("/api/v1/namespaces/hooked/configmaps?dryRun=All", {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { generateName: "a" },
    }),
    post("/api/v1/namespaces/none/configmaps", {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a" },
    }),
    { method: "DELETE", path: "/api/v1/namespaces/default" },
    { method: "DELETE", path: "/api/v1/namespaces/kube-system" },
  ];
}

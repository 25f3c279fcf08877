/** Requests whose audit events are compared, and the policy by which both servers record them. */
import type { ApiRequest } from "../rest/exchange.ts";

/** An AuditPolicy with a rule of each kind. */
export const POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [Panic]
rules:
- level: None
  userGroups: [ignored]
- level: None
  userGroups: [system:masters]
  verbs: [list, watch]
  resources: [{group: "", resources: [endpoints, nodes]}]
- level: Metadata
  omitStages: [RequestReceived]
  resources: [{group: "", resources: [secrets]}]
- level: Metadata
  namespaces: [kube-system]
- level: Request
  omitManagedFields: true
  resources: [{group: "", resources: [configmaps], resourceNames: [request-only]}]
- level: RequestResponse
  omitManagedFields: true
  resources: [{group: "", resources: [configmaps]}, {group: coordination.k8s.io}]
- level: Metadata
  nonResourceURLs: ["/version", "/api*"]
- level: None
  nonResourceURLs: ["*"]
- level: Request
`;

/** Static tokens: the admin, a user without permissions, one that is not recorded. */
export const TOKENS = `admin-token,admin,1,"system:masters"
jane-token,jane,2,"developers"
quiet-token,quiet,3,"ignored,system:masters"
`;

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const admin = { authorization: "Bearer admin-token", "user-agent": "audit-test" };
const jane = { authorization: "Bearer jane-token", "user-agent": "audit-test" };

function configMap(name: string, data: Record<string, string> = { a: "<1>" }) {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
}

const patch = (type: string) => ({ ...admin, "content-type": type });

/** In order; each has an Audit-ID, by which its events are found. */
export const auditedRequests: readonly ApiRequest[] = [
  { method: "GET", path: "/version", headers: admin },
  { method: "GET", path: "/api", headers: jane },
  { method: "GET", path: "/healthz", headers: admin },
  { method: "POST", path: CONFIG_MAPS, headers: admin, body: configMap("one") },
  { method: "POST", path: CONFIG_MAPS, headers: admin, body: configMap("one") },
  { method: "POST", path: CONFIG_MAPS, headers: admin, body: { kind: 5 } },
  { method: "POST", path: `${CONFIG_MAPS}?dryRun=All`, headers: admin, body: configMap("dry") },
  { method: "GET", path: `${CONFIG_MAPS}/one`, headers: admin },
  { method: "GET", path: `${CONFIG_MAPS}/none`, headers: admin },
  {
    method: "GET",
    path: `${CONFIG_MAPS}?limit=1&fieldSelector=metadata.name%3Done`,
    headers: admin,
  },
  {
    method: "GET",
    path: `${CONFIG_MAPS}/one`,
    headers: { ...admin, accept: "application/json;as=Table;v=v1;g=meta.k8s.io" },
  },
  { method: "PUT", path: `${CONFIG_MAPS}/one`, headers: admin, body: configMap("one", { b: "2" }) },
  {
    method: "PATCH",
    path: `${CONFIG_MAPS}/one`,
    headers: patch("application/merge-patch+json"),
    body: { data: { c: "3" } },
  },
  {
    method: "PATCH",
    path: `${CONFIG_MAPS}/one`,
    headers: patch("application/json-patch+json"),
    body: [{ op: "add", path: "/data/d", value: "4" }],
  },
  {
    method: "PATCH",
    path: `${CONFIG_MAPS}/applied?fieldManager=me`,
    headers: patch("application/apply-patch+yaml"),
    body: configMap("applied"),
  },
  { method: "POST", path: CONFIG_MAPS, headers: admin, body: configMap("request-only") },
  { method: "GET", path: `${CONFIG_MAPS}/request-only`, headers: admin },
  {
    method: "DELETE",
    path: `${CONFIG_MAPS}/one`,
    headers: admin,
    body: { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Background" },
  },
  { method: "DELETE", path: `${CONFIG_MAPS}/applied`, headers: admin },
  { method: "GET", path: CONFIG_MAPS, headers: jane },
  { method: "POST", path: CONFIG_MAPS, headers: jane, body: configMap("no") },
  { method: "GET", path: CONFIG_MAPS, headers: { ...jane, "impersonate-user": "root" } },
  {
    method: "GET",
    path: "/api/v1/namespaces/default/serviceaccounts",
    headers: { ...admin, "impersonate-user": "bob", "impersonate-group": "system:masters" },
  },
  { method: "GET", path: CONFIG_MAPS, headers: { ...admin, authorization: "Bearer wrong" } },
  {
    method: "POST",
    path: "/api/v1/namespaces/default/secrets",
    headers: admin,
    body: {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { generateName: "gen-" },
      stringData: { word: "hush" },
    },
  },
  { method: "GET", path: "/api/v1/namespaces/kube-system/configmaps/none", headers: admin },
  {
    method: "GET",
    path: "/api/v1/namespaces/default/nothings",
    headers: { ...admin, "x-forwarded-for": "10.1.2.3, junk, ::1", "x-real-ip": "10.1.2.3" },
  },
  { method: "GET", path: `${CONFIG_MAPS}?timeout=junk`, headers: admin },
  {
    method: "GET",
    path: `${CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion=0`,
    headers: admin,
  },
  {
    method: "GET",
    path: CONFIG_MAPS,
    headers: { authorization: "Bearer quiet-token", "user-agent": "audit-test" },
  },
  {
    method: "POST",
    path: "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    headers: admin,
    body: {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "lease" },
      spec: { holderIdentity: "me" },
    },
  },
  { method: "PATCH", path: `${CONFIG_MAPS}/none`, headers: admin, body: {} },
  {
    method: "DELETE",
    path: `${CONFIG_MAPS}?labelSelector=none%3Dnone`,
    headers: admin,
  },
];

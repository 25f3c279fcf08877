/** Requests about authentication, authorization and admission, in the order of sending. */
import { hookRequests } from "./hook-requests.ts";
import { as, get, type PolicyStep, post } from "./steps.ts";

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const AUTHN = "/apis/authentication.k8s.io/v1";
const AUTHZ = "/apis/authorization.k8s.io/v1";
const GROUP = "rbac.authorization.k8s.io";

function role(kind: string, name: string, rules: unknown, more = {}) {
  return { apiVersion: `${GROUP}/v1`, kind, metadata: { name }, rules, ...more };
}

function binding(kind: string, name: string, roleRef: unknown, subjects: unknown) {
  return { apiVersion: `${GROUP}/v1`, kind, metadata: { name }, roleRef, subjects };
}

const roleRef = (kind: string, name: string) => ({ apiGroup: GROUP, kind, name });
const user = (name: string) => ({ kind: "User", apiGroup: GROUP, name });
const read = { verbs: ["get", "list"], apiGroups: [""], resources: ["configmaps"] };
const review = (kind: string, spec: unknown, metadata = {}) => ({
  apiVersion: "authorization.k8s.io/v1",
  kind,
  metadata,
  spec,
});

function forbiddenRequests(): PolicyStep[] {
  const ann = as("ann");
  return [
    get("/api/v1/namespaces/default/configmaps", ann),
    get("/api/v1/configmaps", ann),
    get("/api/v1/namespaces/default/configmaps/x", ann),
    get("/api/v1/namespaces/default/configmaps?watch=true", ann),
    get(`${RBAC}/clusterroles/admin`, ann),
    get("/api/v1/namespaces/default", ann),
    post("/api/v1/namespaces/default/serviceaccounts/default/token", {}, ann),
    { method: "DELETE", path: "/api/v1/namespaces/default/configmaps", headers: ann },
    { method: "PATCH", path: "/api/v1/namespaces/default", headers: ann, body: {} },
    get("/metrics", ann),
    get("/unknown<b>", ann),
    get("/api/v1/namespaces/de%3Cfault/configmaps", ann),
    get("/api", ann),
    get("/api", as("system:anonymous")),
    get("/version", as("system:anonymous")),
    get("/healthz", as("system:anonymous")),
    get("/api/v1/configmaps", { "impersonate-group": "dev" }),
    get("/api/v1/configmaps", { "impersonate-uid": "7" }),
  ];
}

function roleRequests(): PolicyStep[] {
  const roles = `${RBAC}/namespaces/default/roles`;
  return [
    post(roles, role("Role", "reader", [read])),
    post(roles, role("Role", "bad", [{ verbs: [] }, { verbs: ["get"], nonResourceURLs: ["/x"] }])),
    post(roles, role("Role", "bad/name", [])),
    post(roles, role("Role", "empty", [])),
    post(roles, role("Role", "null", null)),
    get(`${roles}/reader`),
    post(`${RBAC}/clusterroles`, role("ClusterRole", "agg", null, { aggregationRule: {} })),
    post(
      `${RBAC}/clusterroles`,
      role("ClusterRole", "mixed", [{ ...read, nonResourceURLs: ["/x"] }]),
    ),
    post(
      `${RBAC}/clusterroles`,
      role("ClusterRole", "agg2", null, {
        aggregationRule: { clusterRoleSelectors: [{ matchLabels: { "bad key": "x" } }] },
      }),
    ),
    post(
      `${RBAC}/clusterroles`,
      role("ClusterRole", "secrets", [
        { verbs: ["get", "delete"], apiGroups: ["", "apps"], resources: ["secrets", "x/y"] },
        { verbs: ["get"], nonResourceURLs: ["/a", "/b/*"] },
      ]),
    ),
  ];
}

function bindingRequests(): PolicyStep[] {
  const bindings = `${RBAC}/namespaces/default/rolebindings`;
  const wrong = [
    { kind: "ServiceAccount", name: "Bad_Name", apiGroup: "x" },
    { kind: "User", apiGroup: "x", name: "" },
    { kind: "Robot", name: "r" },
  ];
  return [
    post(bindings, binding("RoleBinding", "ann", roleRef("Role", "reader"), [user("ann")])),
    post(bindings, binding("RoleBinding", "bad", roleRef("Robot", ""), wrong)),
    post(bindings, binding("RoleBinding", "nogroup", { kind: "Role", name: "reader" }, null)),
    post(
      `${RBAC}/clusterrolebindings`,
      binding("ClusterRoleBinding", "bad", { apiGroup: "x", kind: "Role", name: "a/b" }, [
        { kind: "ServiceAccount", name: "sa" },
      ]),
    ),
    {
      method: "PUT",
      path: `${bindings}/ann`,
      body: binding("RoleBinding", "ann", roleRef("ClusterRole", "admin"), [user("ann")]),
    },
    {
      ...post(bindings, binding("RoleBinding", "missing", roleRef("Role", "none"), [user("bob")])),
      pauseMs: 500,
    },
    get("/api/v1/namespaces/default/configmaps/x", as("ann")),
    get("/api/v1/namespaces/default/configmaps/x", as("bob")),
    get(`${bindings}?limit=500`, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" }),
  ];
}

function escalationRequests(): PolicyStep[] {
  const roles = `${RBAC}/namespaces/default/roles`;
  const bindings = `${RBAC}/namespaces/default/rolebindings`;
  const writer = { verbs: ["create", "update"], apiGroups: [GROUP], resources: ["*"] };
  const cat = as("cat", "dev");
  return [
    post(`${RBAC}/clusterroles`, role("ClusterRole", "writer", [writer])),
    {
      ...post(
        `${RBAC}/clusterrolebindings`,
        binding("ClusterRoleBinding", "cat", roleRef("ClusterRole", "writer"), [user("cat")]),
      ),
      pauseMs: 500,
    },
    post(roles, role("Role", "mine", [writer]), cat),
    post(
      roles,
      role("Role", "more", [
        { verbs: ["get", "delete"], apiGroups: ["", "apps"], resources: ["secrets", "x/y"] },
        { verbs: ["get"], apiGroups: [""], resources: ["pods"], resourceNames: ["a", "b"] },
      ]),
      cat,
    ),
    post(
      bindings,
      binding("RoleBinding", "all", roleRef("ClusterRole", "secrets"), [user("cat")]),
      cat,
    ),
    post(
      bindings,
      binding("RoleBinding", "none", roleRef("ClusterRole", "none"), [user("cat")]),
      cat,
    ),
    post(
      `${RBAC}/clusterroles`,
      role("ClusterRole", "agg3", null, {
        aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: "b" } }] },
      }),
      cat,
    ),
    {
      method: "PUT",
      path: `${roles}/reader`,
      headers: cat,
      body: role("Role", "reader", [{ ...read, verbs: ["*"] }]),
    },
  ];
}

function reviewRequests(): PolicyStep[] {
  const resourceAttributes = { verb: "get", resource: "configmaps", namespace: "default" };
  const ann = as("ann");
  const sars = `${AUTHZ}/subjectaccessreviews`;
  const local = `${AUTHZ}/namespaces/default/localsubjectaccessreviews`;
  const selfs = `${AUTHZ}/selfsubjectaccessreviews`;
  const rules = `${AUTHZ}/selfsubjectrulesreviews`;
  const token = (spec: unknown) => ({
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenReview",
    metadata: {},
    spec,
  });
  return [
    post(selfs, review("SelfSubjectAccessReview", { resourceAttributes }), ann),
    post(selfs, review("SelfSubjectAccessReview", { resourceAttributes: { verb: "x" } }), ann),
    post(selfs, review("SelfSubjectAccessReview", {}), ann),
    post(
      selfs,
      review("SelfSubjectAccessReview", { nonResourceAttributes: { path: "/api", verb: "get" } }),
      ann,
    ),
    post(sars, review("SubjectAccessReview", { resourceAttributes, user: "ann" })),
    post(sars, review("SubjectAccessReview", { resourceAttributes, user: "bob" })),
    post(sars, review("SubjectAccessReview", { resourceAttributes, groups: ["system:masters"] })),
    post(sars, review("SubjectAccessReview", { resourceAttributes, nonResourceAttributes: {} })),
    post(sars, review("SubjectAccessReview", { resourceAttributes, user: "a" }, { name: "x" })),
    post(
      sars,
      review("SubjectAccessReview", {
        resourceAttributes: { ...resourceAttributes, labelSelector: {} },
        user: "a",
      }),
    ),
    post(local, review("LocalSubjectAccessReview", { resourceAttributes, user: "ann" })),
    post(
      local,
      review("LocalSubjectAccessReview", { resourceAttributes: { namespace: "x" }, user: "ann" }),
    ),
    post(rules, review("SelfSubjectRulesReview", { namespace: "default" }), as("bob")),
    post(rules, review("SelfSubjectRulesReview", {}), ann),
    post(
      `${AUTHN}/selfsubjectreviews`,
      { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview", metadata: {} },
      as("ann", "dev"),
    ),
    post(`${AUTHN}/tokenreviews`, token({ token: "bad" })),
    post(`${AUTHN}/tokenreviews`, token({ token: "" })),
    post(`${AUTHN}/tokenreviews`, token({ token: "a.b.c" })),
    get("/api/v1/configmaps", { authorization: "Bearer bad" }),
  ];
}

function tokenRequests(): PolicyStep[] {
  const path = "/api/v1/namespaces/default/serviceaccounts/builder/token";
  const request = (spec: unknown, metadata = {}) => ({
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    metadata,
    spec,
  });
  const ref = (kind: string, name: string, more = {}) => ({
    boundObjectRef: { kind, apiVersion: "v1", name, ...more },
  });
  return [
    post("/api/v1/namespaces/default/serviceaccounts", {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: "builder" },
    }),
    post(path, request({ expirationSeconds: 10 })),
    post(path, request({ expirationSeconds: 2 ** 33 })),
    post(path, request({}, { name: "x" })),
    post(path, request({}, { namespace: "x" })),
    post(path, request({}, { uid: "x" })),
    post(path, request(ref("Secret", "none"))),
    post(path, request(ref("ConfigMap", "none"))),
    post(path, request(ref("Secret", "kept", { uid: "x" }))),
    post(path.replace("builder", "none"), request({})),
    post(path, request({ audiences: ["vault"] })),
    post(path, request({})),
  ];
}

function documentRequests(): PolicyStep[] {
  const names = ["admin", "edit", "view", "cluster-admin"].map(
    (name) => `${RBAC}/clusterroles/${name}`,
  );
  const system = ["discovery", "basic-user", "public-info-viewer", "monitoring", "auth-delegator"];
  return [
    ...system.map((name) => get(`${RBAC}/clusterroles/system:${name}`)),
    get(`${RBAC}/clusterroles/cluster-admin`),
    get(`${RBAC}/clusterroles/system:aggregate-to-admin`),
    get(`${RBAC}/clusterroles/system:service-account-issuer-discovery`),
    get(`${RBAC}/clusterrolebindings/cluster-admin`),
    get(`${RBAC}/clusterrolebindings/system:public-info-viewer`),
    get(`${RBAC}/namespaces/kube-system/roles/extension-apiserver-authentication-reader`),
    get("/.well-known/openid-configuration"),
    get("/openid/v1/jwks"),
    get("/.well-known/openid-configuration", as("ann")),
    ...names.slice(3).map((path) => get(path, as("ann"))),
  ];
}

/** All requests. The server must be new. */
export function policySteps(): PolicyStep[] {
  return [
    ...forbiddenRequests(),
    ...roleRequests(),
    ...bindingRequests(),
    ...escalationRequests(),
    ...reviewRequests(),
    ...tokenRequests(),
    ...hookRequests(),
    ...documentRequests(),
  ];
}

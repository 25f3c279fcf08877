/** The forms of paths that are compared: each where a value, a verb or a slash may stand. */
import type { ApiRequest } from "../rest/exchange.ts";

export const GROUP = "example.org";
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const CUSTOM = `/apis/${GROUP}/v1`;

export const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FOO"];

/** An object "held" exists of each, in the namespace "foo" where it is namespaced. */
interface Kind {
  readonly root: string;
  readonly resource: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

const KINDS: readonly Kind[] = [
  { root: "/api/v1", resource: "configmaps", kind: "ConfigMap", namespaced: true },
  { root: "/api/v1", resource: "namespaces", kind: "Namespace", namespaced: false },
  { root: RBAC, resource: "roles", kind: "Role", namespaced: true },
  { root: RBAC, resource: "clusterroles", kind: "ClusterRole", namespaced: false },
  { root: CUSTOM, resource: "widgets", kind: "Widget", namespaced: true },
  { root: CUSTOM, resource: "gadgets", kind: "Gadget", namespaced: false },
];

/** Behind the version; R is the resource. */
const FORMS = [
  "R",
  "R/",
  "R/held",
  "R/held/",
  "R/none",
  "R/held/status",
  "R/held/status/",
  "R/held/scale",
  "R/held/nothing",
  "R/held/status/more",
  "R/held/status/more/still",
  "R?watch=1",
  "R?watch=0",
  "R/held?watch=1",
  "R?fieldSelector=metadata.name%3Dheld",
  "R/held?fieldSelector=a%3Db",
  "namespaces/foo/R",
  "namespaces/foo/R/",
  "namespaces/foo/R/held",
  "namespaces/foo/R/held/",
  "namespaces/foo/R/none",
  "namespaces/foo/R/held/status",
  "namespaces/foo/R/held/scale",
  "namespaces/foo/R/held/nothing",
  "namespaces/foo/R/held/status/more",
  "namespaces/foo/R/held/finalize",
  "namespaces/foo/R?watch=1",
  "namespaces/foo/R?fieldSelector=metadata.name%3Dheld",
  "namespaces/none/R/held",
  "namespaces/foo/namespaces/foo/R/held",
  "namespaces/foo/status/R",
  "namespaces/foo/status/R/held",
  "watch/R",
  "watch/R/",
  "watch/R/held",
  "watch/R/held/status",
  "watch/namespaces/foo/R",
  "watch/namespaces/foo/R/held",
  "watch/namespaces/foo/R/held/status",
  "watch/watch/R",
  "watch/R?watch=0",
  "proxy/R",
  "proxy/R/held",
  "proxy/namespaces/foo/R/held/more",
  "namespaces//R",
  "namespaces//R/held",
  "namespaces/foo//R",
  "namespaces/foo//held",
  "namespaces/foo/R//",
  "namespaces/foo/R//status",
  "/R",
  "/R/held",
  "R//",
  "R//held",
  "R//status",
  "R/held//status",
  "R/held//",
  "namespaces/foo/R/held//",
  "namespaces/foo%2FR",
  "namespaces%2Ffoo/R/held",
  "namespaces/foo/R%2Fheld",
  "R%2Fheld",
  "namespaces/foo/R/he%2Fld",
  "R/%68eld",
  "namespaces/foo/../R",
  "namespaces/./R",
  "namespaces/../R",
  "namespaces/foo/R/..",
  "namespaces/foo/R/.",
  "./R",
  "../R",
  "R/./held",
  "namespaces/%7Bnamespace%7D/R",
  "R/%7Bname%7D",
  "R%20",
  "R/held%00",
  "R;a=b/held",
];

/** Namespaces within namespaces, and other paths of one kind. */
const CORE = [
  "namespaces/foo/namespaces",
  "namespaces/foo/namespaces/",
  "namespaces/foo/namespaces/victim",
  "namespaces/foo/namespaces/victim/status",
  "namespaces/foo/namespaces/victim/finalize",
  "namespaces/victim",
  "namespaces/victim/status",
  "namespaces/victim/finalize",
  "namespaces/victim/finalize/more",
  "namespaces/foo",
  "namespaces/foo/",
  "namespaces//",
  "namespaces//victim",
  "namespaces/foo/finalize",
  "namespaces/foo/status",
  "watch/namespaces/victim",
  "watch/namespaces/foo/namespaces/victim",
  "watch/namespaces/foo/namespaces",
  "watch",
  "watch/",
  "proxy",
  "proxy/",
  "watch/watch",
  "namespaces/foo/serviceaccounts/held/token",
  "serviceaccounts/held/token",
  "namespaces/foo/serviceaccounts/held/token/more",
  "namespaces/foo/serviceaccounts/token",
  "nothings",
  "nothings/held",
  "namespaces/foo/nothings",
  "namespaces/foo/nothings/held",
  "nodes",
  "nodes/none",
  "namespaces/foo/nodes",
  "namespaces/foo/nodes/none",
  "namespaces/foo/nodes/none/status",
  "namespaces/foo/namespaces/foo/configmaps/held",
];

/** Reviews that everybody may post. */
const REVIEWS = [
  "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
  "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/held",
  "/apis/authorization.k8s.io/v1/namespaces/foo/selfsubjectaccessreviews",
  "/apis/authorization.k8s.io/v1/namespaces/foo/localsubjectaccessreviews",
  "/apis/authorization.k8s.io/v1/localsubjectaccessreviews",
  "/apis/authorization.k8s.io/v1/namespaces/foo/localsubjectaccessreviews/held",
  "/apis/authentication.k8s.io/v1/selfsubjectreviews",
  "/apis/authentication.k8s.io/v1/watch/selfsubjectreviews",
];

const ABSENT = [
  "/api/v9/configmaps",
  "/api/v9/namespaces/foo/configmaps/held",
  "/api//configmaps",
  "/apis/none.example/v1/widgets",
  "/apis/none.example/v1/namespaces/foo/widgets/held",
  "/apis/rbac.authorization.k8s.io/v9/roles",
  "/apis/rbac.authorization.k8s.io//roles",
  `/apis/${GROUP}/v9/widgets`,
  `/apis/${GROUP}/v9/namespaces/foo/widgets/held`,
  `/apis/${GROUP}/v1/nothings`,
  `/apis/${GROUP}/v1/namespaces/foo/nothings/held`,
  "/apis//v1/configmaps",
  "/apis/rbac.authorization.k8s.io/v1/configmaps",
  `/apis/${GROUP}/v1/configmaps`,
  "/api/v1/widgets",
  "/apis/v1/namespaces/foo/configmaps",
];

const PAGES = [
  "/",
  "//",
  "///",
  "/api",
  "/api/",
  "/api//",
  "//api",
  "/api/v1",
  "/api/v1/",
  "/api//v1",
  "/api/v1//",
  "/api/v9",
  "/apis",
  "/apis/",
  "/apis//",
  "//apis",
  "/apis//v1",
  "/apis/v1",
  "/apis/rbac.authorization.k8s.io",
  "/apis/rbac.authorization.k8s.io/",
  RBAC,
  `${RBAC}/`,
  "/apis/rbac.authorization.k8s.io//",
  "/apis/rbac.authorization.k8s.io/v9",
  `${RBAC}//`,
  `/apis/${GROUP}//`,
  `/apis/${GROUP}/v1//`,
  "/version//",
  "/version//more",
  "/api/v1//v1",
  `/apis/${GROUP}`,
  `/apis/${GROUP}/`,
  CUSTOM,
  `${CUSTOM}/`,
  `/apis/${GROUP}/v9`,
  "/apis/none.example",
  "/apis/none.example/v1",
  "/apis/none.example/v1/",
  "/apis/%2F",
  "/version",
  "/version/",
  "//version",
  "/version/more",
  "/healthz",
  "/healthz/",
  "//healthz",
  "/healthz/ping",
  "/healthz/ping/",
  "/healthz/none",
  "/healthz//ping",
  "/livez",
  "/livez/",
  "/readyz",
  "/readyz/",
  "/readyz/ping",
  "/healthzz",
  "/openapi",
  "/openapi/v2",
  "/openapi/v2/",
  "/openapi/v3",
  "/openapi/v3/",
  "/openapi/v3/none",
  "/openapi/v3/api/v1",
  "/openapi/v3/api/v1/",
  "/metrics",
  "/metrics/",
  "/metrics/more",
  "/nothing",
  "/nothing/",
  "/API/v1/configmaps",
  "//api/v1/configmaps",
  "///api/v1/namespaces/foo/configmaps/held",
  "/%2Fapi/v1/configmaps",
  "/api%2Fv1%2Fconfigmaps",
  "/./api/v1/configmaps",
  "/api/../api/v1/configmaps",
  "/api/v1/configmaps/%zz",
  "/%",
  "/api/v1/%ff",
  "/x/../version",
];

function formPaths({ root, resource }: Kind): string[] {
  return FORMS.map((form) => `${root}/${form.replace("R", resource)}`);
}

/** All paths, each once. */
export function routePaths(): string[] {
  const core = CORE.map((form) => `/api/v1/${form}`);
  return [...new Set([...KINDS.flatMap(formPaths), ...core, ...REVIEWS, ...ABSENT, ...PAGES])];
}

/** Writes are not kept: the objects are the same for all requests. */
export function requestOf(method: string, path: string): ApiRequest {
  const writes = method !== "GET" && method !== "HEAD" && method !== "OPTIONS";
  const target = writes ? `${path}${path.includes("?") ? "&" : "?"}dryRun=All` : path;
  const isEndless = path.includes("watch");
  if (method !== "POST" && method !== "PUT" && method !== "PATCH")
    return { method, path: target, isEndless };
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  return { method, path: target, isEndless, headers: { "content-type": type }, body: bodyOf(path) };
}

const OTHER_KINDS: Readonly<Record<string, readonly [string, string]>> = {
  scale: ["autoscaling/v1", "Scale"],
  serviceaccounts: ["v1", "ServiceAccount"],
  nodes: ["v1", "Node"],
  selfsubjectreviews: ["authentication.k8s.io/v1", "SelfSubjectReview"],
  selfsubjectaccessreviews: ["authorization.k8s.io/v1", "SelfSubjectAccessReview"],
  localsubjectaccessreviews: ["authorization.k8s.io/v1", "LocalSubjectAccessReview"],
};

/** An object of the kind that the last known segment names. */
function bodyOf(path: string): unknown {
  if (path.includes("held/token"))
    return { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", metadata: {} };
  for (const segment of path
    .split("?", 1)[0]
    .split(/\/|%2F/)
    .reverse()) {
    const other = Object.hasOwn(OTHER_KINDS, segment) ? OTHER_KINDS[segment] : undefined;
    const found = KINDS.find(({ resource }) => resource === segment);
    const [apiVersion, kind] =
      other ?? (found && [found.root.replace(/^\/apis?\//, ""), found.kind]) ?? [];
    if (kind !== undefined) return { apiVersion, kind, metadata: { name: "held" } };
  }
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "held" } };
}

/** The objects that the paths are about. */
export function routeObjects(): readonly { readonly path: string; readonly body: unknown }[] {
  const rbac = (path: string, kind: string, name: string, more: object) => ({
    path: `${RBAC}/${path}`,
    body: { apiVersion: "rbac.authorization.k8s.io/v1", kind, metadata: { name }, ...more },
  });
  const core = (path: string, kind: string, name: string) => ({
    path: `/api/v1/${path}`,
    body: { apiVersion: "v1", kind, metadata: { name } },
  });
  const rules = [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }];
  const apiGroup = "rbac.authorization.k8s.io";
  const everything = {
    roleRef: { apiGroup, kind: "ClusterRole", name: "everything" },
    subjects: [{ kind: "User", apiGroup, name: "foo-admin" }],
  };
  return [
    core("namespaces", "Namespace", "foo"),
    core("namespaces", "Namespace", "victim"),
    core("namespaces", "Namespace", "held"),
    core("namespaces/foo/configmaps", "ConfigMap", "held"),
    core("namespaces/foo/serviceaccounts", "ServiceAccount", "held"),
    rbac("clusterroles", "ClusterRole", "everything", { rules }),
    rbac("clusterroles", "ClusterRole", "held", { rules: [] }),
    rbac("namespaces/foo/roles", "Role", "held", { rules: [] }),
    rbac("namespaces/foo/rolebindings", "RoleBinding", "everything", everything),
    definition("widgets", "Widget", "Namespaced"),
    definition("gadgets", "Gadget", "Cluster"),
  ];
}

function definition(plural: string, kind: string, scope: string) {
  const schema = {
    openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
  };
  const scale = { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" };
  const version = { name: "v1", served: true, storage: true, schema };
  return {
    path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    body: {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `${plural}.${GROUP}` },
      spec: {
        group: GROUP,
        scope,
        names: { plural, kind, listKind: `${kind}List` },
        versions: [{ ...version, subresources: { status: {}, scale } }],
      },
    },
  };
}

/** Of the custom kinds, once these are served. */
export function customObjects(): readonly { readonly path: string; readonly body: unknown }[] {
  const of = (kind: string) => ({
    apiVersion: `${GROUP}/v1`,
    kind,
    metadata: { name: "held" },
    spec: { replicas: 1 },
  });
  return [
    { path: `${CUSTOM}/namespaces/foo/widgets`, body: of("Widget") },
    { path: `${CUSTOM}/gadgets`, body: of("Gadget") },
  ];
}

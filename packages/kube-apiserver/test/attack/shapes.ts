/** The requests to the API server that `./dev attack linear` spoils. */
import {
  type BodyType,
  plain,
  type Shape,
  type Tree,
} from "../../../../test/fuzz/linear/shapes.ts";

const LIST_QUERY = {
  labelSelector: "a=b,c in (d,e),!f",
  fieldSelector: "metadata.name=a",
  limit: "10",
  continue: "abc",
  resourceVersion: "0",
  resourceVersionMatch: "NotOlderThan",
  watch: "false",
  timeoutSeconds: "1",
  timeout: "10s",
  pretty: "true",
  allowWatchBookmarks: "true",
  sendInitialEvents: "false",
};
const WRITE_QUERY = {
  dryRun: "All",
  fieldManager: "a",
  fieldValidation: "Strict",
  force: "false",
  pretty: "true",
  timeout: "10s",
};
const DELETE_QUERY = {
  dryRun: "All",
  propagationPolicy: "Background",
  gracePeriodSeconds: "1",
  orphanDependents: "false",
  ignoreStoreReadErrorWithClusterBreakingPotential: "false",
};
const METADATA = {
  name: "a",
  namespace: "default",
  generateName: "a-",
  uid: "b",
  resourceVersion: "",
  labels: { a: "b" },
  annotations: { c: "d" },
  finalizers: ["a/b"],
  generation: 1,
  creationTimestamp: "2026-01-01T00:00:00Z",
  deletionGracePeriodSeconds: 0,
  ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "a", uid: "b", controller: true }],
  managedFields: [
    {
      manager: "a",
      operation: "Update",
      apiVersion: "v1",
      time: "2026-01-01T00:00:00Z",
      fieldsType: "FieldsV1",
      fieldsV1: { "f:data": { "f:a": {}, 'k:{"name":"a"}': {} } },
    },
  ],
};
const TEMPLATE = {
  metadata: { labels: { a: "b" } },
  spec: {
    containers: [
      {
        name: "a",
        image: "b",
        command: ["c"],
        env: [{ name: "a", value: "b" }],
        resources: { limits: { cpu: "100m", memory: "1Gi" }, requests: { cpu: "1" } },
        ports: [{ containerPort: 80, protocol: "TCP" }],
        livenessProbe: { httpGet: { path: "/", port: "http" }, periodSeconds: 1 },
      },
    ],
    tolerations: [{ key: "a", operator: "Exists", effect: "NoSchedule" }],
  },
};

interface Kind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly isNamespaced?: boolean;
  readonly rest: Readonly<Record<string, Tree>>;
}

const EVERYBODYS: readonly Kind[] = [
  {
    apiVersion: "authentication.k8s.io/v1",
    kind: "SelfSubjectReview",
    plural: "selfsubjectreviews",
    rest: { status: { userInfo: { username: "a", groups: ["b"], extra: { c: ["d"] } } } },
  },
  {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    plural: "selfsubjectaccessreviews",
    rest: {
      spec: {
        resourceAttributes: {
          namespace: "a",
          verb: "get",
          group: "",
          version: "v1",
          resource: "pods",
          subresource: "log",
          name: "a",
          labelSelector: {
            rawSelector: "a=b",
            requirements: [{ key: "a", operator: "In", values: ["b"] }],
          },
          fieldSelector: {
            rawSelector: "a=b",
            requirements: [{ key: "a", operator: "In", values: ["b"] }],
          },
        },
        nonResourceAttributes: { path: "/a", verb: "get" },
      },
    },
  },
  {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectRulesReview",
    plural: "selfsubjectrulesreviews",
    rest: { spec: { namespace: "a" } },
  },
];

const ADMINS: readonly Kind[] = [
  {
    apiVersion: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    isNamespaced: true,
    rest: { data: { a: "b" }, binaryData: { c: "YQ==" }, immutable: false },
  },
  {
    apiVersion: "v1",
    kind: "Secret",
    plural: "secrets",
    isNamespaced: true,
    rest: {
      data: { a: "Yg==", "tls.crt": "Yg==", "tls.key": "Yg==" },
      stringData: { c: "d" },
      type: "kubernetes.io/tls",
    },
  },
  {
    apiVersion: "v1",
    kind: "Namespace",
    plural: "namespaces",
    rest: { spec: { finalizers: ["kubernetes"] } },
  },
  { apiVersion: "v1", kind: "Pod", plural: "pods", isNamespaced: true, rest: TEMPLATE },
  {
    apiVersion: "v1",
    kind: "Service",
    plural: "services",
    isNamespaced: true,
    rest: {
      spec: {
        clusterIP: "10.0.0.1",
        externalIPs: ["1.1.1.1"],
        loadBalancerSourceRanges: ["10.0.0.0/8"],
        ports: [{ name: "a", port: 80, targetPort: "http" }],
        selector: { a: "b" },
      },
    },
  },
  {
    apiVersion: "v1",
    kind: "Event",
    plural: "events",
    isNamespaced: true,
    rest: {
      involvedObject: { kind: "Pod", name: "a" },
      reason: "a",
      message: "b",
      firstTimestamp: "2026-01-01T00:00:00Z",
      eventTime: "2026-01-01T00:00:00.000000Z",
    },
  },
  {
    apiVersion: "v1",
    kind: "ResourceQuota",
    plural: "resourcequotas",
    isNamespaced: true,
    rest: { spec: { hard: { cpu: "1", memory: "1Gi", "a.b/c": "1" } } },
  },
  {
    apiVersion: "v1",
    kind: "LimitRange",
    plural: "limitranges",
    isNamespaced: true,
    rest: { spec: { limits: [{ type: "Container", max: { cpu: "1" }, default: { cpu: "1e3" } }] } },
  },
  {
    apiVersion: "v1",
    kind: "PersistentVolume",
    plural: "persistentvolumes",
    rest: {
      spec: {
        capacity: { storage: "1Gi" },
        hostPath: { path: "/a" },
        accessModes: ["ReadWriteOnce"],
      },
    },
  },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    plural: "deployments",
    isNamespaced: true,
    rest: {
      spec: {
        replicas: 1,
        selector: {
          matchLabels: { a: "b" },
          matchExpressions: [{ key: "a", operator: "In", values: ["b"] }],
        },
        template: TEMPLATE,
        strategy: { rollingUpdate: { maxSurge: "25%" } },
      },
    },
  },
  {
    apiVersion: "batch/v1",
    kind: "CronJob",
    plural: "cronjobs",
    isNamespaced: true,
    rest: {
      spec: {
        schedule: "* * * * *",
        timeZone: "Etc/UTC",
        jobTemplate: { spec: { template: TEMPLATE } },
      },
    },
  },
  {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    plural: "leases",
    isNamespaced: true,
    rest: {
      spec: {
        holderIdentity: "a",
        renewTime: "2026-01-01T00:00:00.000000Z",
        leaseDurationSeconds: 1,
      },
    },
  },
  {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    plural: "networkpolicies",
    isNamespaced: true,
    rest: {
      spec: {
        podSelector: { matchLabels: { a: "b" } },
        ingress: [{ from: [{ ipBlock: { cidr: "10.0.0.0/8", except: ["10.1.0.0/16"] } }] }],
      },
    },
  },
  {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    plural: "ingresses",
    isNamespaced: true,
    rest: {
      spec: {
        rules: [
          {
            host: "a.b",
            http: {
              paths: [
                {
                  path: "/a",
                  pathType: "Prefix",
                  backend: { service: { name: "a", port: { number: 1 } } },
                },
              ],
            },
          },
        ],
        tls: [{ hosts: ["a.b"] }],
      },
    },
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    plural: "clusterroles",
    rest: {
      rules: [
        { apiGroups: ["a"], resources: ["b/c"], verbs: ["get"], resourceNames: ["d"] },
        { nonResourceURLs: ["/a/*"], verbs: ["get"] },
      ],
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: "b" } }] },
    },
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    plural: "rolebindings",
    isNamespaced: true,
    rest: {
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
      subjects: [
        { kind: "User", name: "a", apiGroup: "rbac.authorization.k8s.io" },
        { kind: "ServiceAccount", name: "a", namespace: "b" },
      ],
    },
  },
  {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenReview",
    plural: "tokenreviews",
    rest: { spec: { token: "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJhIn0.YQ", audiences: ["a"] } },
  },
  {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    plural: "subjectaccessreviews",
    rest: {
      spec: {
        user: "a",
        groups: ["b"],
        uid: "c",
        extra: { d: ["e"] },
        resourceAttributes: {
          namespace: "a",
          verb: "get",
          resource: "pods",
          labelSelector: { rawSelector: "a=b" },
        },
      },
    },
  },
  {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    plural: "validatingwebhookconfigurations",
    rest: {
      webhooks: [
        {
          name: "a.b.c",
          clientConfig: { url: "https://127.0.0.1:1/a", caBundle: "YQ==" },
          rules: [
            { apiGroups: ["a"], apiVersions: ["v1"], resources: ["b"], operations: ["CREATE"] },
          ],
          admissionReviewVersions: ["v1"],
          sideEffects: "None",
          timeoutSeconds: 1,
          matchConditions: [{ name: "a", expression: "object.metadata.name == 'a'" }],
          namespaceSelector: { matchExpressions: [{ key: "a", operator: "In", values: ["b"] }] },
        },
      ],
    },
  },
  {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    rest: {
      metadata: { ...METADATA, name: "gadgets.example.org" },
      spec: {
        group: "example.org",
        scope: "Namespaced",
        names: {
          kind: "Gadget",
          plural: "gadgets",
          singular: "gadget",
          shortNames: ["g"],
          categories: ["all"],
        },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            subresources: {
              status: {},
              scale: {
                specReplicasPath: ".spec.r",
                statusReplicasPath: ".status.r",
                labelSelectorPath: ".status.s",
              },
            },
            additionalPrinterColumns: [{ name: "Size", type: "integer", jsonPath: ".spec.size" }],
            selectableFields: [{ jsonPath: ".spec.text" }],
            schema: {
              openAPIV3Schema: {
                type: "object",
                properties: {
                  spec: {
                    type: "object",
                    properties: {
                      size: { type: "integer", default: 3 },
                      text: { type: "string", pattern: "^(a+)+$", format: "date-time" },
                      list: {
                        type: "array",
                        items: { type: "string" },
                        "x-kubernetes-list-type": "set",
                      },
                    },
                    "x-kubernetes-validations": [
                      {
                        rule: "self.size > 1",
                        message: "m",
                        messageExpression: "'a'",
                        fieldPath: ".size",
                        reason: "FieldValueInvalid",
                      },
                    ],
                  },
                },
              },
            },
          },
        ],
      },
    },
  },
];

/** Formats of texts in custom resources. */
const FORMATS = [
  ..."date-time date time duration email hostname ipv4 ipv6 cidr mac uri uuid uuid3 uuid4".split(
    " ",
  ),
  ..."uuid5 byte isbn isbn10 isbn13 creditcard ssn hexcolor rgbcolor bsonobjectid datetime".split(
    " ",
  ),
  ..."password int-or-string quantity k8s-short-name k8s-long-name".split(" "),
];
/** Patterns and rules of the custom resource that the attack makes first. */
const PATTERNS = ["^(a+)+$", "^(a|a)*$", "(x+x+)+y", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"];
const RULES = [
  "self.matches('^(a+)+$')",
  "self.split(',').size() >= 0",
  "self.replace('a', 'bb') != ''",
  "self.lowerAscii().contains('x') || true",
  "self.find('[0-9]+') != 'x'",
  "self.findAll('[0-9]+').size() >= 0",
  "self.startsWith('a') || self.trim().size() >= 0",
  "!isURL(self) || url(self).getHost() != 'x'",
  "!isIP(self) || true",
  "!isCIDR(self) || true",
  "!isQuantity(self) || true",
  "self.indexOf('ab') >= -1 && self.lastIndexOf('ab') >= -1",
  "self.split(',').all(x, x != 'zz')",
  "self.split('').join('-') != 'x'",
  "duration('1s') < duration('2s') || self == 'x'",
];

const asKey = (at: number): string => `f${at}`;

/** The definition of the custom resource: one text for each format, pattern and rule. */
export function widgetDefinition(): Tree {
  const text = (more: Tree): Tree => ({ type: "string", maxLength: 300_000, ...more });
  const texts = [
    ...FORMATS.map((format) => text({ format })),
    ...PATTERNS.map((pattern) => text({ pattern })),
    ...RULES.map((rule) => text({ maxLength: 70_000, "x-kubernetes-validations": [{ rule }] })),
  ];
  const list = (type: string, more: Tree = {}): Tree => ({
    type: "array",
    "x-kubernetes-list-type": type,
    ...more,
    items:
      type === "map"
        ? { type: "object", required: ["k"], properties: { k: { type: "string" } } }
        : { type: "string" },
  });
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "widgets.attack.org" },
    spec: {
      group: "attack.org",
      scope: "Namespaced",
      names: { kind: "Widget", plural: "widgets", singular: "widget" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: "object",
              properties: {
                spec: {
                  type: "object",
                  properties: {
                    ...Object.fromEntries(texts.map((one, at) => [asKey(at), one])),
                    set: list("set"),
                    map: list("map", { "x-kubernetes-list-map-keys": ["k"] }),
                    unique: { type: "array", items: { type: "string" } },
                    any: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
                    port: { "x-kubernetes-int-or-string": true },
                    count: { type: "integer" },
                  },
                },
              },
            },
          },
        },
      ],
    },
  };
}

function widget(): Tree {
  const count = FORMATS.length + PATTERNS.length + RULES.length;
  return {
    apiVersion: "attack.org/v1",
    kind: "Widget",
    metadata: METADATA,
    spec: {
      ...Object.fromEntries(Array.from({ length: count }, (_, at) => [asKey(at), "a"])),
      set: ["a"],
      map: [{ k: "a" }],
      unique: ["a"],
      any: { a: { b: "c" } },
      port: "http",
      count: 1,
    },
  };
}

/** The root of a kind's objects, or where one is posted. */
function pathOf({ apiVersion, plural, isNamespaced }: Kind): string {
  const prefix = apiVersion.includes("/") ? "/apis/" : "/api/";
  return `${prefix}${apiVersion}${isNamespaced ? "/namespaces/default" : ""}/${plural}`;
}

/** @param headers what makes the caller an administrator; empty for system:anonymous */
export function apiShapes(port: string, headers: Readonly<Record<string, string>>): Shape[] {
  const maps = "/api/v1/namespaces/default/configmaps";
  const isAdmin = "authorization" in headers;
  const pages =
    "/ /api /apis /version /healthz /livez/ping /readyz/etcd /metrics /openapi/v2 /apis/apps";
  const shapes: Shape[] = [
    ...pages
      .split(" ")
      .map((path) =>
        plain(port, "GET", path, { headers, query: { verbose: "", exclude: "a", timeout: "1s" } }),
      ),
    plain(port, "GET", "/openapi/v3/api/v1", { headers, query: { hash: "A" } }),
    plain(port, "GET", "/.well-known/openid-configuration", { headers }),
    plain(port, "GET", "/openid/v1/jwks", { headers }),
    plain(port, "GET", "/apis/apps/v1", { headers, heads: true }),
    plain(port, "GET", maps, { headers, query: LIST_QUERY, heads: true }),
    plain(port, "GET", `${maps}/a`, { headers, query: { resourceVersion: "1" } }),
    plain(port, "GET", "/api/v1/watch/namespaces/default/configmaps/a", {
      headers,
      query: { ...LIST_QUERY, timeoutSeconds: "1" },
    }),
    plain(port, "GET", maps, {
      name: `GET ${maps}?watch by WebSocket`,
      query: { watch: "true", timeoutSeconds: "1" },
      headers: {
        ...headers,
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-protocol": "base64url.bearer.authorization.k8s.io.YQ, base64.binary.k8s.io",
        origin: "https://127.0.0.1",
      },
      heads: true,
    }),
    plain(port, "GET", `${maps}`, {
      name: `GET ${maps} as a table`,
      headers: {
        ...headers,
        accept: "application/json;as=Table;v=v1;g=meta.k8s.io, application/json",
      },
    }),
    plain(port, "GET", `${maps}/a`, {
      name: `GET ${maps}/a as YAML`,
      headers: { ...headers, accept: "application/yaml" },
    }),
    plain(port, "DELETE", `${maps}/a`, {
      headers: { ...headers, "content-type": "application/json" },
      query: DELETE_QUERY,
      bodyType: "json",
      body: {
        apiVersion: "v1",
        kind: "DeleteOptions",
        dryRun: ["All"],
        propagationPolicy: "Background",
        gracePeriodSeconds: 1,
        preconditions: { uid: "a", resourceVersion: "1" },
      },
    }),
    plain(port, "DELETE", maps, { headers, query: { ...LIST_QUERY, ...DELETE_QUERY } }),
  ];
  for (const kind of isAdmin ? [...EVERYBODYS, ...ADMINS] : EVERYBODYS) {
    const { apiVersion, rest } = kind;
    const isWhole = EVERYBODYS.includes(kind) || kind.kind === "ConfigMap";
    const metadata = isWhole ? METADATA : { name: "a", labels: { a: "b" } };
    const object = { apiVersion, kind: kind.kind, metadata, ...rest };
    for (const bodyType of ["json", "yaml"] as const) {
      for (const accept of [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
      ]) {
        if (accept !== "application/json" && (bodyType === "yaml" || !isWhole)) continue;
        if (bodyType === "yaml" && !isWhole) continue;
        shapes.push(
          plain(port, "POST", pathOf(kind), {
            name: `POST ${pathOf(kind)} ${bodyType} for ${accept}`,
            headers: { ...headers, accept, "content-type": `application/${bodyType}` },
            query: WRITE_QUERY,
            bodyType,
            body: object,
          }),
        );
      }
    }
  }
  shapes.push(
    plain(port, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {
      name: "POST selfsubjectreviews protobuf",
      bodyType: "text",
      body: "k8s\0",
      headers: { ...headers, "content-type": "application/vnd.kubernetes.protobuf" },
    }),
  );
  if (!isAdmin) return shapes;
  const patch = (type: string, body: Tree, bodyType: BodyType = "json"): Shape =>
    plain(port, "PATCH", `${maps}/a`, {
      name: `PATCH ${maps}/a ${type}`,
      headers: { ...headers, "content-type": `application/${type}` },
      query: WRITE_QUERY,
      bodyType,
      body,
    });
  const one = { apiVersion: "v1", kind: "ConfigMap", metadata: METADATA, data: { a: "b" } };
  const widgets = "/apis/attack.org/v1/namespaces/default/widgets";
  for (const bodyType of ["json", "yaml"] as const)
    shapes.push(
      plain(port, "POST", widgets, {
        name: `POST ${widgets} ${bodyType}`,
        headers: { ...headers, "content-type": `application/${bodyType}` },
        query: WRITE_QUERY,
        bodyType,
        body: widget(),
      }),
    );
  shapes.push(
    patch("json-patch+json", [
      { op: "add", path: "/data/a", value: "b" },
      { op: "move", from: "/data/a", path: "/data/b" },
      { op: "test", path: "/data/a", value: { a: ["b"] } },
    ]),
    patch("merge-patch+json", one),
    patch("strategic-merge-patch+json", {
      ...one,
      metadata: {
        ...METADATA,
        "$deleteFromPrimitiveList/finalizers": ["a"],
        "$setElementOrder/finalizers": ["a"],
        $retainKeys: ["a"],
      },
    }),
    patch("apply-patch+yaml", one, "yaml"),
    plain(port, "PATCH", "/apis/apps/v1/namespaces/default/deployments/a", {
      name: "PATCH deployments strategic",
      headers: { ...headers, "content-type": "application/strategic-merge-patch+json" },
      query: WRITE_QUERY,
      bodyType: "json",
      body: { spec: { template: TEMPLATE } },
    }),
    plain(port, "PUT", `${maps}/a`, {
      headers: { ...headers, "content-type": "application/json" },
      query: WRITE_QUERY,
      bodyType: "json",
      body: one,
    }),
    plain(port, "POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {
      headers: { ...headers, "content-type": "application/json" },
      bodyType: "json",
      body: {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: {
          audiences: ["a"],
          expirationSeconds: 600,
          boundObjectRef: { kind: "Secret", name: "a", uid: "b" },
        },
      },
    }),
    plain(port, "PUT", "/apis/apps/v1/namespaces/default/deployments/a/scale", {
      headers: { ...headers, "content-type": "application/json" },
      bodyType: "json",
      body: {
        apiVersion: "autoscaling/v1",
        kind: "Scale",
        metadata: METADATA,
        spec: { replicas: 1 },
        status: { selector: "a=b" },
      },
    }),
  );
  return shapes;
}

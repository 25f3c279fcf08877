/**
 * Writes how the operator is installed, each way from the same objects, with the definitions of its
 * kinds from packages/operator:
 *
 *   deploy/kubernetes/operator.yaml    all that `kubectl apply` needs
 *   deploy/helm/quorate-operator       a Helm chart
 *   deploy/olm                         a bundle for the Operator Lifecycle Manager
 *
 *   node scripts/gen-operator.ts           write them
 *   node scripts/gen-operator.ts --check   write nothing; exit 1 if a file would change
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { definitions } from "@quorate/operator";
import { dump } from "js-yaml";
import { readMode } from "./generator.ts";

const root = join(import.meta.dirname, "..");
const NAME = "quorate-operator";
const MADE = "Made by scripts/gen-operator.ts. See docs/operate/operator.md.";

const HEAD = `# The operator of Quorate, in a namespace of its own, for clusters in all namespaces:
#
#   kubectl apply -f operator.yaml
#
# ${MADE}
`;

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  version: string;
};
const labels = { "app.kubernetes.io/name": NAME };
const DESCRIPTION = "Keeps clusters of Quorate, a key-value store with etcd's API, on Kubernetes";

const rule = (apiGroups: string[], resources: string[], verbs: string[]) => ({
  apiGroups,
  resources,
  verbs,
});
const LOOK = ["get", "list", "watch"];
const KINDS = ["quorateclusters", "quoratebackups", "quoraterestores", "quorateusers"];

/** Everything that HttpKube calls, and no more. */
const CLUSTER_RULES = [
  rule(["quorate.dev"], KINDS, [...LOOK, "patch"]),
  rule(["quorate.dev"], ["quorateclusters"], ["create"]),
  rule(
    ["quorate.dev"],
    KINDS.map((one) => `${one}/status`),
    ["patch"],
  ),
  // Owner references of children block the deletion of their owner.
  rule(
    ["quorate.dev"],
    KINDS.map((one) => `${one}/finalizers`),
    ["update"],
  ),
  rule([""], ["pods"], [...LOOK, "create", "delete"]),
  rule([""], ["persistentvolumeclaims"], [...LOOK, "create", "patch", "delete"]),
  rule([""], ["secrets"], [...LOOK, "create", "patch"]),
  rule([""], ["services"], ["list", "create"]),
  rule([""], ["events"], ["create"]),
  rule(["monitoring.coreos.com"], ["podmonitors"], ["list", "create", "patch"]),
  rule(["cert-manager.io"], ["certificates"], ["list", "create", "patch"]),
  rule(["storage.k8s.io"], ["storageclasses"], ["get"]),
  rule(["policy"], ["poddisruptionbudgets"], ["list", "create", "patch"]),
];
const OWN_RULES = [rule(["coordination.k8s.io"], ["leases"], ["get", "create", "patch"])];

/** What ways to install differ in. */
interface Place {
  readonly namespace: string;
  readonly image: string;
  readonly replicas: unknown;
  readonly args: readonly string[];
  /** Further fields of the pod and of its container. */
  readonly pod: Readonly<Record<string, unknown>>;
  readonly container: Readonly<Record<string, unknown>>;
}

const RESOURCES = { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "512Mi" } };
const ARGS = ["operator", "--listen-metrics=0.0.0.0:8080"];
const PLAIN: Place = {
  namespace: "quorate-system",
  image: `quorate:${version}`,
  replicas: 1,
  args: ARGS,
  pod: {},
  container: { resources: RESOURCES },
};

function deploymentSpec({ image, replicas, args, pod, container }: Place) {
  return {
    replicas,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        serviceAccountName: NAME,
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 10_001,
          seccompProfile: { type: "RuntimeDefault" },
        },
        ...pod,
        containers: [
          {
            name: "operator",
            image,
            args,
            ports: [{ name: "metrics", containerPort: 8080 }],
            livenessProbe: { httpGet: { path: "/healthz", port: "metrics" }, periodSeconds: 20 },
            readinessProbe: { httpGet: { path: "/readyz", port: "metrics" }, periodSeconds: 10 },
            ...container,
            securityContext: {
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ["ALL"] },
            },
          },
        ],
      },
    },
  };
}

const serviceSpec = {
  selector: labels,
  ports: [{ name: "metrics", port: 8080, targetPort: "metrics" }],
};

/** All but the namespace and the definitions. */
function objectsIn(place: Place): object[] {
  const { namespace } = place;
  const metadata = { name: NAME, namespace, labels };
  const subjects = [{ kind: "ServiceAccount", name: NAME, namespace }];
  const rbac = "rbac.authorization.k8s.io";
  const roleRef = (kind: string) => ({ apiGroup: rbac, kind, name: NAME });
  const apiVersion = `${rbac}/v1`;
  const shared = { name: NAME, labels };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    { apiVersion, kind: "ClusterRole", metadata: shared, rules: CLUSTER_RULES },
    {
      apiVersion,
      kind: "ClusterRoleBinding",
      metadata: shared,
      roleRef: roleRef("ClusterRole"),
      subjects,
    },
    { apiVersion, kind: "Role", metadata, rules: OWN_RULES },
    { apiVersion, kind: "RoleBinding", metadata, roleRef: roleRef("Role"), subjects },
    { apiVersion: "apps/v1", kind: "Deployment", metadata, spec: deploymentSpec(place) },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { ...metadata, name: `${NAME}-metrics` },
      spec: serviceSpec,
    },
  ];
}

const yaml = (value: object): string => dump(value, { lineWidth: 100, noRefs: true });
const documents = (objects: readonly object[]): string =>
  objects.map((one) => `---\n${yaml(one)}`).join("");

function manifest(): string {
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: PLAIN.namespace } };
  return HEAD + documents([namespace, ...definitions(), ...objectsIn(PLAIN)]);
}

/** The chart's files. In the objects stand words, in whose place helm's templates are put. */
function chart(): Record<string, string> {
  const lists = ["nodeSelector", "tolerations", "affinity", "imagePullSecrets"];
  const objects = objectsIn({
    namespace: "{{ .Release.Namespace }}",
    image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}",
    replicas: "VALUE replicas",
    args: [...ARGS, "--namespace={{ .Values.watchNamespace }}"],
    pod: Object.fromEntries(lists.map((name) => [name, `VALUE ${name}`])),
    container: { resources: "VALUE resources" },
  });
  const template = documents(objects).replace(/VALUE (\w+)/g, "{{ toJson .Values.$1 }}");
  // Definitions stay when the chart goes, for with them all clusters would go.
  const kept = definitions().map((one) => ({
    ...one,
    metadata: { ...one.metadata, annotations: { "helm.sh/resource-policy": "keep" } },
  }));
  const values = {
    image: { repository: "quorate", tag: "" },
    replicas: 1,
    watchNamespace: "",
    resources: RESOURCES,
    nodeSelector: {},
    tolerations: [],
    affinity: {},
    imagePullSecrets: [],
  };
  const about = {
    apiVersion: "v2",
    name: NAME,
    description: DESCRIPTION,
    type: "application",
    version,
    appVersion: version,
    kubeVersion: ">=1.29.0-0",
    keywords: ["etcd", "key-value", "raft", "operator"],
  };
  const valuesHead = `# ${MADE}
# replicas: more than one wait for the lease of the one that works.
# watchNamespace: the only namespace to work in; empty for all.
`;
  return {
    "Chart.yaml": `# ${MADE}\n${yaml(about)}`,
    "values.yaml": valuesHead + yaml(values),
    "values.schema.json": `${JSON.stringify(schemaOf(values), undefined, 2)}\n`,
    "templates/operator.yaml": `# ${MADE}\n${template}`,
    "templates/definitions.yaml": `# ${MADE}\n${documents(kept)}`,
  };
}

/** A schema that takes no other names than these values have. */
function schemaOf(values: object): object {
  const typeOf = (value: unknown): object => {
    if (typeof value === "string") return { type: "string" };
    if (typeof value === "number") return { type: "integer", minimum: 0 };
    return { type: Array.isArray(value) ? "array" : "object" };
  };
  const properties = Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, typeOf(value)]),
  );
  return {
    $schema: "https://json-schema.org/draft-07/schema#",
    type: "object",
    additionalProperties: false,
    properties: { global: { type: "object" }, ...properties },
  };
}

const KIND_TITLES: Readonly<Record<string, readonly [title: string, description: string]>> = {
  QuorateCluster: ["Cluster", "A cluster: its members, services, certificates, disruption budget"],
  QuorateBackup: ["Backup", "A backup of it: every change, or snapshots at intervals"],
  QuorateRestore: ["Restore", "Keys of a backup, into a new cluster or in place"],
  QuorateUser: ["User", "A user with a role and a password from a secret"],
};

/** The files of the bundle, as OLM and its catalogs read them. */
function bundle(): Record<string, string> {
  const watched = { fieldRef: { fieldPath: "metadata.annotations['olm.targetNamespaces']" } };
  const spec = deploymentSpec({
    ...PLAIN,
    args: [...ARGS, "--namespace=$(WATCH_NAMESPACE)"],
    container: {
      ...PLAIN.container,
      env: [{ name: "WATCH_NAMESPACE", valueFrom: watched }],
    },
  });
  const kinds = definitions();
  const owned = kinds.map(({ metadata, spec: fields }) => {
    const { names, versions } = fields as {
      names: { kind: string };
      versions: { name: string }[];
    };
    const [displayName, description] = KIND_TITLES[names.kind]!;
    const [{ name }] = versions as [{ name: string }];
    return { name: metadata.name, version: name, kind: names.kind, displayName, description };
  });
  const example = (kind: string, name: string, spec: object) => ({
    apiVersion: "quorate.dev/v1alpha1",
    kind,
    metadata: { name },
    spec,
  });
  const examples = [
    example("QuorateCluster", "db", {
      size: 3,
      image: PLAIN.image,
      storage: { size: "8Gi" },
    }),
    example("QuorateBackup", "db-always", {
      cluster: "db",
      claim: "backups",
      path: "db/always",
      continuous: {},
    }),
    example("QuorateRestore", "db-as-of-now", {
      cluster: "db",
      from: { claim: "backups", path: "db/always" },
    }),
    example("QuorateUser", "ann", {
      cluster: "db",
      passwordSecret: { name: "ann" },
      permissions: [{ access: "readwrite", key: "app/", prefix: true }],
    }),
  ];
  const permission = (rules: object[]) => [{ serviceAccountName: NAME, rules }];
  const mode = (type: string, supported: boolean) => ({ type, supported });
  const version1 = {
    apiVersion: "operators.coreos.com/v1alpha1",
    kind: "ClusterServiceVersion",
    metadata: {
      name: `${NAME}.v${version}`,
      annotations: {
        "alm-examples": JSON.stringify(examples, undefined, 2),
        capabilities: "Deep Insights",
        categories: "Database",
        containerImage: PLAIN.image,
        description: DESCRIPTION,
      },
    },
    spec: {
      displayName: "Quorate",
      description: `${DESCRIPTION}.`,
      version,
      maturity: "alpha",
      minKubeVersion: "1.29.0",
      keywords: ["etcd", "key-value", "raft"],
      provider: { name: "Quorate" },
      installModes: [
        mode("OwnNamespace", true),
        mode("SingleNamespace", true),
        mode("MultiNamespace", false),
        mode("AllNamespaces", true),
      ],
      customresourcedefinitions: { owned },
      install: {
        strategy: "deployment",
        spec: {
          clusterPermissions: permission(CLUSTER_RULES),
          permissions: permission(OWN_RULES),
          deployments: [{ name: NAME, spec }],
        },
      },
    },
  };
  const prefix = "operators.operatorframework.io.bundle";
  const annotations = {
    [`${prefix}.mediatype.v1`]: "registry+v1",
    [`${prefix}.manifests.v1`]: "manifests/",
    [`${prefix}.metadata.v1`]: "metadata/",
    [`${prefix}.package.v1`]: NAME,
    [`${prefix}.channels.v1`]: "alpha",
    [`${prefix}.channel.default.v1`]: "alpha",
  };
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: `${NAME}-metrics`, labels },
    spec: serviceSpec,
  };
  const image = ["FROM scratch", "COPY manifests /manifests/", "COPY metadata /metadata/"];
  for (const [name, value] of Object.entries(annotations)) image.push(`LABEL ${name}=${value}`);
  return {
    Containerfile: `# ${MADE}\n${image.join("\n")}\n`,
    "metadata/annotations.yaml": yaml({ annotations }),
    [`manifests/${NAME}.clusterserviceversion.yaml`]: yaml(version1),
    [`manifests/${NAME}-metrics.service.yaml`]: yaml(service),
    ...Object.fromEntries(
      kinds.map((one) => [`manifests/${one.metadata.name}.crd.yaml`, yaml(one)]),
    ),
  };
}

const within = (dir: string, files: Record<string, string>): [string, string][] =>
  Object.entries(files).map(([name, text]) => [`${dir}/${name}`, text]);

const files = [
  ["deploy/kubernetes/operator.yaml", manifest()] as const,
  ...within("deploy/helm/quorate-operator", chart()),
  ...within("deploy/olm", bundle()),
];
const output = "operator.yaml, the operator's chart, and its bundle";
const mode = readMode("gen-operator.ts", output, process.argv.slice(2));
for (const [file, text] of files) {
  const path = join(root, file);
  if (mode === "write") {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  } else if (!existsSync(path) || readFileSync(path, "utf8") !== text) {
    process.stderr.write(`${file} is not what scripts/gen-operator.ts makes: run ./dev gen\n`);
    process.exitCode = 1;
  }
}

/**
 * Writes deploy/kubernetes/operator.yaml: all that `kubectl apply` needs for the operator, with the
 * definitions of its kinds from packages/operator.
 *
 *   node scripts/gen-operator.ts           write it
 *   node scripts/gen-operator.ts --check   write nothing; exit 1 if it would change
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { definitions } from "@quorate/operator";
import { dump } from "js-yaml";
import { readMode } from "./generator.ts";

const root = join(import.meta.dirname, "..");
const file = "deploy/kubernetes/operator.yaml";
const NAMESPACE = "quorate-system";
const NAME = "quorate-operator";

const HEAD = `# The operator of Quorate, in a namespace of its own, for clusters in all namespaces:
#
#   kubectl apply -f operator.yaml
#
# Made by scripts/gen-operator.ts from packages/operator. See docs/operate/operator.md.
`;

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  version: string;
};
const labels = { "app.kubernetes.io/name": NAME };
const metadata = { name: NAME, namespace: NAMESPACE, labels };

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

const subjects = [{ kind: "ServiceAccount", name: NAME, namespace: NAMESPACE }];
const roleRef = (kind: string) => ({ apiGroup: "rbac.authorization.k8s.io", kind, name: NAME });

const container = {
  name: "operator",
  image: `quorate:${version}`,
  args: ["operator", "--listen-metrics=0.0.0.0:8080"],
  ports: [{ name: "metrics", containerPort: 8080 }],
  livenessProbe: { httpGet: { path: "/healthz", port: "metrics" }, periodSeconds: 20 },
  readinessProbe: { httpGet: { path: "/readyz", port: "metrics" }, periodSeconds: 10 },
  resources: { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "512Mi" } },
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  },
};

const objects = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } },
  ...definitions(),
  { apiVersion: "v1", kind: "ServiceAccount", metadata },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: NAME, labels },
    rules: CLUSTER_RULES,
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: NAME, labels },
    roleRef: roleRef("ClusterRole"),
    subjects,
  },
  { apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", metadata, rules: OWN_RULES },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata,
    roleRef: roleRef("Role"),
    subjects,
  },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata,
    spec: {
      replicas: 1,
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
          containers: [container],
        },
      },
    },
  },
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { ...metadata, name: `${NAME}-metrics` },
    spec: { selector: labels, ports: [{ name: "metrics", port: 8080, targetPort: "metrics" }] },
  },
];

const mode = readMode("gen-operator.ts", file, process.argv.slice(2));
const documents = objects.map((one) => dump(one, { lineWidth: 100, noRefs: true }));
const text = HEAD + documents.map((one) => `---\n${one}`).join("");
if (mode === "write") writeFileSync(join(root, file), text);
else if (readFileSync(join(root, file), "utf8") !== text) {
  process.stderr.write(`${file} is not what scripts/gen-operator.ts makes: run ./dev gen\n`);
  process.exitCode = 1;
}

/**
 * The objects of a cluster. A member, its pod and its claim share a name, NAME-NUMBER, which is not
 * used again.
 *
 *     NAME-client          service: members that are ready
 *     NAME-peer            headless service: a name for each member, ready or not
 *     NAME-members         disruption budget; PodMonitor, where that is served
 *     NAME-ca              secret: the cluster's own authority, unless cert-manager has one
 *     NAME-member-tls      secret: members' certificate, for clients and for each other
 *     NAME-root-tls        secret: certificate of the user root, for the operator and backups
 *     NAME-client-tls      secret: certificate for programs that use the cluster
 *     NAME-0, NAME-1, ...  pods and claims
 */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { PodParts, QuorateCluster } from "../base/kinds.ts";
import { type KubeObject, keyOf, ownerOf, RESOURCES } from "../base/kube.ts";
import { type ClaimView, DATA_LOST_CODE, type Leaf, type PodMode } from "./observed.ts";

export const CLUSTER_LABEL = "quorate.dev/cluster";
export const ROLE_LABEL = "quorate.dev/role";
export const CLUSTER_UID = "quorate.dev/cluster-uid";
export const MODE = "quorate.dev/mode";
export const TEMPLATE = "quorate.dev/template";
export const MEMBER_ID = "quorate.dev/member-id";
export const STARTED = "quorate.dev/started";
export const SEED = "quorate.dev/seed";
export const ZONE = "quorate.dev/zone";
export const RESTORE_ID = "quorate.dev/restore-id";
export const FILLED = "quorate.dev/filled";
export const REQUEST = "quorate.dev/rotation-request";
/** On a QuorateCluster, by people. */
export const PAUSE = "quorate.dev/pause";
export const ROTATE = "quorate.dev/rotate-certificates";
export const ROTATE_AUTHORITY = "quorate.dev/rotate-authority";
export const RECOVER = "quorate.dev/recover-quorum";
/** On a QuorateCluster, by a QuorateRestore: what is restored, as JSON. */
export const RESTORE = "quorate.dev/restore";

export const BIN = "/opt/quorate/bin";
export const VOLUME = "/var/lib/quorate";
export const DATA = `${VOLUME}/data`;
export const TLS = "/etc/quorate/tls";
/** So long a pod that ends stays, until services have forgotten it. */
const PRE_STOP_SECONDS = 2;
const GRACE_SECONDS = 60;

export const peerService = (cluster: string): string => `${cluster}-peer`;
export const clientService = (cluster: string): string => `${cluster}-client`;
export const budgetName = (cluster: string): string => `${cluster}-members`;
export const authorityName = (cluster: string): string => `${cluster}-ca`;
export const leafName = (cluster: string, leaf: Leaf): string => `${cluster}-${leaf}-tls`;

/** The host of a member, which its certificate names by a wildcard. */
export function hostOf(cluster: KubeObject, pod: string): string {
  const { namespace, name } = keyOf(cluster);
  return `${pod}.${peerService(name)}.${namespace}.svc`;
}

export const clientUrl = (cluster: KubeObject, pod: string): string =>
  `https://${hostOf(cluster, pod)}:2379`;
export const peerUrl = (cluster: KubeObject, pod: string): string =>
  `https://${hostOf(cluster, pod)}:2380`;

/** Names that the members' certificate has. */
function certificateHosts(cluster: KubeObject): string[] {
  const { namespace, name } = keyOf(cluster);
  const service = clientService(name);
  return [
    "localhost",
    "127.0.0.1",
    `*.${peerService(name)}.${namespace}.svc`,
    service,
    `${service}.${namespace}`,
    `${service}.${namespace}.svc`,
  ];
}

/** Whom a certificate is for. */
export interface Subject {
  readonly commonName: string;
  readonly hosts: readonly string[];
  readonly usage: "client" | "both";
}

export function subjectOf(cluster: KubeObject, leaf: Leaf): Subject {
  return leaf === "member"
    ? { commonName: leaf, hosts: certificateHosts(cluster), usage: "both" }
    : { commonName: leaf, hosts: [], usage: "client" };
}

export const labelsOf = (cluster: KubeObject, role: string): Record<string, string> => ({
  "app.kubernetes.io/name": "quorate",
  "app.kubernetes.io/instance": cluster.metadata.name,
  "app.kubernetes.io/managed-by": "quorate-operator",
  [CLUSTER_LABEL]: cluster.metadata.name,
  [ROLE_LABEL]: role,
});

export const selectorText = (cluster: string, role: string): string =>
  `${CLUSTER_LABEL}=${cluster},${ROLE_LABEL}=${role}`;

const memberSelector = (cluster: KubeObject): Record<string, string> => ({
  [CLUSTER_LABEL]: cluster.metadata.name,
  [ROLE_LABEL]: "member",
});

function child(
  cluster: KubeObject,
  apiVersion: string,
  kind: string,
  name: string,
  rest: Readonly<Record<string, unknown>>,
): KubeObject {
  const { namespace } = keyOf(cluster);
  const labels = labelsOf(cluster, "shared");
  const ownerReferences = [ownerOf(cluster)];
  return { apiVersion, kind, metadata: { name, namespace, labels, ownerReferences }, ...rest };
}

/** The services and the disruption budget. */
export function sharedObjects(cluster: QuorateCluster): KubeObject[] {
  const { name } = cluster.metadata;
  const selector = memberSelector(cluster);
  const client = { name: "client", port: 2379, targetPort: "client", protocol: "TCP" };
  const peer = { name: "peer", port: 2380, targetPort: "peer", protocol: "TCP" };
  const metrics = { name: "metrics", port: 2381, targetPort: "metrics", protocol: "TCP" };
  const headless = { clusterIP: "None", publishNotReadyAddresses: true };
  return [
    child(cluster, "v1", "Service", peerService(name), {
      spec: { ...headless, selector, ports: [client, peer, metrics] },
    }),
    child(cluster, "v1", "Service", clientService(name), { spec: { selector, ports: [client] } }),
    child(cluster, "policy/v1", "PodDisruptionBudget", budgetName(name), {
      // One at a time, whatever a quorum would bear: who drains nodes must not meet who replaces.
      spec: {
        minAvailable: Math.max(0, cluster.spec!.size - 1),
        selector: { matchLabels: selector },
      },
    }),
  ];
}

/** Has Prometheus' operator scrape the members. "etcd" in the job's name is what rules look for. */
export function monitorOf(cluster: QuorateCluster): KubeObject {
  const { namespace, name } = keyOf(cluster);
  const { apiVersion } = RESOURCES.PodMonitor;
  const job = { targetLabel: "job", replacement: `${namespace}/${name}-etcd` };
  const endpoint = { port: "metrics", path: "/metrics", relabelings: [job] };
  const monitor = child(cluster, apiVersion, "PodMonitor", budgetName(name), {
    spec: {
      selector: { matchLabels: memberSelector(cluster) },
      podMetricsEndpoints: [endpoint],
    },
  });
  const labels = { ...cluster.spec!.monitor?.labels, ...monitor.metadata.labels };
  return { ...monitor, metadata: { ...monitor.metadata, labels } };
}

/** Has cert-manager make a certificate, into the secret where one of an own authority would be. */
export function certificateOf(cluster: QuorateCluster, leaf: Leaf): KubeObject {
  const { name } = cluster.metadata;
  const { validDays, issuerRef } = cluster.spec!.certificates;
  const { commonName, hosts, usage } = subjectOf(cluster, leaf);
  const isAddress = (host: string): boolean => /^[0-9.]+$/.test(host);
  const secretName = leafName(name, leaf);
  return child(cluster, RESOURCES.Certificate.apiVersion, "Certificate", secretName, {
    spec: {
      secretName,
      secretTemplate: { labels: labelsOf(cluster, "shared") },
      issuerRef,
      commonName,
      dnsNames: hosts.filter((host) => !isAddress(host)),
      ipAddresses: hosts.filter(isAddress),
      usages: ["digital signature", ...(usage === "both" ? ["server auth"] : []), "client auth"],
      duration: `${validDays * 24}h`,
      privateKey: { algorithm: "ECDSA", size: 256, rotationPolicy: "Always" },
    },
  });
}

/** A secret of the cluster. @param data base64 */
export function secretOf(
  cluster: KubeObject,
  name: string,
  data: Readonly<Record<string, string>>,
  annotations: Readonly<Record<string, string>>,
): KubeObject {
  const secret = child(cluster, "v1", "Secret", name, { type: "kubernetes.io/tls", data });
  return { ...secret, metadata: { ...secret.metadata, annotations } };
}

/** The claim of a member. */
export function claimOf(
  cluster: QuorateCluster,
  name: string,
  marks: Readonly<Record<string, string>>,
): KubeObject {
  const { storage } = cluster.spec!;
  const { namespace } = keyOf(cluster);
  const { storageClassName } = storage;
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: {
      name,
      namespace,
      labels: labelsOf(cluster, "member"),
      annotations: { [CLUSTER_UID]: cluster.metadata.uid ?? "", ...marks },
      ...(storage.onDelete === "Delete" ? { ownerReferences: [ownerOf(cluster)] } : {}),
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: storage.size } },
      ...(storageClassName === undefined ? {} : { storageClassName }),
    },
  };
}

const START = `data="$1"; mode="$2"; shift 2
if [ ! -d "$data/member/wal" ] && { [ "$mode" = run ] || [ "$mode" = force ] || [ -e /tmp/began ]; }; then
  echo "the data of this member are gone: $data" >&2
  exit ${DATA_LOST_CODE}
fi
touch /tmp/began
exec ${BIN}/quorate "$@"`;

const HARDENED = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
};
const UNPRIVILEGED = {
  runAsNonRoot: true,
  runAsUser: 10_001,
  runAsGroup: 10_001,
  fsGroup: 10_001,
  fsGroupChangePolicy: "OnRootMismatch",
  seccompProfile: { type: "RuntimeDefault" },
};

function probe(path: string, periodSeconds: number, failureThreshold: number): object {
  return { httpGet: { path, port: "metrics" }, periodSeconds, timeoutSeconds: 5, failureThreshold };
}

/** Flags that no change of the membership changes. */
function steadyFlags(cluster: QuorateCluster): string[] {
  return [
    `--data-dir=${DATA}`,
    "--listen-client-urls=https://0.0.0.0:2379",
    "--listen-peer-urls=https://0.0.0.0:2380",
    "--listen-metrics-urls=http://0.0.0.0:2381",
    `--cert-file=${TLS}/tls.crt`,
    `--key-file=${TLS}/tls.key`,
    `--trusted-ca-file=${TLS}/ca.crt`,
    "--client-cert-auth=true",
    `--peer-cert-file=${TLS}/tls.crt`,
    `--peer-key-file=${TLS}/tls.key`,
    `--peer-trusted-ca-file=${TLS}/ca.crt`,
    "--peer-client-cert-auth=true",
    ...Object.entries(cluster.spec!.flags ?? {}).map(([name, value]) => `--${name}=${value}`),
  ];
}

/** What all members' pods have in common: a change of it restarts them one by one. */
export function podTemplate(cluster: QuorateCluster) {
  const { image, pod: parts = {} } = cluster.spec!;
  const { labels = {}, annotations = {}, resources, securityContext, ...rest } = parts;
  const spread = ["kubernetes.io/hostname", "topology.kubernetes.io/zone"].map((topologyKey) => ({
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: "ScheduleAnyway",
    labelSelector: { matchLabels: memberSelector(cluster) },
  }));
  return {
    labels,
    annotations,
    spec: {
      restartPolicy: "Always",
      terminationGracePeriodSeconds: GRACE_SECONDS,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      topologySpreadConstraints: spread,
      ...rest,
      securityContext: securityContext ?? UNPRIVILEGED,
    },
    container: {
      name: "quorate",
      image,
      command: ["/bin/sh", "-euc", START, "start"],
      ports: [
        { name: "client", containerPort: 2379 },
        { name: "peer", containerPort: 2380 },
        { name: "metrics", containerPort: 2381 },
      ],
      startupProbe: probe("/livez", 2, 450),
      livenessProbe: probe("/livez", 10, 6),
      readinessProbe: probe("/readyz", 2, 2),
      lifecycle: { preStop: { exec: { command: ["/bin/sleep", String(PRE_STOP_SECONDS)] } } },
      securityContext: HARDENED,
      ...(resources === undefined ? {} : { resources }),
    },
    flags: steadyFlags(cluster),
  };
}

/** Says whether a pod is as the cluster's pods are to be. */
export function templateHash(cluster: QuorateCluster): string {
  return bytesToHex(sha256(utf8ToBytes(JSON.stringify(podTemplate(cluster))))).slice(0, 16);
}

/** The token of the cluster, from which ids are made. */
function tokenOf(cluster: QuorateCluster): string {
  return cluster.status?.restored ?? cluster.metadata.uid ?? "";
}

/**
 * The pod of a member.
 * @param others pods of all members of the cluster that it joins
 */
export function memberPod(
  cluster: QuorateCluster,
  { name, zone }: Pick<ClaimView, "name" | "zone">,
  mode: PodMode,
  others: readonly string[],
): KubeObject {
  const { labels, annotations, spec, container, flags } = podTemplate(cluster);
  const { namespace, name: clusterName } = keyOf(cluster);
  const names = mode === "join" ? [...new Set([...others, name])] : [name];
  const args = [
    DATA,
    mode,
    `--name=${name}`,
    ...flags,
    `--advertise-client-urls=${clientUrl(cluster, name)}`,
    `--initial-advertise-peer-urls=${peerUrl(cluster, name)}`,
    `--initial-cluster=${names.map((one) => `${one}=${peerUrl(cluster, one)}`).join()}`,
    `--initial-cluster-state=${mode === "new" ? "new" : "existing"}`,
    `--initial-cluster-token=${tokenOf(cluster)}`,
    ...(mode === "force" ? ["--force-new-cluster"] : []),
  ];
  const marks = { [MODE]: mode, [TEMPLATE]: templateHash(cluster) };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      labels: { ...labels, ...labelsOf(cluster, "member") },
      annotations: { ...annotations, ...marks },
      ownerReferences: [ownerOf(cluster)],
    },
    spec: {
      ...inZone(spec, zone),
      hostname: name,
      subdomain: peerService(clusterName),
      containers: [
        {
          ...container,
          args,
          volumeMounts: [
            { name: "data", mountPath: VOLUME },
            { name: "tmp", mountPath: "/tmp" },
            { name: "tls", mountPath: TLS, readOnly: true },
          ],
        },
      ],
      volumes: [
        { name: "data", persistentVolumeClaim: { claimName: name } },
        { name: "tmp", emptyDir: {} },
        {
          name: "tls",
          secret: { secretName: leafName(clusterName, "member"), defaultMode: 0o440 },
        },
      ],
    },
  };
}

/** A pod's spec, on nodes of a zone. */
export function inZone<T extends Pick<PodParts, "nodeSelector">>(
  spec: T,
  zone: string | undefined,
): T {
  if (zone === undefined) return spec;
  return { ...spec, nodeSelector: { ...spec.nodeSelector, "topology.kubernetes.io/zone": zone } };
}

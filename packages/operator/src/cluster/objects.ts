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
import type {
  MirrorSpec,
  PodParts,
  QuorateBackup,
  QuorateCluster,
  QuorateRestore,
} from "../base/kinds.ts";
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

const BIN = "/opt/quorate/bin";
const VOLUME = "/var/lib/quorate";
const DATA = `${VOLUME}/data`;
const TLS = "/etc/quorate/tls";
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

const labelsOf = (cluster: KubeObject, role: string): Record<string, string> => ({
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
function podTemplate(cluster: QuorateCluster) {
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
function inZone<T extends Pick<PodParts, "nodeSelector">>(spec: T, zone: string | undefined): T {
  if (zone === undefined) return spec;
  return { ...spec, nodeSelector: { ...spec.nodeSelector, "topology.kubernetes.io/zone": zone } };
}

/** Of the RESTORE annotation. */
export type RestoreOrder = NonNullable<QuorateRestore["spec"]>["from"] & {
  /** uid of the QuorateRestore. */
  readonly id: string;
  readonly bumpRevision: number;
};

/** Where the secret of a mirror is in a pod. */
const MIRROR_SECRET = "/mirror";

/**
 * Variables of a mirror: MIRROR, "" for none, and where its store and credentials are.
 */
export function mirrorVariables(
  mirror: MirrorSpec | undefined,
): { readonly name: string; readonly value: string }[] {
  if (mirror === undefined) return [{ name: "MIRROR", value: "" }];
  const { url, endpoint, region } = mirror;
  return [
    { name: "MIRROR", value: url },
    { name: "AWS_SHARED_CREDENTIALS_FILE", value: `${MIRROR_SECRET}/credentials` },
    ...(endpoint === undefined ? [] : [{ name: "AWS_ENDPOINT_URL", value: endpoint }]),
    ...(region === undefined ? [] : [{ name: "AWS_REGION", value: region }]),
  ];
}

/** The part of a script that sets MIRROR_FLAGS for an encrypted mirror. */
export const SET_MIRROR_FLAGS = `MIRROR_FLAGS=""
[ ! -f ${MIRROR_SECRET}/encryption-key ] || MIRROR_FLAGS="--encryption-key=${MIRROR_SECRET}/encryption-key"`;

const FILL = `source="$1"; shift
${SET_MIRROR_FLAGS}
if [ -n "$MIRROR" ]; then
  ${BIN}/quorateutl backup fetch "$MIRROR" "$source" $MIRROR_FLAGS $POINT
fi
if [ -f "$source" ]; then set -- snapshot restore "$source" "$@"
elif ls "$source"/base-* >/dev/null 2>&1; then set -- backup restore "$source" "$@" $POINT
else
  newest=$(ls "$source" | grep '\\.db$' | sort | tail -n 1)
  [ -n "$newest" ] || { echo "$source has no backup" >&2; exit 1; }
  set -- snapshot restore "$source/$newest" "$@"
fi
rm -rf ${DATA}
${BIN}/quorateutl "$@"`;

/** Where a pod that runs once says how it ended. */
const LAST_WORDS = "/run/quorate/last-words";
const MEMBER_TLS = "/etc/quorate/member-tls";
const HERE = "https://127.0.0.1:2379";

/**
 * Fills a member, starts it, and compares the hash of its history with the cluster's at the same
 * revision. Both must have compacted as much: hashes leave out what a compaction removes.
 */
const TEST = `fill() {
${FILL}
}
fill "$@"
ask() { ${BIN}/quoratectl "$@"; }
number() { sed -n 's/.*"'"$1"'":\\([0-9]*\\).*/\\1/p'; }
end() { echo "$2" | tee ${LAST_WORDS}; exit "$1"; }
tls=${MEMBER_TLS}
${BIN}/quorate --name=test --data-dir=${DATA} \
  --listen-client-urls=${HERE} --advertise-client-urls=${HERE} --listen-peer-urls=http://127.0.0.1:2380 \
  --cert-file=$tls/tls.crt --key-file=$tls/tls.key --trusted-ca-file=$tls/ca.crt --client-cert-auth &
member=$!
trap 'kill "$member"' EXIT
until ask --endpoints=${HERE} endpoint hashkv >/dev/null 2>&1; do
  kill -0 "$member" || end 1 "the member that was filled does not start"
  sleep 0.2
done
revision=$(ask --endpoints=${HERE} endpoint hashkv -w json | number hash_revision)
if ! theirs=$(ask endpoint hashkv --rev="$revision" -w json 2>&1); then
  case "$theirs" in
    *compacted*) end 0 "revision $revision is restored; the cluster has compacted it, so that nothing is compared" ;;
    *) end 1 "revision $revision is restored; the cluster does not say its hash: $theirs" ;;
  esac
fi
compacted=$(echo "$theirs" | number compact_revision)
[ "\${compacted:-0}" -le 0 ] || ask --endpoints=${HERE} compaction "$compacted" >/dev/null 2>&1 || true
own=$(ask --endpoints=${HERE} endpoint hashkv --rev="$revision" -w json | number hash)
hash=$(echo "$theirs" | number hash)
[ "$own" = "$hash" ] || end 1 "at revision $revision the restored keys have hash $own, the cluster's $hash"
end 0 "revision $revision is restored, with the cluster's hash $hash"`;

const fillArgs = (path: string, name: string, peer: string, token: string): string[] => [
  `/backup/${path}`,
  `--data-dir=${DATA}`,
  `--name=${name}`,
  `--initial-cluster=${name}=${peer}`,
  `--initial-advertise-peer-urls=${peer}`,
  `--initial-cluster-token=${token}`,
];

/** The pod that tests whether a backup can be restored; of one with a mirror, the mirror's. */
export function restoreTestPod(cluster: QuorateCluster, backup: QuorateBackup): KubeObject {
  const { claim, path, continuous } = backup.spec!;
  const mirror = continuous?.mirror;
  const { name, uid = "" } = backup.metadata;
  return oncePod(cluster, "restore-test", `${name}-test`, {
    command: ["/bin/sh", "-euc", TEST, "test"],
    args: fillArgs(path, "test", "http://127.0.0.1:2380", uid),
    env: [{ name: "POINT", value: "" }, ...clientVariables(cluster), ...mirrorVariables(mirror)],
    mirror,
    claims: [
      { name: "data", claimName: undefined, mountPath: VOLUME },
      { name: "backup", claimName: mirror === undefined ? claim : undefined, mountPath: "/backup" },
    ],
    annotations: {},
    owner: backup,
    restartPolicy: "Never",
    ready: undefined,
  });
}

export const restorePodName = (cluster: string): string => `${cluster}-restore`;

/** The pod that puts the keys of a backup on the claim of a first member, and ends. */
export function restorePod(
  cluster: QuorateCluster,
  { name, zone }: Pick<ClaimView, "name" | "zone">,
  order: RestoreOrder,
): KubeObject {
  const { at, bumpRevision } = order;
  const bump = [`--bump-revision=${bumpRevision}`, "--mark-compacted"];
  const args = [
    ...fillArgs(order.path, name, peerUrl(cluster, name), order.id),
    ...(bumpRevision > 0 ? bump : []),
  ];
  return oncePod(cluster, "restore", restorePodName(cluster.metadata.name), {
    command: ["/bin/sh", "-euc", FILL, "fill"],
    args,
    env: [
      { name: "POINT", value: at === undefined ? "" : `--at=${at}` },
      ...mirrorVariables(order.mirror),
    ],
    mirror: order.mirror,
    zone,
    claims: [
      { name: "data", claimName: name, mountPath: VOLUME },
      { name: "backup", claimName: order.claim, mountPath: "/backup" },
    ],
    annotations: { [RESTORE_ID]: order.id },
    owner: cluster,
    restartPolicy: "Never",
    ready: undefined,
  });
}

export interface PodOrder {
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly claims: readonly {
    readonly name: string;
    /** Undefined for a directory that goes with the pod. */
    readonly claimName: string | undefined;
    readonly mountPath: string;
  }[];
  /** Its secret is mounted. */
  readonly mirror: MirrorSpec | undefined;
  readonly zone?: string | undefined;
  readonly annotations: Readonly<Record<string, string>>;
  readonly owner: KubeObject;
  readonly restartPolicy: "Always" | "Never";
  /** A command that succeeds once the pod does its work. */
  readonly ready: readonly string[] | undefined;
}

/** A pod beside the members, with the cluster's image and root's certificate. */
export function oncePod(
  cluster: QuorateCluster,
  role: "restore" | "restore-test" | "backup",
  name: string,
  order: PodOrder,
): KubeObject {
  const { spec, container } = podTemplate(cluster);
  const { namespace, name: clusterName } = keyOf(cluster);
  const { restartPolicy, owner, annotations, command, args, env, ready, mirror } = order;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      labels: labelsOf(cluster, role),
      annotations,
      ownerReferences: [ownerOf(owner)],
    },
    spec: {
      ...inZone(spec, order.zone),
      restartPolicy,
      containers: [
        {
          name: role,
          image: container.image,
          command,
          args,
          env,
          securityContext: container.securityContext,
          terminationMessagePath: LAST_WORDS,
          ...(ready === undefined
            ? {}
            : { readinessProbe: { exec: { command: ready }, periodSeconds: 2 } }),
          volumeMounts: [
            ...order.claims.map(({ name: volume, mountPath }) => ({ name: volume, mountPath })),
            { name: "tmp", mountPath: "/tmp" },
            { name: "tls", mountPath: TLS, readOnly: true },
            ...(role === "restore-test"
              ? [{ name: "member-tls", mountPath: MEMBER_TLS, readOnly: true }]
              : []),
            ...(mirror === undefined
              ? []
              : [{ name: "mirror", mountPath: MIRROR_SECRET, readOnly: true }]),
          ],
        },
      ],
      volumes: [
        ...(mirror === undefined
          ? []
          : [{ name: "mirror", secret: { secretName: mirror.secret, defaultMode: 0o440 } }]),
        ...order.claims.map(({ name: volume, claimName }) => ({
          name: volume,
          ...(claimName === undefined
            ? { emptyDir: {} }
            : { persistentVolumeClaim: { claimName } }),
        })),
        { name: "tmp", emptyDir: {} },
        { name: "tls", secret: { secretName: leafName(clusterName, "root"), defaultMode: 0o440 } },
        ...(role === "restore-test"
          ? [
              {
                name: "member-tls",
                secret: { secretName: leafName(clusterName, "member"), defaultMode: 0o440 },
              },
            ]
          : []),
      ],
    },
  };
}

/** Variables with which quoratectl reaches the cluster in such a pod. */
export function clientVariables(
  cluster: KubeObject,
): { readonly name: string; readonly value: string }[] {
  const { namespace, name } = keyOf(cluster);
  return [
    { name: "ETCDCTL_ENDPOINTS", value: `https://${clientService(name)}.${namespace}.svc:2379` },
    { name: "ETCDCTL_CACERT", value: `${TLS}/ca.crt` },
    { name: "ETCDCTL_CERT", value: `${TLS}/tls.crt` },
    { name: "ETCDCTL_KEY", value: `${TLS}/tls.key` },
    { name: "QUORATE_BIN", value: BIN },
  ];
}

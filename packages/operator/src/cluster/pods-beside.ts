/**
 * Pods beside the members of a cluster, with its image and root's certificate: they back up, fill
 * the claim of a first member from a backup, and test whether a backup can be restored.
 */
import type { MirrorSpec, QuorateBackup, QuorateCluster, QuorateRestore } from "../base/kinds.ts";
import { type KubeObject, keyOf, ownerOf } from "../base/kube.ts";
import {
  BIN,
  clientService,
  DATA,
  inZone,
  labelsOf,
  leafName,
  peerUrl,
  podTemplate,
  RESTORE_ID,
  TLS,
  VOLUME,
} from "./objects.ts";
import type { ClaimView, Leaf } from "./observed.ts";

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

/** Where scripts find the programs of the image. */
const PROGRAMS = { name: "QUORATE_BIN", value: BIN };

/** The part of a script that sets MIRROR_FLAGS for an encrypted mirror. */
export const SET_MIRROR_FLAGS = `MIRROR_FLAGS=""
[ ! -f ${MIRROR_SECRET}/encryption-key ] || MIRROR_FLAGS="--encryption-key=${MIRROR_SECRET}/encryption-key"`;

const FILL = `source="$1"; shift
${SET_MIRROR_FLAGS}
if [ -n "$MIRROR" ]; then
  "$QUORATE_BIN/quorateutl" backup fetch "$MIRROR" "$source" $MIRROR_FLAGS $POINT
fi
if [ -f "$source" ]; then set -- snapshot restore "$source" "$@"
elif ls "$source"/base-* >/dev/null 2>&1; then set -- backup restore "$source" "$@" $POINT
else
  newest=$(ls "$source" | grep '\\.db$' | sort | tail -n 1)
  [ -n "$newest" ] || { echo "$source has no backup" >&2; exit 1; }
  set -- snapshot restore "$source/$newest" "$@"
fi
rm -rf ${DATA}
"$QUORATE_BIN/quorateutl" "$@"`;

/** Where a pod that runs once says how it ended. */
const LAST_WORDS = "/run/quorate/last-words";
const MEMBER_TLS = "/etc/quorate/member-tls";
/** A restore test that takes longer has failed. */
const MAX_TEST_SECONDS = 6 * 3600;
const HERE = "https://127.0.0.1:2379";

/**
 * Fills a member, starts it, and compares the hash of its history with the cluster's at the same
 * revision. Both must have compacted as much: hashes leave out what a compaction removes. A mirror
 * has its first base a little later than the directory.
 */
const TEST = `tries=60
until /bin/sh -euc "$FILL" fill "$@"; do
  [ "$tries" -gt 0 ] || exit 1
  tries=$((tries - 1))
  sleep 2
  [ -z "$MIRROR" ] || rm -rf "$1"
done
ask() { "$QUORATE_BIN/quoratectl" "$@"; }
here() { ETCDCTL_ENDPOINTS=${HERE} ask "$@"; }
number() { sed -n 's/.*"'"$1"'":\\([0-9]*\\).*/\\1/p'; }
end() { echo "$2" | tee ${LAST_WORDS}; exit "$1"; }
tls=${MEMBER_TLS}
"$QUORATE_BIN/quorate" --name=test --data-dir=${DATA} \
  --listen-client-urls=${HERE} --advertise-client-urls=${HERE} --listen-peer-urls=http://127.0.0.1:2380 \
  --cert-file=$tls/tls.crt --key-file=$tls/tls.key --trusted-ca-file=$tls/ca.crt --client-cert-auth &
member=$!
trap 'kill "$member"' EXIT
until here endpoint hashkv >/dev/null 2>&1; do
  kill -0 "$member" || end 1 "the member that was filled does not start"
  sleep 0.2
done
revision=$(here endpoint hashkv -w json | number hash_revision)
if ! theirs=$(ask endpoint hashkv --rev="$revision" -w json 2>&1); then
  case "$theirs" in
    *compacted*) end 0 "revision $revision is restored; the cluster has compacted it, so that nothing is compared" ;;
    *) end 1 "revision $revision is restored; the cluster does not say its hash: $theirs" ;;
  esac
fi
compacted=$(echo "$theirs" | number compact_revision)
[ "\${compacted:-0}" -le 0 ] || here compaction "$compacted" >/dev/null 2>&1 || true
own=$(here endpoint hashkv --rev="$revision" -w json | number hash)
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

/** Where a backup is, in its claim and in an object store. */
export function placeOf({ spec, status }: QuorateBackup): {
  readonly path: string;
  readonly mirror: MirrorSpec | undefined;
} {
  const { path, continuous } = spec!;
  // One of before the path was changed does not count.
  const ending = status?.directory?.startsWith(path) ? status.directory.slice(path.length) : "";
  const mirror = continuous?.mirror;
  return {
    path: path + ending,
    mirror: mirror && { ...mirror, url: mirror.url.replace(/\/$/, "") + ending },
  };
}

/** The pod that tests whether a backup can be restored; of one with a mirror, the mirror's. */
export function restoreTestPod(cluster: QuorateCluster, backup: QuorateBackup): KubeObject {
  const { claim } = backup.spec!;
  const { path, mirror } = placeOf(backup);
  const { name, uid = "" } = backup.metadata;
  return podBeside(cluster, "restore-test", `${name}-test`, {
    command: ["/bin/sh", "-euc", TEST, "test"],
    args: fillArgs(path, "test", "http://127.0.0.1:2380", uid),
    env: [
      { name: "FILL", value: FILL },
      { name: "POINT", value: "" },
      ...clientVariables(cluster),
      ...mirrorVariables(mirror),
    ],
    mounts: [
      scratchMount("data", VOLUME),
      mirror === undefined ? backupMount(claim) : scratchMount("backup", "/backup"),
      tls(cluster, "member", "member-tls", MEMBER_TLS),
      ...mirrorMounts(mirror),
    ],
    owner: backup,
    maxSeconds: MAX_TEST_SECONDS,
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
  return podBeside(cluster, "restore", restorePodName(cluster.metadata.name), {
    command: ["/bin/sh", "-euc", FILL, "fill"],
    args,
    env: [
      PROGRAMS,
      { name: "POINT", value: at === undefined ? "" : `--at=${at}` },
      ...mirrorVariables(order.mirror),
    ],
    mounts: [
      claimMount("data", name, VOLUME),
      backupMount(order.claim),
      ...mirrorMounts(order.mirror),
    ],
    annotations: { [RESTORE_ID]: order.id },
    owner: cluster,
    zone,
  });
}

/** A volume of a pod, and where it is mounted. */
interface Mount {
  readonly name: string;
  readonly mountPath: string;
  readonly volume: Readonly<
    Partial<Record<"secret" | "persistentVolumeClaim" | "emptyDir", object>>
  >;
}

const tls = (cluster: KubeObject, leaf: Leaf, name: string, mountPath: string): Mount => {
  const secretName = leafName(cluster.metadata.name, leaf);
  return { name, mountPath, volume: { secret: { secretName, defaultMode: 0o440 } } };
};

const claimMount = (name: string, claimName: string, mountPath: string): Mount => ({
  name,
  mountPath,
  volume: { persistentVolumeClaim: { claimName } },
});

/** A directory that goes with the pod. */
const scratchMount = (name: string, mountPath: string): Mount => ({
  name,
  mountPath,
  volume: { emptyDir: {} },
});

/** The directory of a backup, in its claim. */
export const backupMount = (claim: string): Mount => claimMount("backup", claim, "/backup");

/** The secret of a mirror, if there is one. */
export function mirrorMounts(mirror: MirrorSpec | undefined): Mount[] {
  if (mirror === undefined) return [];
  const volume = { secret: { secretName: mirror.secret, defaultMode: 0o440 } };
  return [{ name: "mirror", mountPath: MIRROR_SECRET, volume }];
}

export interface PodOrder {
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly mounts: readonly Mount[];
  readonly owner: KubeObject;
  readonly zone?: string | undefined;
  readonly annotations?: Readonly<Record<string, string>>;
  /** A command that succeeds once the pod does its work; such a pod runs always, others once. */
  readonly ready?: readonly string[];
  /** One that takes longer has failed. */
  readonly maxSeconds?: number;
}

/** A pod beside the members, with the cluster's image and root's certificate. */
export function podBeside(
  cluster: QuorateCluster,
  role: "restore" | "restore-test" | "backup",
  name: string,
  order: PodOrder,
): KubeObject {
  const { spec, container } = podTemplate(cluster);
  const { namespace } = keyOf(cluster);
  const { owner, annotations = {}, command, args, env, ready, maxSeconds, zone } = order;
  const mounts = [...order.mounts, scratchMount("tmp", "/tmp"), tls(cluster, "root", "tls", TLS)];
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
      ...inZone(spec, zone),
      restartPolicy: ready === undefined ? "Never" : "Always",
      ...(maxSeconds === undefined ? {} : { activeDeadlineSeconds: maxSeconds }),
      containers: [
        {
          name: role,
          image: container.image,
          command,
          args,
          env,
          securityContext: container.securityContext,
          terminationMessagePath: LAST_WORDS,
          terminationMessagePolicy: "FallbackToLogsOnError",
          ...(ready && { readinessProbe: { exec: { command: ready }, periodSeconds: 2 } }),
          volumeMounts: mounts.map(({ name: volume, mountPath, volume: { secret } }) => ({
            name: volume,
            mountPath,
            ...(secret && { readOnly: true }),
          })),
        },
      ],
      volumes: mounts.map(({ name: volume, volume: source }) => ({ name: volume, ...source })),
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
    PROGRAMS,
  ];
}

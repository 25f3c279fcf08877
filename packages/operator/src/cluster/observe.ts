/** Looks at a cluster: its objects in Kubernetes, and its members. */

import { quantityNumber } from "@quorate/kube-storage";
import type { QuorateCluster } from "../base/kinds.ts";
import { annotationOf, type Kube, type KubeObject, keyOf, listServed } from "../base/kube.ts";
import type { Credentials, Members, Target } from "../base/members.ts";
import { authorityView, type Certifier, issuedView, leafView, secretText } from "./certificates.ts";
import {
  authorityName,
  CLUSTER_LABEL,
  CLUSTER_UID,
  clientUrl,
  FILLED,
  leafName,
  MEMBER_ID,
  MODE,
  RESTORE_ID,
  SEED,
  STARTED,
  selectorText,
  TEMPLATE,
  ZONE,
} from "./objects.ts";
import {
  type ClaimView,
  DATA_LOST_CODE,
  LEAVES,
  type Observed,
  type PodMode,
  type PodView,
  type Reached,
} from "./observed.ts";
import { restorePodName } from "./pods-beside.ts";

export interface ObserveDeps {
  readonly kube: Kube;
  readonly members: Members;
  readonly certifier: Certifier;
}

interface Ended {
  readonly exitCode?: number;
  readonly message?: string;
}

interface PodStatus {
  readonly phase?: string;
  readonly conditions?: readonly {
    readonly type: string;
    readonly status: string;
    readonly lastTransitionTime?: string;
  }[];
  readonly containerStatuses?: readonly {
    readonly state?: { readonly terminated?: Ended };
    readonly lastState?: { readonly terminated?: Ended };
  }[];
}

export function podView(pod: KubeObject): PodView {
  const { conditions = [], containerStatuses = [], phase = "" } = (pod.status ?? {}) as PodStatus;
  const { metadata } = pod;
  const ready = conditions.find(({ type }) => type === "Ready");
  const sinceText = ready?.lastTransitionTime ?? metadata.creationTimestamp ?? "";
  const isReady = ready?.status === "True";
  const ends = containerStatuses.flatMap(({ state, lastState }) => [state, lastState]);
  return {
    name: metadata.name,
    uid: metadata.uid ?? "",
    mode: (annotationOf(pod, MODE) ?? "run") as PodMode,
    template: annotationOf(pod, TEMPLATE) ?? "",
    isReady,
    sinceMs: Date.parse(sinceText) || 0,
    isTerminating: metadata.deletionTimestamp !== undefined,
    hasLostData: !isReady && ends.some((end) => end?.terminated?.exitCode === DATA_LOST_CODE),
    phase,
    lastWords: ends.find((end) => end?.terminated?.message)?.terminated?.message?.trim() ?? "",
  };
}

interface Claim extends KubeObject {
  readonly spec?: {
    readonly storageClassName?: string;
    readonly resources?: { readonly requests?: { readonly storage?: string } };
  };
  readonly status?: { readonly phase?: string; readonly capacity?: { readonly storage?: string } };
}

function claimView({ status, spec, ...claim }: Claim): ClaimView {
  const { metadata } = claim;
  const capacity = status?.capacity?.storage;
  return {
    name: metadata.name,
    uid: metadata.uid ?? "",
    isLost: status?.phase === "Lost",
    isTerminating: metadata.deletionTimestamp !== undefined,
    isBound: status?.phase === "Bound",
    requestedBytes: quantityNumber(spec?.resources?.requests?.storage ?? "0"),
    capacityBytes: capacity === undefined ? undefined : quantityNumber(capacity),
    memberId: annotationOf(claim, MEMBER_ID),
    hasStarted: annotationOf(claim, STARTED) === "true",
    isSeed: annotationOf(claim, SEED) === "true",
    zone: annotationOf(claim, ZONE),
    restoreId: annotationOf(claim, RESTORE_ID),
    isFilled: annotationOf(claim, FILLED) === "true",
  };
}

/** Whether some of the claims are to grow, and the class of the first of them lets them. */
async function canGrow(
  kube: Kube,
  cluster: QuorateCluster,
  claims: readonly Claim[],
): Promise<boolean> {
  const wanted = quantityNumber(cluster.spec!.storage.size);
  const small = claims.find((claim) => claimView(claim).requestedBytes < wanted);
  const name = small?.spec?.storageClassName ?? "";
  if (name === "") return false;
  const found: (KubeObject & { readonly allowVolumeExpansion?: boolean }) | undefined =
    await kube.get("StorageClass", "", name);
  return found?.allowVolumeExpansion === true;
}

/** The certificate of the user root in its secret. */
export function rootCredentials(secret: KubeObject): Credentials {
  return {
    certPem: secretText(secret, "tls.crt"),
    keyPem: secretText(secret, "tls.key"),
    trustedPem: secretText(secret, "ca.crt"),
  };
}

/** How the voters of a cluster are called; undefined before there are any. */
export async function targetOf(kube: Kube, cluster: QuorateCluster): Promise<Target | undefined> {
  const { namespace, name } = keyOf(cluster);
  const root = await kube.get("Secret", namespace, leafName(name, "root"));
  const voters = (cluster.status?.memberList ?? []).filter(({ role }) => role !== "learner");
  if (root === undefined || voters.length === 0) return undefined;
  const urls = new Map(voters.map((one) => [one.name, clientUrl(cluster, one.name)]));
  return { urls, credentials: rootCredentials(root) };
}

/** Looks at everything once. Rejects where the API server does not respond. */
export async function observe(
  cluster: QuorateCluster,
  nowMs: number,
  { kube, members, certifier }: ObserveDeps,
): Promise<Observed & { readonly target: Target | undefined }> {
  const { namespace, name } = keyOf(cluster);
  const uid = cluster.metadata.uid ?? "";
  const own = `${CLUSTER_LABEL}=${name}`;
  const { issuerRef } = cluster.spec!.certificates;
  const [pods, restorer, claims, secrets, ...shared] = await Promise.all([
    kube.list("Pod", namespace, selectorText(name, "member")),
    kube.get("Pod", namespace, restorePodName(name)),
    kube.list<Claim>("PersistentVolumeClaim", namespace, selectorText(name, "member")),
    kube.list("Secret", namespace, own),
    kube.list("Service", namespace, own),
    kube.list("PodDisruptionBudget", namespace, own),
    listServed(kube, "PodMonitor", namespace, own),
    issuerRef === undefined ? undefined : listServed(kube, "Certificate", namespace, own),
  ]);
  const [, , monitors, certificates] = shared;
  const isOwn = (claim: KubeObject): boolean => annotationOf(claim, CLUSTER_UID) === uid;
  const secretOf = (wanted: string): KubeObject | undefined =>
    secrets.find(({ metadata }) => metadata.name === wanted);
  const authority = secretOf(authorityName(name));
  const leaves = LEAVES.map((leaf) => {
    const secret = secretOf(leafName(name, leaf));
    const view =
      issuerRef === undefined
        ? leafView(secret, authority, certifier)
        : issuedView(secret, certifier);
    return [leaf, view] as const;
  });
  const podViews = pods.map(podView);
  const root = secretOf(leafName(name, "root"));
  const credentials = root === undefined ? undefined : rootCredentials(root);
  const reached = new Map<string, Reached>();
  if (credentials !== undefined) {
    const urls = new Map(podViews.map((pod) => [pod.name, clientUrl(cluster, pod.name)]));
    const looks = podViews.map(async (pod) => {
      const found = await members.reach({ urls, credentials }, pod.name);
      if (found !== undefined) reached.set(pod.name, found);
    });
    await Promise.all(looks);
  }
  // Learners and members that are away would only refuse.
  const voters = [...reached].filter(([, { isLearner }]) => !isLearner);
  const target =
    credentials === undefined || voters.length === 0
      ? undefined
      : { urls: new Map(voters.map(([pod]) => [pod, clientUrl(cluster, pod)])), credentials };
  const membership = target === undefined ? undefined : await members.membership(target);
  return {
    nowMs,
    cluster,
    pods: new Map(podViews.map((pod) => [pod.name, pod])),
    claims: new Map(claims.filter(isOwn).map((one) => [one.metadata.name, claimView(one)])),
    canGrow: await canGrow(kube, cluster, claims.filter(isOwn)),
    strangers: claims.filter((one) => !isOwn(one)).map(({ metadata }) => metadata.name),
    restorePod: restorer === undefined ? undefined : podView(restorer),
    shared: new Map(
      shared.flatMap((list = []) =>
        list.map((one) => [`${one.kind}/${one.metadata.name}`, one] as const),
      ),
    ),
    served: new Set([
      ...(monitors === undefined ? [] : (["PodMonitor"] as const)),
      ...(certificates === undefined ? [] : (["Certificate"] as const)),
    ]),
    authority: authorityView(authority, certifier),
    leaves: Object.fromEntries(leaves.filter(([, view]) => view !== undefined)),
    members: membership?.members,
    clusterId: membership?.clusterId ?? "",
    reached,
    asksForUsers: membership?.asksForUsers,
    target,
  };
}

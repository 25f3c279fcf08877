/**
 * Kinds for clusters with nodes, as plain stored objects: metadata, defaults and the division into
 * spec and status, but no other rules. Tests of controllers create them. A further kind is one
 * entry, if its types are in the tables.
 */
import type { GroupVersionKind } from "../meta/kinds.ts";
import type { KubeObject } from "../meta/object.ts";
import type { KindSource } from "../registry/kind-source.ts";
import { plainStrategy, statusStrategyOf } from "../registry/plain-strategy.ts";
import type { ResourceSpec } from "../registry/resource-spec.ts";
import type { Strategy } from "../registry/strategy.ts";
import { NAME_AND_AGE } from "../registry/table.ts";

interface Entry {
  readonly group: string;
  readonly kind: string;
  /** The plural. */
  readonly resource: string;
  readonly shortNames: readonly string[];
  /** In kubectl's category "all". */
  readonly inAll: boolean;
  readonly clusterWide: boolean;
  /** Below the root of the store, where that is not the plural. */
  readonly prefix: string;
  readonly hasStatus: boolean;
  readonly countsGenerations: boolean;
  /** Has /scale, at spec.replicas. */
  readonly hasScale: boolean;
  /** Paths of selectable fields. */
  readonly fields: readonly string[];
}

function entry(
  group: string,
  resource: string,
  kind: string,
  shortNames: string,
  own: Partial<Entry> = {},
): Entry {
  return {
    ...{ group, resource, kind, prefix: resource, inAll: false, clusterWide: false },
    ...{ hasStatus: true, countsGenerations: false, hasScale: false, fields: [] },
    shortNames: shortNames === "" ? [] : shortNames.split(","),
    ...own,
  };
}

const SCALED = { inAll: true, countsGenerations: true, hasScale: true };
const CLUSTER = { clusterWide: true };
const NO_STATUS = { hasStatus: false };

const ENTRIES: readonly Entry[] = [
  entry("", "pods", "Pod", "po", {
    inAll: true,
    countsGenerations: true,
    fields: [
      "spec.nodeName",
      "spec.restartPolicy",
      "spec.schedulerName",
      "spec.serviceAccountName",
      "status.phase",
      "status.podIP",
      "status.nominatedNodeName",
    ],
  }),
  entry("", "services", "Service", "svc", {
    inAll: true,
    prefix: "services/specs",
    fields: ["spec.clusterIP", "spec.type"],
  }),
  entry("", "endpoints", "Endpoints", "ep", { ...NO_STATUS, prefix: "services/endpoints" }),
  entry("", "nodes", "Node", "no", {
    ...CLUSTER,
    prefix: "minions",
    fields: ["spec.unschedulable"],
  }),
  entry("", "persistentvolumes", "PersistentVolume", "pv", CLUSTER),
  entry("", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc"),
  entry("", "replicationcontrollers", "ReplicationController", "rc", {
    ...SCALED,
    prefix: "controllers",
    fields: ["status.replicas"],
  }),
  entry("", "podtemplates", "PodTemplate", "", { ...NO_STATUS, countsGenerations: true }),
  entry("", "limitranges", "LimitRange", "limits", NO_STATUS),
  entry("", "resourcequotas", "ResourceQuota", "quota"),
  entry("apps", "deployments", "Deployment", "deploy", SCALED),
  entry("apps", "replicasets", "ReplicaSet", "rs", { ...SCALED, fields: ["status.replicas"] }),
  entry("apps", "statefulsets", "StatefulSet", "sts", SCALED),
  entry("apps", "daemonsets", "DaemonSet", "ds", { inAll: true, countsGenerations: true }),
  entry("apps", "controllerrevisions", "ControllerRevision", "", NO_STATUS),
  entry("batch", "jobs", "Job", "", {
    inAll: true,
    countsGenerations: true,
    fields: ["status.successful"],
  }),
  entry("batch", "cronjobs", "CronJob", "cj", { inAll: true, countsGenerations: true }),
  entry("networking.k8s.io", "ingresses", "Ingress", "ing", {
    prefix: "ingress",
    countsGenerations: true,
  }),
  entry("networking.k8s.io", "ingressclasses", "IngressClass", "", {
    ...CLUSTER,
    ...NO_STATUS,
    countsGenerations: true,
  }),
  entry("networking.k8s.io", "networkpolicies", "NetworkPolicy", "netpol", {
    ...NO_STATUS,
    countsGenerations: true,
  }),
  entry("discovery.k8s.io", "endpointslices", "EndpointSlice", "", {
    ...NO_STATUS,
    countsGenerations: true,
  }),
  entry("policy", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", {
    countsGenerations: true,
  }),
  entry("scheduling.k8s.io", "priorityclasses", "PriorityClass", "pc", {
    ...CLUSTER,
    ...NO_STATUS,
  }),
  entry("storage.k8s.io", "storageclasses", "StorageClass", "sc", { ...CLUSTER, ...NO_STATUS }),
];

/** The declarations of all of them. @param sourceOf kindSource of the codecs */
export function workloadSpecs(
  sourceOf: (group: string, version: string, kind: string) => KindSource,
): ResourceSpec[] {
  return ENTRIES.map((each) => specOf(each, sourceOf(each.group, "v1", each.kind)));
}

function specOf(each: Entry, source: KindSource): ResourceSpec {
  const { kind, codec } = source;
  const { resource, shortNames, inAll, hasStatus, hasScale, fields, prefix } = each;
  const namespaced = !each.clusterWide;
  const strategy = strategyOf(each, kind, namespaced);
  return {
    ...{ kind, resource, singular: each.kind.toLowerCase(), shortNames, namespaced, codec },
    categories: inAll ? ["all"] : [],
    storagePrefix: prefix,
    get schema() {
      return source.schema;
    },
    strategy,
    table: NAME_AND_AGE,
    ...(hasStatus ? { statusStrategy: statusStrategyOf(strategy) } : {}),
    ...(hasScale
      ? { scale: { specReplicas: ".spec.replicas", statusReplicas: ".status.replicas" } }
      : {}),
    ...(fields.length > 0
      ? {
          selectableFieldNames: fields,
          selectableFields: (object) =>
            Object.fromEntries(fields.map((path) => [path, fieldAt(object, path)])),
        }
      : {}),
  };
}

/** A selectable field as a text; "" where it is absent. */
function fieldAt(object: KubeObject, path: string): string {
  let value: unknown = object;
  for (const step of path.split("."))
    value = (value as Record<string, unknown> | undefined)?.[step];
  return value === undefined || value === null ? "" : String(value);
}

function strategyOf(each: Entry, kind: GroupVersionKind, namespaced: boolean): Strategy {
  const { hasStatus, countsGenerations } = each;
  const plain = plainStrategy({ kind, namespaced, hasStatus, countsGenerations });
  if (kind.kind !== "Pod") return plain;
  return {
    ...plain,
    prepareForCreate: (ctx, object) => ({
      ...plain.prepareForCreate(ctx, object),
      status: { phase: "Pending" },
    }),
    gracePeriodSeconds,
  };
}

interface PodState {
  readonly spec?: { readonly nodeName?: string; readonly terminationGracePeriodSeconds?: number };
  readonly status?: { readonly phase?: string };
}

/** A pod that no node runs, or that has ended, is deleted at once (registry/core/pod). */
function gracePeriodSeconds(object: KubeObject, requested: number | undefined): number {
  const { spec, status } = object as unknown as PodState;
  const hasEnded = status?.phase === "Succeeded" || status?.phase === "Failed";
  if ((spec?.nodeName ?? "") === "" || hasEnded) return 0;
  return requested ?? spec?.terminationGracePeriodSeconds ?? 30;
}

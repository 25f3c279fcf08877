/**
 * Built-in kinds that have all in tables: the schema's types and defaults, metadata, rules, /status
 * and /scale. Nothing here starts containers; controllers and their tests use these kinds.
 */
import {
  builtinSpec,
  DEFAULT_TABLE,
  type GroupVersionKind,
  type KindSource,
  type KubeObject,
  NAME_AND_AGE,
  nameIsDnsLabel,
  nameIsPathSegment,
  plainStrategy,
  type ResourceSpec,
  type StoreHooks,
  type Strategy,
  semanticEqual,
  statusStrategyOf,
  withGeneration,
  withMetadata,
} from "@quorate/kube-storage";
import { SYSTEM_USER } from "../informers/system-context.ts";
import { apiServices, apiServiceTable } from "./api-services.ts";
import { autoscalersV1 } from "./autoscalers.ts";
import { claimStrategy } from "./claims.ts";
import {
  claimTable,
  disruptionBudgetTable,
  ingressClassTable,
  ingressTable,
  migrationTable,
  networkPolicyTable,
  podCertificateTable,
  podTemplateTable,
  priorityClassTable,
  quotaTable,
  revisionTable,
  storageClassTable,
  trustBundleTable,
  volumeTable,
} from "./cluster-tables.ts";
import { podGraceSeconds, podTable } from "./pods.ts";
import { withGeneratedSelector } from "./rules/jobs.ts";
import { KIND_RULES } from "./rules/kinds.ts";
import { podErrorsOf } from "./rules/pod-spec.ts";
import { isCanonicalIp } from "./rules/texts.ts";
import { serviceStrategy } from "./services.ts";
import { signingRequests, withApproval, withSubresources } from "./signing-requests.ts";
import { fieldOf } from "./workload-fields.ts";
import {
  cronJobTable,
  daemonSetTable,
  deploymentTable,
  jobTable,
  replicaSetTable,
  serviceTable,
  statefulSetTable,
} from "./workload-tables.ts";

interface PlainKind {
  readonly group: string;
  /** Default: "v1". */
  readonly version?: string;
  readonly kind: string;
  readonly plural: string;
  readonly short?: readonly string[];
  /** In the category "all". */
  readonly isInAll?: boolean;
  readonly isClusterScoped?: boolean;
  readonly hasStatus?: boolean;
  readonly countsGenerations?: boolean;
  readonly hasScale?: boolean;
  /** Below the root, where that is not the plural. */
  readonly prefix?: string;
  readonly more?: Partial<ResourceSpec>;
}

const SCALE = {
  specReplicas: ".spec.replicas",
  statusReplicas: ".status.replicas",
  labelSelector: ".spec.selector",
};

/**
 * The fields that selectors may name.
 * @param others those that are no texts, with what they are where an object does not have them
 */
function fieldsOf(
  texts: readonly string[],
  others: Readonly<Record<string, string>> = {},
): Partial<ResourceSpec> {
  const names = [...texts, ...Object.keys(others)];
  const read = (object: KubeObject, name: string): string => {
    const path = name === "status.successful" ? "status.succeeded" : name;
    let value: unknown = object;
    for (const part of path.split("."))
      value = (value as Record<string, unknown> | undefined)?.[part];
    return value === undefined || value === null ? (others[name] ?? "") : String(value);
  };
  return {
    selectableFieldNames: names,
    selectableFields: (object) =>
      Object.fromEntries(names.map((name) => [name, read(object, name)])),
  };
}

const WORKLOAD = { isInAll: true, hasStatus: true, countsGenerations: true } as const;
const RETURNS_OBJECT = { returnsDeletedObject: true } as const;

/** What kinds of the short table below have besides. */
const MORE: Readonly<Record<string, Partial<PlainKind>>> = {
  APIService: {
    prefix: "apiregistration.k8s.io/apiservices",
    more: {
      categories: ["api-extensions"],
      nameRule: nameIsPathSegment,
      table: apiServiceTable,
    },
  },
  CertificateSigningRequest: { more: fieldsOf(["spec.signerName"]) },
  ClusterTrustBundle: {
    // The rules say more: bundles of signers have ":" in their names.
    more: {
      ...fieldsOf(["spec.signerName"]),
      nameRule: nameIsPathSegment,
      table: trustBundleTable,
    },
  },
  PodCertificateRequest: {
    more: {
      ...fieldsOf(["spec.signerName", "spec.podName", "spec.nodeName"]),
      table: podCertificateTable,
    },
  },
  StorageVersionMigration: { more: { table: migrationTable } },
  IPAddress: { more: { nameRule: isCanonicalIp } },
  HorizontalPodAutoscaler: { version: "v2", isInAll: true },
  ResourceSlice: { more: fieldsOf(["spec.nodeName", "spec.driver", "spec.pool.name"]) },
};

const KINDS: readonly PlainKind[] = [
  {
    group: "",
    kind: "Pod",
    plural: "pods",
    short: ["po"],
    ...WORKLOAD,
    more: {
      ...RETURNS_OBJECT,
      table: podTable,
      ...fieldsOf(
        [
          "spec.nodeName",
          "spec.restartPolicy",
          "spec.schedulerName",
          "spec.serviceAccountName",
          "status.phase",
          "status.podIP",
          "status.podIPs",
          "status.nominatedNodeName",
        ],
        { "spec.hostNetwork": "false" },
      ),
    },
  },
  {
    group: "",
    kind: "Service",
    plural: "services",
    short: ["svc"],
    isInAll: true,
    hasStatus: true,
    prefix: "services/specs",
    more: {
      ...RETURNS_OBJECT,
      nameRule: nameIsDnsLabel,
      table: serviceTable,
      ...fieldsOf(["spec.clusterIP", "spec.type"]),
    },
  },
  {
    group: "",
    kind: "Endpoints",
    plural: "endpoints",
    short: ["ep"],
    prefix: "services/endpoints",
  },
  {
    group: "",
    kind: "Node",
    plural: "nodes",
    short: ["no"],
    isClusterScoped: true,
    hasStatus: true,
    prefix: "minions",
    more: fieldsOf([], { "spec.unschedulable": "false" }),
  },
  {
    group: "",
    kind: "PersistentVolume",
    plural: "persistentvolumes",
    short: ["pv"],
    isClusterScoped: true,
    hasStatus: true,
    more: { ...RETURNS_OBJECT, table: volumeTable },
  },
  {
    group: "",
    kind: "PersistentVolumeClaim",
    plural: "persistentvolumeclaims",
    short: ["pvc"],
    hasStatus: true,
    more: { ...RETURNS_OBJECT, table: claimTable },
  },
  {
    group: "",
    kind: "ReplicationController",
    plural: "replicationcontrollers",
    short: ["rc"],
    prefix: "controllers",
    hasScale: true,
    ...WORKLOAD,
    more: {
      garbageCollection: "orphan",
      table: replicaSetTable,
      ...fieldsOf([], { "status.replicas": "0" }),
    },
  },
  {
    group: "",
    kind: "PodTemplate",
    plural: "podtemplates",
    countsGenerations: true,
    more: { ...RETURNS_OBJECT, table: podTemplateTable },
  },
  {
    group: "",
    kind: "LimitRange",
    plural: "limitranges",
    short: ["limits"],
    more: { table: DEFAULT_TABLE },
  },
  {
    group: "",
    kind: "ResourceQuota",
    plural: "resourcequotas",
    short: ["quota"],
    hasStatus: true,
    more: { ...RETURNS_OBJECT, table: quotaTable },
  },
  {
    group: "apps",
    kind: "Deployment",
    plural: "deployments",
    short: ["deploy"],
    hasScale: true,
    ...WORKLOAD,
    more: { table: deploymentTable },
  },
  {
    group: "apps",
    kind: "ReplicaSet",
    plural: "replicasets",
    short: ["rs"],
    hasScale: true,
    ...WORKLOAD,
    more: { table: replicaSetTable },
  },
  {
    group: "apps",
    kind: "StatefulSet",
    plural: "statefulsets",
    short: ["sts"],
    hasScale: true,
    ...WORKLOAD,
    more: { nameRule: nameIsDnsLabel, table: statefulSetTable },
  },
  {
    group: "apps",
    kind: "DaemonSet",
    plural: "daemonsets",
    short: ["ds"],
    ...WORKLOAD,
    more: { table: daemonSetTable },
  },
  {
    group: "apps",
    kind: "ControllerRevision",
    plural: "controllerrevisions",
    more: { table: revisionTable },
  },
  {
    group: "batch",
    kind: "Job",
    plural: "jobs",
    ...WORKLOAD,
    more: {
      garbageCollection: "orphan",
      table: jobTable,
      ...fieldsOf([], { "status.successful": "0" }),
    },
  },
  {
    group: "batch",
    kind: "CronJob",
    plural: "cronjobs",
    short: ["cj"],
    ...WORKLOAD,
    more: { table: cronJobTable },
  },
  {
    group: "networking.k8s.io",
    kind: "Ingress",
    plural: "ingresses",
    short: ["ing"],
    hasStatus: true,
    countsGenerations: true,
    prefix: "ingress",
    more: { table: ingressTable },
  },
  {
    group: "networking.k8s.io",
    kind: "IngressClass",
    plural: "ingressclasses",
    isClusterScoped: true,
    countsGenerations: true,
    more: { table: ingressClassTable },
  },
  {
    group: "networking.k8s.io",
    kind: "NetworkPolicy",
    plural: "networkpolicies",
    short: ["netpol"],
    countsGenerations: true,
    more: { table: networkPolicyTable },
  },
  {
    group: "policy",
    kind: "PodDisruptionBudget",
    plural: "poddisruptionbudgets",
    short: ["pdb"],
    hasStatus: true,
    countsGenerations: true,
    more: { table: disruptionBudgetTable },
  },
  { group: "discovery.k8s.io", kind: "EndpointSlice", plural: "endpointslices" },
  {
    group: "scheduling.k8s.io",
    kind: "PriorityClass",
    plural: "priorityclasses",
    short: ["pc"],
    isClusterScoped: true,
    countsGenerations: true,
    more: { table: priorityClassTable },
  },
  {
    group: "storage.k8s.io",
    kind: "StorageClass",
    plural: "storageclasses",
    short: ["sc"],
    isClusterScoped: true,
    more: { ...RETURNS_OBJECT, table: storageClassTable },
  },
];

/** Kinds of which nothing more needs to be said. */
const STORED: readonly PlainKind[] = (
  [
    ["certificates.k8s.io", "CertificateSigningRequest", "cluster status", "csr"],
    ["certificates.k8s.io", "ClusterTrustBundle", "cluster", ""],
    ["certificates.k8s.io", "PodCertificateRequest", "status", ""],
    ["networking.k8s.io", "IPAddress", "cluster", "ip"],
    ["networking.k8s.io", "ServiceCIDR", "cluster status", ""],
    ["storage.k8s.io", "CSIDriver", "cluster", ""],
    ["storage.k8s.io", "CSINode", "cluster status", ""],
    ["storage.k8s.io", "CSIStorageCapacity", "", ""],
    ["storage.k8s.io", "VolumeAttachment", "cluster status", ""],
    ["storage.k8s.io", "VolumeAttributesClass", "cluster", "vac"],
    ["node.k8s.io", "RuntimeClass", "cluster", ""],
    ["resource.k8s.io", "DeviceClass", "cluster generations", ""],
    ["resource.k8s.io", "DeviceTaintRule", "cluster status generations", ""],
    ["resource.k8s.io", "ResourceClaim", "status", ""],
    ["resource.k8s.io", "ResourceClaimTemplate", "", ""],
    ["resource.k8s.io", "ResourceSlice", "cluster generations", ""],
    ["flowcontrol.apiserver.k8s.io", "FlowSchema", "cluster status generations", ""],
    [
      "flowcontrol.apiserver.k8s.io",
      "PriorityLevelConfiguration",
      "cluster status generations",
      "",
    ],
    ["storagemigration.k8s.io", "StorageVersionMigration", "cluster status", ""],
    ["apiregistration.k8s.io", "APIService", "cluster status", ""],
    ["autoscaling", "HorizontalPodAutoscaler", "status", "hpa"],
  ] as const
).map(([group, kind, words, short]) => ({
  group,
  kind,
  plural: pluralOf(kind),
  ...(short === "" ? {} : { short: [short] }),
  isClusterScoped: words.includes("cluster"),
  hasStatus: words.includes("status"),
  countsGenerations: words.includes("generations"),
  ...MORE[kind],
}));

function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  if (name.endsWith("y")) return `${name.slice(0, -1)}ies`;
  return /(?:s|x)$/.test(name) ? `${name}es` : `${name}s`;
}

/** The little that some kinds add. */
const OWN_RULES: Readonly<Record<string, (strategy: Strategy) => Strategy>> = {
  Pod: (strategy) => ({ ...pendingPods(strategy), gracePeriodSeconds: podGraceSeconds }),
  APIService: apiServices,
  DaemonSet: templateGenerations,
  Job: (strategy) => ({
    ...strategy,
    prepareForCreate: (ctx, object) =>
      withGeneratedSelector(strategy.prepareForCreate(ctx, object)),
  }),
  CertificateSigningRequest: signingRequests,
  // A node that registers itself says at once how it is.
  Node: (strategy) => ({ ...strategy, prepareForCreate: (_ctx, object) => object }),
  PersistentVolumeClaim: claimStrategy,
  Service: serviceStrategy,
};

function specOf(plain: PlainKind, source: KindSource, hooks: StoreHooks | undefined): ResourceSpec {
  const { hasStatus = false, countsGenerations = false } = plain;
  const { kind } = source;
  const namespaced = plain.isClusterScoped !== true;
  const options = { kind, namespaced, hasStatus, countsGenerations };
  const rules = KIND_RULES.get(plain.kind);
  const base = plainStrategy(
    options,
    rules && {
      // The server's own writes do what no client may: bind pods, or name a loopback address.
      validate: ({ user }, object) => (user === SYSTEM_USER ? [] : rules.create(object)),
      validateUpdate: ({ user }, object, old) =>
        user === SYSTEM_USER ? [] : rules.update(object, old),
    },
  );
  const strategy = OWN_RULES[plain.kind]?.(base) ?? base;
  return builtinSpec(source, plain.plural, {
    singular: plain.kind.toLowerCase(),
    shortNames: plain.short ?? [],
    categories: plain.isInAll === true ? ["all"] : [],
    namespaced,
    storagePrefix: plain.prefix ?? plain.plural,
    strategy,
    ...(hasStatus ? { statusStrategy: statusStrategy(plain.kind, strategy) } : {}),
    ...(plain.hasScale === true ? { scale: SCALE } : {}),
    table: NAME_AND_AGE,
    ...(hooks && { hooks }),
    ...plain.more,
  });
}

/** What /status leaves as it is of the metadata of some kinds. */
const KEPT_METADATA: Readonly<Record<string, "labels" | "ownerReferences">> = {
  Deployment: "labels",
  Pod: "ownerReferences",
};

function statusStrategy(kind: string, strategy: Strategy): Strategy {
  const plain = statusStrategyOf(strategy);
  const field = Object.hasOwn(KEPT_METADATA, kind) ? KEPT_METADATA[kind] : undefined;
  if (field === undefined) return plain;
  return {
    ...plain,
    resetFields: { "f:spec": {}, "f:metadata": { [`f:${field}`]: {} } },
    prepareForUpdate: (ctx, object, old) =>
      withMetadata(plain.prepareForUpdate(ctx, object, old), { [field]: old.metadata[field] }),
  };
}

/** All of these kinds, as kube-apiserver serves them. @param services gives them addresses */
export function plainKinds(
  sourceOf: (kind: GroupVersionKind) => KindSource,
  services?: StoreHooks,
): ResourceSpec[] {
  return [...KINDS, ...STORED].flatMap((plain) => {
    const { group, version = "v1", kind } = plain;
    const hooks = kind === "Service" ? services : undefined;
    const spec = specOf(plain, sourceOf({ group, version, kind }), hooks);
    if (kind === "CertificateSigningRequest") return [withApproval(spec)];
    if (kind === "HorizontalPodAutoscaler") return [spec, autoscalersV1(spec)];
    return [kind === "Pod" ? withSubresources(spec, () => podStrategies(spec.strategy)) : spec];
  });
}

/** The endpoints of a pod that change a part of its spec (kubernetes: registry/core/pod). */
function podStrategies(strategy: Strategy): Readonly<Record<string, Strategy>> {
  type Containers = readonly { readonly name?: string; readonly resources?: unknown }[];
  const changing = (change: (spec: Fields, old: Fields) => Fields): Strategy => ({
    ...strategy,
    prepareForUpdate(_ctx, object, old) {
      const spec = change((object["spec"] ?? {}) as Fields, (old["spec"] ?? {}) as Fields);
      return withGeneration({ ...old, metadata: object.metadata, spec }, old);
    },
    validateUpdate: (_ctx, object) => podErrorsOf(object),
  });
  // A list that is null in the request is none.
  const resized = (
    present: Containers | null | undefined,
    before: Containers | null | undefined,
  ): Containers =>
    (before ?? []).map((one) => {
      const { resources } = (present ?? []).find(({ name }) => name === one.name) ?? one;
      return resources === undefined ? one : { ...one, resources };
    });
  return {
    ephemeralcontainers: changing(({ ephemeralContainers }, old) => ({
      ...old,
      ...(ephemeralContainers === undefined ? {} : { ephemeralContainers }),
    })),
    resize: changing(({ containers }, old) => ({
      ...old,
      containers: resized(containers as Containers | null, old["containers"] as Containers | null),
    })),
  };
}

type Fields = Readonly<Record<string, unknown>>;

type Quantities = Readonly<Record<string, string>>;

interface PodContainer {
  readonly resources?: { readonly limits?: Quantities; readonly requests?: Quantities };
}

const COUNTED = ["cpu", "memory"] as const;

/** The quantity, or undefined for none and for zero. Decoding has made it canonical. */
function amount(quantities: Quantities | undefined, name: string): string | undefined {
  const quantity = quantities?.[name];
  return quantity === "0" ? undefined : quantity;
}

/**
 * The status that a new pod begins with: its phase, and its class of service, which follows from
 * what its containers ask for (kubernetes: registry/core/pod/strategy.go, apis/core/v1/helper/qos).
 * Guaranteed: each limit is there and requested. BestEffort: there is neither. Else Burstable.
 */
export function qosClassOf(pod: KubeObject): string {
  const containers = [
    ...fieldOf<readonly PodContainer[]>(pod, "spec", "containers", []),
    ...fieldOf<readonly PodContainer[]>(pod, "spec", "initContainers", []),
  ];
  let isAny = false;
  let areAllGuaranteed = true;
  for (const { resources } of containers) {
    for (const name of COUNTED) {
      const limit = amount(resources?.limits, name);
      const request = amount(resources?.requests, name);
      if (limit !== undefined || request !== undefined) isAny = true;
      if (limit === undefined || limit !== request) areAllGuaranteed = false;
    }
  }
  if (!isAny) return "BestEffort";
  return areAllGuaranteed ? "Guaranteed" : "Burstable";
}

/** The strategy, with the first status of a pod. */
function pendingPods(strategy: Strategy): Strategy {
  return {
    ...strategy,
    prepareForCreate(ctx, object) {
      const prepared = strategy.prepareForCreate(ctx, object);
      return { ...prepared, status: { phase: "Pending", qosClass: qosClassOf(prepared) } };
    },
  };
}

const ANNOTATION = "deprecated.daemonset.template.generation";

function withCount(object: KubeObject, count: number): KubeObject {
  const annotations = { ...object.metadata.annotations, [ANNOTATION]: String(count) };
  return withMetadata(object, { annotations });
}

/**
 * DaemonSets count the changes of their template in an annotation (registry/apps/daemonset). The
 * strategy, with the annotation kept by the server.
 */
function templateGenerations(strategy: Strategy): Strategy {
  return {
    ...strategy,
    prepareForCreate: (ctx, object) => withCount(strategy.prepareForCreate(ctx, object), 1),
    prepareForUpdate(ctx, object, old) {
      const before = Number(old.metadata.annotations?.[ANNOTATION] ?? "0");
      const template = (of: KubeObject): unknown => fieldOf(of, "spec", "template", undefined);
      const same = semanticEqual(template(object), template(old));
      const prepared = strategy.prepareForUpdate(ctx, object, old);
      return withCount(prepared, same ? before : before + 1);
    },
  };
}

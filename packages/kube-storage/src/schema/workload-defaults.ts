/**
 * Defaults of kinds for clusters with nodes (kubernetes: pkg/apis/{core,apps,batch,networking,
 * discovery,storage,scheduling}/v1/defaults.go).
 */

import type { Amounts } from "./amounts.ts";
import { type Defaulter, type FieldValues, type MutableObject, sortedMap } from "./maps.ts";
import { type AskingPod, OF_WHOLE_PODS, sumOf } from "./pod-amounts.ts";

/** Sets fields that are absent. */
function presets(values: Readonly<Record<string, unknown>>): Defaulter {
  return (fields) => {
    for (const [field, value] of Object.entries(values))
      fields.setMissing(field, typeof value === "object" ? { ...value } : value);
  };
}

/** One field that is an object, with its fields preset. */
function within(field: string, set: (object: MutableObject) => void): Defaulter {
  return (fields) => {
    const object = { ...(fields.get(field) as MutableObject | undefined) };
    set(object);
    fields.set(field, object);
  };
}

/** A registry, a path in lower case, and a tag. */
const IMAGE =
  /^(?:[\w.-]+(?::\d+)?\/)?[a-z\d]+(?:[._-]+[a-z\d]+)*(?:\/[a-z\d]+(?:[._-]+[a-z\d]+)*)*(?::([\w.-]+))?$/;

/** Images without a tag are the latest; ones with a digest, or without a name, are not. */
function isLatest(image: string): boolean {
  const match = IMAGE.exec(image);
  return match !== null && (match[1] ?? "latest") === "latest";
}

function pullPolicyOf(image: unknown): string {
  return isLatest(image as string) ? "Always" : "IfNotPresent";
}

function container(fields: FieldValues): void {
  fields.setMissing("imagePullPolicy", pullPolicyOf(fields.get("image")));
  fields.setMissing("terminationMessagePath", "/dev/termination-log");
  fields.setMissing("terminationMessagePolicy", "File");
}

function podSpec(fields: FieldValues): void {
  presets({
    dnsPolicy: "ClusterFirst",
    restartPolicy: "Always",
    securityContext: {},
    terminationGracePeriodSeconds: 30,
    schedulerName: "default-scheduler",
  })(fields);
  // The second name is the one of old versions.
  fields.setMissing("serviceAccountName", fields.get("serviceAccount"));
  fields.set("serviceAccount", fields.get("serviceAccountName"));
}

interface Container {
  readonly resources?: { readonly limits?: MutableObject; readonly requests?: MutableObject };
  readonly ports?: readonly {
    readonly containerPort: number;
    readonly hostPort?: number | undefined;
  }[];
}

/** A container of a pod: what it asks for at least is what it may use, unless it says so. */
function podContainer(one: Container, hostNetwork: boolean): Container {
  const { limits, requests } = one.resources ?? {};
  return {
    ...one,
    ...(limits === undefined
      ? {}
      : { resources: { ...one.resources, requests: sortedMap({ ...limits, ...requests }) } }),
    ...(hostNetwork && one.ports !== undefined
      ? {
          ports: one.ports.map((port) => ({
            ...port,
            hostPort: port.hostPort ?? (port.containerPort || undefined),
          })),
        }
      : {}),
  };
}

/** What a whole pod may use, and asks for at least: what it does not say follows from its parts. */
function wholeOf(spec: AskingPod): AskingPod["resources"] {
  const { resources = {} } = spec;
  const limits: Record<string, string> = { ...resources.limits };
  const requests: Record<string, string> = { ...resources.requests };
  const parts = (of: "limits" | "requests"): [string, string][] =>
    Object.entries(sumOf({ ...spec, resources: {} }, of));
  if (Object.keys(limits).length + Object.keys(requests).length > 0)
    for (const [name, amount] of parts("limits"))
      if (name.startsWith("hugepages-") && !(name in requests)) limits[name] ??= amount;
  if (Object.keys(limits).length === 0) return resources;
  for (const [name, amount] of parts("requests"))
    if (name === "cpu" || name === "memory") requests[name] ??= amount;
  for (const [name, amount] of Object.entries(limits))
    if (OF_WHOLE_PODS.test(name)) requests[name] ??= amount;
  const asked: { limits: Amounts; requests?: Amounts } = { limits: sortedMap(limits) as Amounts };
  if (Object.keys(requests).length > 0) asked.requests = sortedMap(requests) as Amounts;
  return { ...asked, ...resources, ...asked };
}

function pod(fields: FieldValues): void {
  const spec = fields.get("spec") as MutableObject;
  const changed: MutableObject = {
    ...spec,
    enableServiceLinks: spec["enableServiceLinks"] ?? true,
  };
  for (const field of ["initContainers", "containers"])
    if (Array.isArray(spec[field]))
      changed[field] = (spec[field] as Container[]).map((one) =>
        podContainer(one, spec["hostNetwork"] === true),
      );
  if (spec["resources"] !== undefined) changed["resources"] = wholeOf(changed as AskingPod);
  fields.set("spec", changed);
}

/** The first of a list is in a field of its own too; where they differ, that field counts. */
function firstOf<T>(
  fields: FieldValues,
  single: string,
  list: string,
  wrap: (text: string) => T,
  unwrap: (item: T) => string,
): void {
  const text = fields.get(single) as string;
  const [first] = (fields.get(list) ?? []) as readonly T[];
  const listed = first === undefined ? undefined : unwrap(first);
  if (text !== "" && listed !== text) fields.set(list, [wrap(text)]);
  else if (listed !== undefined) fields.set(single, listed);
}

function podStatus(fields: FieldValues): void {
  firstOf(
    fields,
    "podIP",
    "podIPs",
    (ip) => ({ ip }),
    (item) => item.ip,
  );
}

function nodeSpec(fields: FieldValues): void {
  firstOf(
    fields,
    "podCIDR",
    "podCIDRs",
    (text) => text,
    (item) => item,
  );
}

/** A volume without a source is an empty directory. */
function volume(fields: FieldValues): void {
  if (fields.names.every((name) => name === "name" || fields.get(name) === undefined))
    fields.set("emptyDir", {});
}

interface Port {
  readonly port: number;
  readonly targetPort: string | number;
}

function serviceSpec(fields: FieldValues): void {
  fields.setMissing("sessionAffinity", "None");
  const affinity = fields.get("sessionAffinity");
  const config = fields.get("sessionAffinityConfig") as
    | { clientIP?: { timeoutSeconds?: number } }
    | undefined;
  if (affinity === "None") fields.set("sessionAffinityConfig", undefined);
  if (affinity === "ClientIP" && config?.clientIP?.timeoutSeconds === undefined)
    fields.set("sessionAffinityConfig", { clientIP: { timeoutSeconds: 10_800 } });
  fields.setMissing("type", "ClusterIP");
  const type = fields.get("type") as string;
  const ports = fields.get("ports") as readonly Port[] | undefined;
  if (ports !== undefined)
    fields.set(
      "ports",
      ports.map((each) => ({ ...each, targetPort: each.targetPort || each.port })),
    );
  const isLoadBalancer = type === "LoadBalancer";
  const hasExternalIps = type === "ClusterIP" && fields.get("externalIPs") !== undefined;
  if (isLoadBalancer || type === "NodePort" || hasExternalIps)
    fields.setMissing("externalTrafficPolicy", "Cluster");
  if (isLoadBalancer || type === "NodePort" || type === "ClusterIP")
    fields.setMissing("internalTrafficPolicy", "Cluster");
  if (isLoadBalancer) fields.setMissing("allocateLoadBalancerNodePorts", true);
}

/** The labels of the template stand for those of the object. */
function labelsFromTemplate(fields: FieldValues, template: unknown): MutableObject | undefined {
  const { labels } =
    (template as { metadata?: { labels?: MutableObject } } | undefined)?.metadata ?? {};
  const metadata = fields.get("metadata") as MutableObject;
  if (labels !== undefined && metadata["labels"] === undefined)
    fields.set("metadata", { ...metadata, labels });
  return labels;
}

function replicationController(fields: FieldValues): void {
  const spec = fields.get("spec") as MutableObject;
  const labels = labelsFromTemplate(fields, spec["template"]);
  if (labels !== undefined && spec["selector"] === undefined)
    fields.set("spec", { ...spec, selector: labels });
}

function job(fields: FieldValues): void {
  labelsFromTemplate(fields, (fields.get("spec") as MutableObject)["template"]);
  within("spec", (spec) => {
    if (spec["parallelism"] === undefined) spec["completions"] ??= 1;
    spec["parallelism"] ??= 1;
    spec["backoffLimit"] ??= spec["backoffLimitPerIndex"] === undefined ? 6 : 2 ** 31 - 1;
    spec["completionMode"] ??= "NonIndexed";
    spec["suspend"] ??= false;
    spec["podReplacementPolicy"] ??=
      spec["podFailurePolicy"] === undefined ? "TerminatingOrFailed" : "Failed";
    spec["manualSelector"] ??= false;
  })(fields);
}

/** A strategy of updates whose type is RollingUpdate unless it says otherwise. */
function rolling(field: string, values: Readonly<Record<string, unknown>>): Defaulter {
  return within(field, (strategy) => {
    strategy["type"] ??= "RollingUpdate";
    if (strategy["type"] === "RollingUpdate")
      strategy["rollingUpdate"] = { ...values, ...(strategy["rollingUpdate"] as object) };
  });
}

function statefulSetSpec(fields: FieldValues): void {
  presets({ podManagementPolicy: "OrderedReady", replicas: 1, revisionHistoryLimit: 10 })(fields);
  within("updateStrategy", (strategy) => {
    if (strategy["type"] === undefined) {
      strategy["type"] = "RollingUpdate";
      strategy["rollingUpdate"] ??= {};
    }
    const update = strategy["rollingUpdate"];
    if (strategy["type"] === "RollingUpdate" && update !== undefined)
      strategy["rollingUpdate"] = { partition: 0, ...(update as object) };
  })(fields);
  const claims = fields.get("volumeClaimTemplates") as readonly object[] | undefined;
  const head = { kind: "PersistentVolumeClaim", apiVersion: "v1" };
  fields.set(
    "volumeClaimTemplates",
    claims?.map((claim) => ({ ...head, ...claim })),
  );
  within("persistentVolumeClaimRetentionPolicy", (policy) => {
    policy["whenDeleted"] ??= "Retain";
    policy["whenScaled"] ??= "Retain";
  })(fields);
}

/** Limits of containers: the most is what is given, and what is given is what is asked for. */
function limitRangeItem(fields: FieldValues): void {
  if (fields.get("type") !== "Container") return;
  const of = (name: string): MutableObject => (fields.get(name) ?? {}) as MutableObject;
  const given = { ...of("max"), ...of("default") };
  fields.set("default", sortedMap(given));
  fields.set("defaultRequest", sortedMap({ ...of("min"), ...given, ...of("defaultRequest") }));
}

function networkPolicySpec(fields: FieldValues): void {
  const types = fields.get("policyTypes") as readonly string[] | undefined;
  const egress = fields.get("egress") as readonly unknown[] | undefined;
  if ((types ?? []).length === 0)
    fields.set("policyTypes", ["Ingress", ...((egress ?? []).length > 0 ? ["Egress"] : [])]);
}

/** Sets fields that are absent or zero. */
function nonZero(values: Readonly<Record<string, number>>): Defaulter {
  return (fields) => {
    for (const [field, value] of Object.entries(values))
      if ((fields.get(field) ?? 0) === 0) fields.set(field, value);
  };
}

function autoscalerSpec(fields: FieldValues): void {
  fields.setMissing("minReplicas", 1);
  const metrics = (fields.get("metrics") ?? []) as readonly unknown[];
  const target = { type: "Utilization", averageUtilization: 80 };
  if (metrics.length === 0)
    fields.set("metrics", [{ type: "Resource", resource: { name: "cpu", target } }]);
}

function autoscalerBehavior(fields: FieldValues): void {
  const rules = (type: string, value: number) => ({ type, value, periodSeconds: 15 });
  const own = (field: string) => fields.get(field) as MutableObject | undefined;
  fields.set("scaleUp", {
    stabilizationWindowSeconds: 0,
    selectPolicy: "Max",
    policies: [rules("Pods", 4), rules("Percent", 100)],
    ...own("scaleUp"),
  });
  fields.set("scaleDown", {
    selectPolicy: "Max",
    policies: [rules("Percent", 100)],
    ...own("scaleDown"),
  });
}

function deviceRequest(fields: FieldValues): void {
  fields.setMissing("allocationMode", "ExactCount");
  if (fields.get("allocationMode") === "ExactCount" && (fields.get("count") ?? 0) === 0)
    fields.set("count", 1);
}

const MODE: Defaulter = presets({ defaultMode: 0o644 });
const VOLUME_MODE = { volumeMode: "Filesystem" };

/** By the name of the type in the tables. */
export const WORKLOAD_DEFAULTERS: readonly (readonly [type: string, Defaulter])[] = [
  ["core.Container", container],
  ["core.EphemeralContainer", container],
  ["core.PodSpec", podSpec],
  ["core.PodStatus", podStatus],
  ["core.NodeSpec", nodeSpec],
  ["core.Pod", pod],
  [
    "core.Probe",
    presets({ timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 }),
  ],
  ["core.HTTPGetAction", presets({ path: "/", scheme: "HTTP" })],
  ["core.ObjectFieldSelector", presets({ apiVersion: "v1" })],
  ["core.Volume", volume],
  [
    "core.ImageVolumeSource",
    (fields) => fields.setMissing("pullPolicy", pullPolicyOf(fields.get("reference"))),
  ],
  ["core.SecretVolumeSource", MODE],
  ["core.ConfigMapVolumeSource", MODE],
  ["core.DownwardAPIVolumeSource", MODE],
  ["core.ProjectedVolumeSource", MODE],
  ["core.ServiceAccountTokenProjection", presets({ expirationSeconds: 3600 })],
  ["core.HostPathVolumeSource", (fields) => fields.setMissing("type", "")],
  [
    "core.PersistentVolumeSpec",
    presets({ persistentVolumeReclaimPolicy: "Retain", ...VOLUME_MODE }),
  ],
  ["core.PersistentVolumeStatus", presets({ phase: "Pending" })],
  ["core.PersistentVolumeClaimSpec", presets(VOLUME_MODE)],
  ["core.PersistentVolumeClaim", within("status", (status) => (status["phase"] ??= "Pending"))],
  ["core.ServiceSpec", serviceSpec],
  ["core.EndpointPort", presets({ protocol: "TCP" })],
  ["core.LimitRangeItem", limitRangeItem],
  ["core.NodeStatus", (fields) => fields.setMissing("allocatable", fields.get("capacity"))],
  ["core.ReplicationController", replicationController],
  [
    "apps.DeploymentSpec",
    (fields) => {
      presets({ replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 })(fields);
      rolling("strategy", { maxUnavailable: "25%", maxSurge: "25%" })(fields);
    },
  ],
  ["apps.ReplicaSetSpec", presets({ replicas: 1 })],
  [
    "apps.DaemonSetSpec",
    (fields) => {
      presets({ revisionHistoryLimit: 10 })(fields);
      rolling("updateStrategy", { maxUnavailable: 1, maxSurge: 0 })(fields);
    },
  ],
  ["apps.StatefulSetSpec", statefulSetSpec],
  ["batch.Job", job],
  [
    "batch.CronJobSpec",
    presets({
      concurrencyPolicy: "Allow",
      suspend: false,
      successfulJobsHistoryLimit: 3,
      failedJobsHistoryLimit: 1,
    }),
  ],
  ["batch.PodFailurePolicyOnPodConditionsPattern", presets({ status: "True" })],
  ["autoscaling.HorizontalPodAutoscalerSpec", presets({ minReplicas: 1 })],
  ["autoscalingv2.HorizontalPodAutoscalerSpec", autoscalerSpec],
  ["autoscalingv2.HorizontalPodAutoscalerBehavior", autoscalerBehavior],
  ["dra.ExactDeviceRequest", deviceRequest],
  ["dra.DeviceSubRequest", deviceRequest],
  ["flowcontrol.FlowSchemaSpec", nonZero({ matchingPrecedence: 1000 })],
  [
    "flowcontrol.ExemptPriorityLevelConfiguration",
    presets({ nominalConcurrencyShares: 0, lendablePercent: 0 }),
  ],
  [
    "flowcontrol.LimitedPriorityLevelConfiguration",
    presets({ nominalConcurrencyShares: 30, lendablePercent: 0 }),
  ],
  ["flowcontrol.QueuingConfiguration", nonZero({ handSize: 8, queues: 64, queueLengthLimit: 50 })],
  ["apiregistration.ServiceReference", presets({ port: 443 })],
  [
    "storage.CSIDriverSpec",
    (fields) => {
      presets({
        attachRequired: true,
        podInfoOnMount: false,
        storageCapacity: false,
        fsGroupPolicy: "ReadWriteOnceWithFSType",
        requiresRepublish: false,
        seLinuxMount: false,
      })(fields);
      if (((fields.get("volumeLifecycleModes") ?? []) as readonly unknown[]).length === 0)
        fields.set("volumeLifecycleModes", ["Persistent"]);
    },
  ],
  ["networking.NetworkPolicyPort", presets({ protocol: "TCP" })],
  ["networking.NetworkPolicySpec", networkPolicySpec],
  ["networking.IngressClassParametersReference", presets({ scope: "Cluster" })],
  ["discovery.EndpointPort", presets({ protocol: "TCP", name: "" })],
  ["storage.StorageClass", presets({ reclaimPolicy: "Delete", volumeBindingMode: "Immediate" })],
  ["scheduling.PriorityClass", presets({ preemptionPolicy: "PreemptLowerPriority" })],
];

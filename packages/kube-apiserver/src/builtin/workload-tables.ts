/** The tables of workloads (kubernetes: printers/internalversion/printers.go). */

import type { KubeObject } from "@quorate/kube-storage";
import {
  AGE,
  ageSince,
  humanDuration,
  type LabelSelectorObject,
  nameColumn,
  parseTime,
  selectorOfObject,
  type TableField,
  tableOf,
  textColumn,
} from "@quorate/kube-storage";
import {
  fieldOf,
  hasCondition,
  labelsText,
  statusCount,
  templateContainers,
} from "./workload-fields.ts";

type SpecOf = (object: KubeObject) => unknown;

const ownSpec: SpecOf = (object) => object["spec"];

function countColumn(name: string, description: string, cell: TableField["cell"]): TableField {
  return { column: { name, type: "integer", format: "", description, priority: 0 }, cell };
}

function statusColumn(name: string, field: string, description: string): TableField {
  return countColumn(name, description, (object) => statusCount(object, field));
}

/** Names and images of the pods' containers, in wide output. */
function containerColumns(specOf: SpecOf): TableField[] {
  const joined = (object: KubeObject, field: "name" | "image"): string =>
    templateContainers(specOf(object))
      .map((container) => container[field] ?? "")
      .join(",");
  return [
    textColumn("Containers", "The names of the containers.", (o) => joined(o, "name"), 1),
    textColumn("Images", "The images of the containers.", (o) => joined(o, "image"), 1),
  ];
}

function selectorText(spec: unknown): string {
  const { selector } = (spec ?? {}) as { readonly selector?: Readonly<Record<string, unknown>> };
  if (selector === undefined) return "<none>";
  const plain = !("matchLabels" in selector) && !("matchExpressions" in selector);
  try {
    const object = plain ? { matchLabels: selector } : selector;
    return String(selectorOfObject(object as LabelSelectorObject)) || "<none>";
  } catch {
    return "<error>";
  }
}

function selectorColumn(specOf: SpecOf): TableField {
  return textColumn("Selector", "Which pods belong to it.", (o) => selectorText(specOf(o)), 1);
}

const replicas = (object: KubeObject): number => fieldOf(object, "spec", "replicas", 0);

const readyOfAll = textColumn("Ready", "Pods that are ready, of those wanted.", (object) => {
  return `${statusCount(object, "readyReplicas")}/${replicas(object)}`;
});

export const deploymentTable = tableOf(
  nameColumn(),
  readyOfAll,
  textColumn("Up-to-date", "Pods with the present template.", (object) =>
    statusCount(object, "updatedReplicas"),
  ),
  textColumn("Available", "Pods that are available.", (object) =>
    statusCount(object, "availableReplicas"),
  ),
  AGE,
  ...containerColumns(ownSpec),
  selectorColumn(ownSpec),
);

export const replicaSetTable = tableOf(
  nameColumn(),
  countColumn("Desired", "Pods that are wanted.", replicas),
  statusColumn("Current", "replicas", "Pods that exist."),
  statusColumn("Ready", "readyReplicas", "Pods that are ready."),
  AGE,
  ...containerColumns(ownSpec),
  selectorColumn(ownSpec),
);

export const statefulSetTable = tableOf(
  nameColumn(),
  readyOfAll,
  AGE,
  ...containerColumns(ownSpec),
);

export const daemonSetTable = tableOf(
  nameColumn(),
  statusColumn("Desired", "desiredNumberScheduled", "Nodes that should have a pod."),
  statusColumn("Current", "currentNumberScheduled", "Nodes that have one."),
  statusColumn("Ready", "numberReady", "Nodes with a pod that is ready."),
  statusColumn("Up-to-date", "updatedNumberScheduled", "Nodes with a pod of the template."),
  statusColumn("Available", "numberAvailable", "Nodes with a pod that is available."),
  textColumn("Node Selector", "Which nodes should have a pod.", (object) => {
    const { template } = (object["spec"] ?? {}) as {
      readonly template?: { readonly spec?: { readonly nodeSelector?: Record<string, string> } };
    };
    return labelsText(template?.spec?.nodeSelector);
  }),
  AGE,
  ...containerColumns(ownSpec),
  selectorColumn(ownSpec),
);

const JOB_STATES: readonly (readonly [condition: string, status: string])[] = [
  ["Suspended", "Suspended"],
  ["FailureTarget", "FailureTarget"],
  ["SuccessCriteriaMet", "SuccessCriteriaMet"],
];

function jobStatus(object: KubeObject): string {
  if (hasCondition(object, "Complete")) return "Complete";
  if (hasCondition(object, "Failed")) return "Failed";
  if (object.metadata.deletionTimestamp !== undefined) return "Terminating";
  return JOB_STATES.find(([type]) => hasCondition(object, type))?.[1] ?? "Running";
}

function jobCompletions(object: KubeObject): string {
  const done = statusCount(object, "succeeded");
  const wanted = fieldOf<number | undefined>(object, "spec", "completions", undefined);
  if (wanted !== undefined) return `${done}/${wanted}`;
  const parallelism = fieldOf(object, "spec", "parallelism", 0);
  return parallelism > 1 ? `${done}/1 of ${parallelism}` : `${done}/1`;
}

function jobDuration(object: KubeObject, nowMs: number): string {
  const startMs = parseTime(fieldOf(object, "status", "startTime", undefined));
  if (startMs === undefined) return "";
  const endMs = parseTime(fieldOf(object, "status", "completionTime", undefined));
  return humanDuration((endMs ?? nowMs) - startMs);
}

export const jobTable = tableOf(
  nameColumn(),
  textColumn("Status", "What the job does.", jobStatus),
  textColumn("Completions", "Pods that succeeded, of those wanted.", jobCompletions),
  textColumn("Duration", "How long the job has run.", jobDuration),
  AGE,
  ...containerColumns(ownSpec),
  selectorColumn(ownSpec),
);

const jobTemplateSpec: SpecOf = (object) => {
  const template = fieldOf<{ spec?: unknown }>(object, "spec", "jobTemplate", {});
  return template.spec;
};

export const cronJobTable = tableOf(
  nameColumn(),
  textColumn("Schedule", "When jobs start.", (object) => fieldOf(object, "spec", "schedule", "")),
  textColumn("Timezone", "The time zone of the schedule.", (object) =>
    fieldOf(object, "spec", "timeZone", "<none>"),
  ),
  {
    column: {
      name: "Suspend",
      type: "boolean",
      format: "",
      priority: 0,
      description: "Whether jobs are held back.",
    },
    cell: (object) => {
      return fieldOf(object, "spec", "suspend", false) ? "True" : "False";
    },
  },
  countColumn("Active", "Jobs that run.", (object) => {
    return fieldOf<readonly unknown[]>(object, "status", "active", []).length;
  }),
  textColumn("Last Schedule", "The time since a job was last started.", (object, nowMs) => {
    const last = fieldOf<string | undefined>(object, "status", "lastScheduleTime", undefined);
    return last === undefined ? "<none>" : ageSince(last, nowMs);
  }),
  AGE,
  ...containerColumns(jobTemplateSpec),
  selectorColumn(jobTemplateSpec),
);

interface ServiceSpec {
  readonly type?: string;
  readonly clusterIPs?: readonly string[];
  readonly externalIPs?: readonly string[];
  readonly externalName?: string;
  readonly selector?: Readonly<Record<string, string>>;
  readonly ports?: readonly { port?: number; nodePort?: number; protocol?: string }[];
}

/** With the defaults of a service. */
function serviceSpec(object: KubeObject): ServiceSpec {
  return { type: "ClusterIP", ...(object["spec"] as ServiceSpec | undefined) };
}

function externalAddress(object: KubeObject): string {
  const { type, externalIPs = [], externalName = "" } = serviceSpec(object);
  if (type === "ExternalName") return externalName;
  if (type === "ClusterIP" || type === "NodePort") return externalIPs.join(",") || "<none>";
  if (type !== "LoadBalancer") return "<unknown>";
  const balancer = fieldOf<{ ingress?: { ip?: string; hostname?: string }[] }>(
    object,
    "status",
    "loadBalancer",
    {},
  );
  const given = (balancer.ingress ?? []).map(({ ip, hostname }) => ip || hostname || "");
  const addresses = [...new Set(given.filter((one) => one !== ""))].sort();
  return [...addresses, ...externalIPs].join(",") || "<pending>";
}

export const serviceTable = tableOf(
  nameColumn(),
  textColumn("Type", "How the service is reached.", (object) => serviceSpec(object).type ?? ""),
  textColumn("Cluster-IP", "Its address inside the cluster.", (object) => {
    return serviceSpec(object).clusterIPs?.[0] ?? "<none>";
  }),
  textColumn("External-IP", "Its addresses outside the cluster.", externalAddress),
  textColumn("Port(s)", "Its ports, with those of the nodes.", (object) => {
    const ports = (serviceSpec(object).ports ?? []).map(
      ({ port, nodePort = 0, protocol = "TCP" }) =>
        nodePort > 0 ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`,
    );
    return ports.join(",") || "<none>";
  }),
  AGE,
  textColumn("Selector", "Which pods serve it.", (o) => labelsText(serviceSpec(o).selector), 1),
);

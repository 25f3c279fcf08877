/** Tables of kinds around workloads (kubernetes: printers/internalversion/printers.go). */

import type { KubeObject } from "@quorate/kube-storage";
import {
  AGE,
  type LabelSelectorObject,
  nameColumn,
  selectorOfObject,
  type TableField,
  tableOf,
  textColumn,
} from "@quorate/kube-storage";
import { fieldOf, labelsText, statusCount, templateContainers } from "./workload-fields.ts";

type Texts = Readonly<Record<string, string>>;

function specText(object: KubeObject, field: string, absent: string): string {
  return String(fieldOf<unknown>(object, "spec", field, absent));
}

function specColumn(name: string, field: string, absent: string, description: string): TableField {
  return textColumn(name, description, (object) => specText(object, field, absent));
}

/** The name, and whether the object is its kind's default. */
function defaultedName(annotation: string): TableField {
  const { column } = nameColumn();
  const cell = ({ metadata }: KubeObject): string => {
    const isDefault = metadata.annotations?.[annotation] === "true";
    return isDefault ? `${metadata.name} (default)` : (metadata.name ?? "");
  };
  return { column, cell };
}

export const podTemplateTable = tableOf(
  nameColumn(),
  ...(["name", "image"] as const).map((field) => {
    const title = field === "name" ? "Containers" : "Images";
    return textColumn(title, `The ${field}s of the containers.`, (object) =>
      templateContainers(object)
        .map((container) => container[field] ?? "")
        .join(","),
    );
  }),
  textColumn("Pod Labels", "The labels of the pods.", (object) =>
    labelsText(fieldOf<{ labels?: Texts }>(object, "template", "metadata", {}).labels),
  ),
);

export const disruptionBudgetTable = tableOf(
  nameColumn(),
  specColumn("Min Available", "minAvailable", "N/A", "Pods that must stay."),
  specColumn("Max Unavailable", "maxUnavailable", "N/A", "Pods that may go."),
  {
    column: {
      name: "Allowed Disruptions",
      type: "integer",
      format: "",
      priority: 0,
      description: "Pods that may go now.",
    },
    cell: (object) => statusCount(object, "disruptionsAllowed"),
  },
  AGE,
);

export const networkPolicyTable = tableOf(
  nameColumn(),
  textColumn("Pod-Selector", "Which pods it is for.", (object) => {
    const selector = fieldOf<LabelSelectorObject>(object, "spec", "podSelector", {});
    return String(selectorOfObject(selector)) || "<none>";
  }),
  AGE,
);

export const priorityClassTable = tableOf(
  nameColumn(),
  {
    column: {
      name: "Value",
      type: "integer",
      format: "",
      priority: 0,
      description: "The priority of its pods.",
    },
    cell: (object) => object["value"] ?? 0,
  },
  {
    column: {
      name: "Global-Default",
      type: "boolean",
      format: "",
      priority: 0,
      description: "Whether it is for pods without a class.",
    },
    cell: (object) => object["globalDefault"] ?? false,
  },
  AGE,
  textColumn("PreemptionPolicy", "Whether its pods replace others.", (object) =>
    String(object["preemptionPolicy"] ?? ""),
  ),
);

export const ingressClassTable = tableOf(
  defaultedName("ingressclass.kubernetes.io/is-default-class"),
  specColumn("Controller", "controller", "", "What serves it."),
  textColumn("Parameters", "The object with its parameters.", (object) => {
    const parameters = fieldOf<Texts | undefined>(object, "spec", "parameters", undefined);
    if (parameters === undefined) return "<none>";
    const { kind, apiGroup, name } = parameters;
    return apiGroup === undefined ? `${kind}/${name}` : `${kind}.${apiGroup}/${name}`;
  }),
  AGE,
);

export const ingressTable = tableOf(
  nameColumn(),
  specColumn("Class", "ingressClassName", "<none>", "What serves it."),
  textColumn("Hosts", "The host names that it is for.", (object) => {
    const rules = fieldOf<readonly { host?: string }[]>(object, "spec", "rules", []);
    const hosts = rules.map(({ host = "" }) => host).filter((host) => host !== "");
    if (hosts.length === 0) return "*";
    const more = hosts.length > 3 ? ` + ${hosts.length - 3} more...` : "";
    return hosts.slice(0, 3).join(",") + more;
  }),
  textColumn("Address", "Where it is served.", (object) => {
    type Points = { readonly ingress?: readonly { ip?: string; hostname?: string }[] };
    const { ingress = [] } = fieldOf<Points>(object, "status", "loadBalancer", {});
    return [...new Set(ingress.map(({ ip, hostname }) => ip || hostname || ""))].sort().join(",");
  }),
  textColumn("Ports", "The ports that it is served at.", (object) =>
    fieldOf<readonly unknown[]>(object, "spec", "tls", []).length > 0 ? "80, 443" : "80",
  ),
  AGE,
);

export const storageClassTable = tableOf(
  defaultedName("storageclass.kubernetes.io/is-default-class"),
  textColumn("Provisioner", "What makes its volumes.", (o) => String(o["provisioner"] ?? "")),
  textColumn("ReclaimPolicy", "What becomes of volumes without a claim.", (object) =>
    String(object["reclaimPolicy"] ?? "Delete"),
  ),
  textColumn("VolumeBindingMode", "When volumes are made.", (object) =>
    String(object["volumeBindingMode"] ?? "Immediate"),
  ),
  textColumn(
    "AllowVolumeExpansion",
    "Whether volumes can grow.",
    (object) => object["allowVolumeExpansion"] ?? false,
  ),
  AGE,
);

const MODES: readonly (readonly [mode: string, short: string])[] = [
  ["ReadWriteOnce", "RWO"],
  ["ReadOnlyMany", "ROX"],
  ["ReadWriteMany", "RWX"],
  ["ReadWriteOncePod", "RWOP"],
];

function modesText(modes: readonly string[]): string {
  const present = MODES.filter(([mode]) => modes.includes(mode));
  return present.map(([, short]) => short).join(",");
}

function volumePhase(object: KubeObject): string {
  if (object.metadata.deletionTimestamp !== undefined) return "Terminating";
  return fieldOf(object, "status", "phase", "");
}

const volumeMode = textColumn(
  "VolumeMode",
  "Whether the volume has a file system.",
  (object) => specText(object, "volumeMode", "<unset>"),
  1,
);
const storageClass = specColumn("StorageClass", "storageClassName", "", "The class of the volume.");
const attributesClass = specColumn(
  "VolumeAttributesClass",
  "volumeAttributesClassName",
  "<unset>",
  "The class of its attributes.",
);

export const volumeTable = tableOf(
  nameColumn(),
  textColumn("Capacity", "How much it holds.", (object) => {
    return fieldOf<Texts>(object, "spec", "capacity", {})["storage"] ?? "0";
  }),
  textColumn("Access Modes", "How it can be mounted.", (object) =>
    modesText(fieldOf<readonly string[]>(object, "spec", "accessModes", [])),
  ),
  specColumn("Reclaim Policy", "persistentVolumeReclaimPolicy", "", "What follows its claim."),
  textColumn("Status", "Whether a claim has it.", volumePhase),
  textColumn("Claim", "The claim that has it.", (object) => {
    const claim = fieldOf<Texts | undefined>(object, "spec", "claimRef", undefined);
    return claim === undefined ? "" : `${claim["namespace"] ?? ""}/${claim["name"] ?? ""}`;
  }),
  storageClass,
  attributesClass,
  textColumn("Reason", "Why it is in that state.", (o) => fieldOf(o, "status", "reason", "")),
  AGE,
  volumeMode,
);

export const claimTable = tableOf(
  nameColumn(),
  textColumn("Status", "Whether it has a volume.", volumePhase),
  specColumn("Volume", "volumeName", "", "The volume that it has."),
  textColumn("Capacity", "How much the volume holds.", (object) => {
    if (specText(object, "volumeName", "") === "") return "";
    return fieldOf<Texts>(object, "status", "capacity", {})["storage"] ?? "0";
  }),
  textColumn("Access Modes", "How the volume can be mounted.", (object) => {
    if (specText(object, "volumeName", "") === "") return "";
    return modesText(fieldOf<readonly string[]>(object, "status", "accessModes", []));
  }),
  storageClass,
  attributesClass,
  AGE,
  volumeMode,
);

function quotaText(object: KubeObject, limits: boolean): string {
  const hard = fieldOf<Texts>(object, "status", "hard", {});
  const used = fieldOf<Texts>(object, "status", "used", {});
  return Object.keys(hard)
    .filter((name) => name.startsWith("limits.") === limits)
    .sort()
    .map((name) => `${name}: ${used[name] ?? "0"}/${hard[name]}`)
    .join(", ");
}

export const quotaTable = tableOf(
  nameColumn(),
  textColumn("Request", "What is used of each request.", (o) => quotaText(o, false)),
  textColumn("Limit", "What is used of each limit.", (o) => quotaText(o, true)),
  AGE,
);

export const revisionTable = tableOf(
  nameColumn(),
  textColumn("Controller", "What the revision belongs to.", ({ metadata }) => {
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (owner === undefined) return "<none>";
    const [group] = owner.apiVersion.includes("/") ? owner.apiVersion.split("/") : [""];
    const kind = owner.kind.toLowerCase();
    return group === "" ? `${kind}/${owner.name}` : `${kind}.${group}/${owner.name}`;
  }),
  textColumn("Revision", "Its number.", (object) => object["revision"] ?? 0),
  AGE,
);

export const trustBundleTable = tableOf(
  nameColumn(),
  specColumn("SignerName", "signerName", "<none>", "Whose certificates it is for."),
);

/** The last of the statuses that is true; they exclude each other. */
function conditionOf(object: KubeObject, types: readonly string[], none: string): string {
  type Condition = { readonly type?: string; readonly status?: string };
  const conditions = fieldOf<readonly Condition[]>(object, "status", "conditions", []);
  const isOne = ({ type = "", status }: Condition) => types.includes(type) && status === "True";
  return conditions.findLast(isOne)?.type ?? none;
}

export const podCertificateTable = tableOf(
  nameColumn(),
  specColumn("PodName", "podName", "", "The pod that asks."),
  specColumn("ServiceAccountName", "serviceAccountName", "", "The pod's service account."),
  specColumn("NodeName", "nodeName", "", "The pod's node."),
  specColumn("SignerName", "signerName", "", "Who is asked."),
  textColumn("State", "Pending, Issued, Denied or Failed.", (object) =>
    conditionOf(object, ["Issued", "Denied", "Failed"], "Pending"),
  ),
);

export const migrationTable = tableOf(
  nameColumn(),
  textColumn("Resource", "What is stored anew.", (object) => {
    const { group = "", resource = "" } = fieldOf<Texts>(object, "spec", "resource", {});
    return group === "" ? resource : `${resource}.${group}`;
  }),
  textColumn("Status", "How far it has come.", (object) =>
    conditionOf(object, ["Running", "Failed", "Succeeded"], "Unknown"),
  ),
);

/**
 * What an object takes of a quota (kubernetes: pkg/quota/v1/evaluator/core; apiserver:
 * pkg/quota/v1/generic/evaluator.go):
 *
 *     pods                     pods, requests and limits of cpu, memory and others, count/pods
 *     persistentvolumeclaims   their number and storage, also by storage class
 *     services                 services, services.nodeports, services.loadbalancers
 *     any other resource       count/RESOURCE.GROUP, and for some their name alone
 */
import {
  type Amounts,
  type AskingPod,
  added,
  addQuantities,
  compareQuantities,
  type KubeObject,
  parseTime,
  sumWithOverhead,
} from "@quorate/kube-storage";
import type { AdmissionAttributes } from "../admission/admission.ts";
import { qosClassOf } from "../builtin/plain-kinds.ts";
import { isExtended, isHugePages, isNative } from "../builtin/rules/quantities.ts";
import { listOf, numberOf, type ObjectFields, objectOf, textOf } from "../builtin/rules/rules.ts";

/** A scope, with its condition. */
export interface ScopeRequirement {
  readonly scopeName?: string;
  readonly operator?: string;
  readonly values?: readonly string[];
}

export interface Evaluator {
  /** Whether the request can change what is used. */
  handles(attributes: AdmissionAttributes): boolean;
  /** Whether a quota's resource of this name is about these objects. */
  counts(name: string): boolean;
  isIn(scope: ScopeRequirement, object: KubeObject): boolean;
  /** What the object must say if a quota has these resources; undefined: nothing is missing. */
  missing(names: readonly string[], object: KubeObject): string | undefined;
  usage(object: KubeObject, nowMs: number): Amounts;
}

/** Resources that have a quota by their name alone, too. */
const ALIASES = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

export function countName(group: string, resource: string): string {
  return group === "" ? `count/${resource}` : `count/${resource}.${group}`;
}

/** How objects of a resource are counted. */
export function evaluatorOf(group: string, resource: string): Evaluator {
  if (group === "") {
    if (resource === "pods") return PODS;
    if (resource === "persistentvolumeclaims") return CLAIMS;
    if (resource === "services") return SERVICES;
  }
  const hasAlias = group === "" && ALIASES.includes(resource);
  return counting([countName(group, resource), ...(hasAlias ? [resource] : [])]);
}

function counting(names: readonly string[]): Evaluator {
  return {
    handles: ({ operation, subresource }) => operation === "CREATE" && subresource === "",
    counts: (name) => names.includes(name),
    isIn: () => false,
    missing: () => undefined,
    usage: () => Object.fromEntries(names.map((name) => [name, "1"])),
  };
}

const COMPUTED = ["cpu", "memory", "ephemeral-storage"];
const POD_NAMES = new Set([
  "count/pods",
  "pods",
  ...COMPUTED.flatMap((name) => [name, `requests.${name}`, `limits.${name}`]),
]);
/** Each container has to say these if a quota has them. */
const SAID = new Set(
  ["cpu", "memory"].flatMap((name) => [name, `requests.${name}`, `limits.${name}`]),
);

function specOf(object: KubeObject): ObjectFields {
  return objectOf(object["spec"]);
}

/** What a quota counts of requests and limits. */
function computed(requests: Amounts, limits: Amounts): Amounts {
  const result: Record<string, string> = { pods: "1" };
  for (const [name, amount] of Object.entries(requests)) {
    const isComputed = COMPUTED.includes(name) || isHugePages(name);
    if (isComputed) result[name] = amount;
    if (isComputed || isExtended(name)) result[`requests.${name}`] = amount;
  }
  for (const name of COMPUTED) {
    const limit = limits[name];
    if (limit !== undefined) result[`limits.${name}`] = limit;
  }
  return result;
}

function isOver(pod: KubeObject, nowMs: number): boolean {
  const { phase } = objectOf(pod["status"]);
  if (phase === "Failed" || phase === "Succeeded") return true;
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return false;
  return nowMs > (parseTime(deletionTimestamp) ?? nowMs) + deletionGracePeriodSeconds * 1000;
}

const PODS: Evaluator = {
  handles: ({ operation, subresource }) =>
    subresource === ""
      ? operation === "CREATE"
      : subresource === "resize" && operation === "UPDATE",
  counts(name) {
    if (POD_NAMES.has(name) || isHugePages(name) || name.startsWith("requests.hugepages-"))
      return true;
    return name.startsWith("requests.") && !isNative(name);
  },
  isIn: podIsIn,
  missing(names, pod) {
    const needed = names.filter((name) => SAID.has(name)).sort();
    if (needed.length === 0) return undefined;
    const { containers, initContainers } = specOf(pod) as AskingPod;
    const without = new Map<string, Set<string>>();
    for (const { name = "", resources } of [...(containers ?? []), ...(initContainers ?? [])]) {
      const said = computed(resources?.requests ?? {}, resources?.limits ?? {});
      for (const one of needed) {
        if (one in said) continue;
        without.set(one, (without.get(one) ?? new Set()).add(name));
      }
    }
    if (without.size === 0) return undefined;
    const texts = needed.flatMap((one) => {
      const containersOf = without.get(one);
      return containersOf === undefined
        ? []
        : [`${one} for: ${[...containersOf].sort().join(",")}`];
    });
    return `must specify ${texts.join("; ")}`;
  },
  usage(pod, nowMs) {
    const count = { "count/pods": "1" };
    if (isOver(pod, nowMs)) return count;
    const spec = specOf(pod) as AskingPod;
    return added(
      count,
      computed(sumWithOverhead(spec, "requests"), sumWithOverhead(spec, "limits")),
    );
  },
};

function podIsIn(scope: ScopeRequirement, pod: KubeObject): boolean {
  const { activeDeadlineSeconds, priorityClassName, affinity } = specOf(pod);
  switch (scope.scopeName) {
    case "Terminating":
      return numberOf(activeDeadlineSeconds) >= 0 && typeof activeDeadlineSeconds === "number";
    case "NotTerminating":
      return typeof activeDeadlineSeconds !== "number" || activeDeadlineSeconds < 0;
    case "BestEffort":
      return qosClassOf(pod) === "BestEffort";
    case "NotBestEffort":
      return qosClassOf(pod) !== "BestEffort";
    case "PriorityClass": {
      const name = textOf(priorityClassName);
      return meets(scope, name === "" ? [] : [name]);
    }
    case "CrossNamespacePodAffinity":
      return crossesNamespaces(objectOf(affinity));
    default:
      return false;
  }
}

/** @param names of the object's classes */
function meets({ operator, values = [] }: ScopeRequirement, names: readonly string[]): boolean {
  switch (operator) {
    case "In":
      return names.some((name) => values.includes(name));
    case "NotIn":
      return names.length === 0 || names.some((name) => !values.includes(name));
    case "DoesNotExist":
      return names.length === 0;
    default:
      return names.length > 0;
  }
}

function crossesNamespaces(affinity: ObjectFields): boolean {
  return ["podAffinity", "podAntiAffinity"].some((kind) => {
    const terms = objectOf(affinity[kind]);
    const preferred = listOf(terms["preferredDuringSchedulingIgnoredDuringExecution"]);
    const all = [
      ...listOf(terms["requiredDuringSchedulingIgnoredDuringExecution"]),
      ...preferred.map((one) => objectOf(one["podAffinityTerm"])),
    ];
    return all.some((term) => {
      const { namespaces, namespaceSelector } = term;
      return listOf(namespaces).length > 0 || (namespaceSelector ?? undefined) !== undefined;
    });
  });
}

const CLAIM = "persistentvolumeclaims";
const STORAGE = "requests.storage";
const BY_CLASS = ".storageclass.storage.k8s.io/";
const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

function storageOf(claim: KubeObject): string | undefined {
  const { requests } = objectOf(specOf(claim)["resources"]) as { readonly requests?: Amounts };
  const asked = requests?.["storage"];
  if (asked === undefined) return undefined;
  const allocated = objectOf(objectOf(claim["status"])["allocatedResources"]) as Amounts;
  const granted = allocated["storage"] ?? "0";
  return compareQuantities(granted, asked) > 0 ? granted : asked;
}

const CLAIMS: Evaluator = {
  handles({ operation, subresource, object, oldObject }) {
    if (subresource === "") return operation === "CREATE" || operation === "UPDATE";
    if (subresource !== "status" || object === undefined || oldObject === undefined) return false;
    return storageOf(object) !== storageOf(oldObject);
  },
  counts: (name) =>
    name === countName("", CLAIM) ||
    [CLAIM, STORAGE].some((one) => name === one || name.endsWith(`${BY_CLASS}${one}`)),
  isIn(scope, claim) {
    if (scope.scopeName !== "VolumeAttributesClass") return false;
    const status = objectOf(claim["status"]);
    const names = [
      specOf(claim)["volumeAttributesClassName"],
      status["currentVolumeAttributesClassName"],
      objectOf(status["modifyVolumeStatus"])["targetVolumeAttributesClassName"],
    ];
    return meets(
      scope,
      [...new Set(names.map(textOf))].filter((name) => name !== ""),
    );
  },
  missing: () => undefined,
  usage(claim) {
    const { annotations } = claim.metadata;
    const ofClass = annotations?.[CLASS_ANNOTATION] ?? textOf(specOf(claim)["storageClassName"]);
    const storage = storageOf(claim);
    const own = { [CLAIM]: "1", ...(storage === undefined ? {} : { [STORAGE]: storage }) };
    const classed = Object.entries(ofClass === "" ? {} : own).map(([name, amount]) => [
      `${ofClass}${BY_CLASS}${name}`,
      amount,
    ]);
    return { ...own, [countName("", CLAIM)]: "1", ...Object.fromEntries(classed) };
  },
};

const SERVICES: Evaluator = {
  ...counting(["count/services", "services", "services.nodeports", "services.loadbalancers"]),
  handles: ({ operation }) => operation === "CREATE" || operation === "UPDATE",
  usage(service) {
    const spec = specOf(service);
    const ports = listOf(spec["ports"]);
    const isBalancer = spec["type"] === "LoadBalancer";
    const onlyAsked = isBalancer && spec["allocateLoadBalancerNodePorts"] === false;
    const asked = onlyAsked ? ports.filter(({ nodePort }) => numberOf(nodePort) !== 0) : ports;
    const count = isBalancer || spec["type"] === "NodePort" ? asked.length : 0;
    return {
      "count/services": "1",
      services: "1",
      "services.nodeports": addQuantities(String(count), "0"),
      "services.loadbalancers": isBalancer ? "1" : "0",
    };
  },
};

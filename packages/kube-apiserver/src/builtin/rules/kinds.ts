/**
 * Which rules a kind has. Objects are decoded and have their defaults; metadata is checked before.
 */
import {
  type FieldError,
  invalidValue,
  isDns1123Subdomain,
  type KubeObject,
  required,
  semanticEqual,
} from "@quorate/kube-storage";
import { CLAIM_SPEC, claimUpdate, VOLUME_SPEC, volumeUpdate } from "./claims.ts";
import {
  AUTOSCALER,
  changedPriorityClassErrors,
  changedStorageClassErrors,
  DISRUPTION_BUDGET,
  LIMIT_RANGE,
  priorityClassErrors,
  QUOTA,
  quotaUpdate,
  STORAGE_CLASS,
} from "./cluster.ts";
import { changedCronJobErrors, changedJobErrors, cronJobErrors, jobErrors } from "./jobs.ts";
import {
  changedServiceCidrErrors,
  ENDPOINT_SLICE,
  INGRESS_CLASS,
  IP_ADDRESS,
  ingressErrors,
  NETWORK_POLICY,
  SERVICE_CIDR,
} from "./networking.ts";
import { changedPodErrors, newPodErrors, TEMPLATE } from "./pod-spec.ts";
import {
  each,
  errorsOf,
  IMMUTABLE,
  immutable,
  isAbsent,
  listOf,
  objectOf,
  type Rule,
  texts,
} from "./rules.ts";
import { taintErrors } from "./scheduling.ts";
import { changedServiceErrors, SUBSETS, serviceErrors } from "./services.ts";
import { isNetwork } from "./texts.ts";
import {
  DAEMON_SET,
  DEPLOYMENT,
  NEW_STATEFUL_SET,
  NOT_NEGATIVE,
  OLD_STATEFUL_SET,
  REPLICA_SET,
  REPLICATION_CONTROLLER,
  statefulSetUpdate,
} from "./workloads.ts";

/** The errors of a new object, and of a changed one. */
export interface KindRules {
  create(object: KubeObject): FieldError[];
  update(object: KubeObject, old: KubeObject): FieldError[];
}

type Change = (object: KubeObject, old: KubeObject, found: FieldError[]) => void;

/** A rule for one field of the object, and what a change of it may not do. */
function ofField(name: string, rule: Rule, change?: Change): KindRules {
  const create = (object: KubeObject): FieldError[] => errorsOf(rule, object[name], name);
  return {
    create,
    update(object, old) {
      const found = create(object);
      change?.(object, old, found);
      return found;
    },
  };
}

const sameSelector: Change = (object, old, found) => {
  const of = (one: KubeObject): unknown => objectOf(one["spec"])["selector"];
  immutable(of(object), of(old), "spec.selector", found);
};

const sameController: Change = (object, old, found) => {
  const of = (one: KubeObject): unknown => objectOf(one["spec"])["controller"];
  immutable(of(object), of(old), "spec.controller", found);
};

/** What was wrong already may stay as it is. */
function tolerant(rule: Rule, field: string): KindRules {
  return {
    create: (object) => errorsOf(rule, object[field], field),
    update: (object, old) =>
      semanticEqual(object[field], old[field]) ? [] : errorsOf(rule, object[field], field),
  };
}

function revisionErrors(object: KubeObject): FieldError[] {
  const { data } = object;
  const found = errorsOf(NOT_NEGATIVE, object["revision"], "revision");
  if (isAbsent(data)) found.push(required("data", "data is mandatory"));
  else if (typeof data !== "object" || Array.isArray(data)) {
    found.push(required("data", "data must be a valid JSON object"));
  }
  return found;
}

function nodeErrors(node: KubeObject): FieldError[] {
  const found: FieldError[] = [];
  taintErrors(node, found);
  const cidrs = listOf<string>(objectOf(node["spec"])["podCIDRs"]);
  each(texts(isNetwork))(cidrs, "spec.podCIDRs", found);
  if (cidrs.length > 2) {
    const text = "may specify no more than one CIDR for each IP family";
    found.push(invalidValue("spec.podCIDRs", cidrs, text));
  }
  return found;
}

const sameSpec: KindRules = {
  create: () => [],
  update(object, old) {
    const found: FieldError[] = [];
    immutable(object["spec"], old["spec"], "spec", found);
    return found;
  },
};

const signerOf = ({ spec }: KubeObject): string => String(objectOf(spec)["signerName"] ?? "");

/** The name of a bundle begins with its signer's, in which ":" stands for "/". */
function bundleErrors(bundle: KubeObject): FieldError[] {
  const { name = "" } = bundle.metadata;
  const signer = signerOf(bundle);
  const prefix = signer === "" ? "" : `${signer.replaceAll("/", ":")}:`;
  const wrong = (why: string): FieldError => invalidValue("metadata.name", name, why);
  if (signer === "" && name.includes(":"))
    return [wrong('ClusterTrustBundle without signer name must not have ":" in its name')];
  if (!name.startsWith(prefix))
    return [
      wrong(`ClusterTrustBundle for signerName ${signer} must be named with prefix ${prefix}`),
    ];
  return isDns1123Subdomain(name.slice(prefix.length)).map(wrong);
}

/** By the name of the kind, which no two groups share. */
export const KIND_RULES: ReadonlyMap<string, KindRules> = new Map<string, KindRules>([
  ["Pod", { create: newPodErrors, update: changedPodErrors }],
  ["PodTemplate", ofField("template", TEMPLATE)],
  ["ReplicationController", ofField("spec", REPLICATION_CONTROLLER)],
  ["Deployment", ofField("spec", DEPLOYMENT, sameSelector)],
  ["ReplicaSet", ofField("spec", REPLICA_SET, sameSelector)],
  [
    "StatefulSet",
    {
      create: (set) => errorsOf(NEW_STATEFUL_SET, set["spec"], "spec"),
      update(set, old) {
        const found = errorsOf(OLD_STATEFUL_SET, set["spec"], "spec");
        statefulSetUpdate(set, old, found);
        return found;
      },
    },
  ],
  ["DaemonSet", ofField("spec", DAEMON_SET, sameSelector)],
  [
    "ControllerRevision",
    {
      create: revisionErrors,
      update(object, old) {
        const found = errorsOf(NOT_NEGATIVE, object["revision"], "revision");
        immutable(object["data"], old["data"], "data", found);
        return found;
      },
    },
  ],
  ["Job", { create: jobErrors, update: changedJobErrors }],
  ["CronJob", { create: cronJobErrors, update: changedCronJobErrors }],
  [
    "Service",
    {
      create: (service) => serviceErrors(service, undefined),
      update: changedServiceErrors,
    },
  ],
  ["Endpoints", tolerant(SUBSETS, "subsets")],
  [
    "EndpointSlice",
    {
      create: (slice) => errorsOf(ENDPOINT_SLICE, slice),
      update(slice, old) {
        const found = errorsOf(ENDPOINT_SLICE, slice);
        immutable(slice["addressType"], old["addressType"], "addressType", found);
        return found;
      },
    },
  ],
  ["Ingress", { create: (ingress) => ingressErrors(ingress, undefined), update: ingressErrors }],
  ["IngressClass", ofField("spec", INGRESS_CLASS, sameController)],
  ["NetworkPolicy", ofField("spec", NETWORK_POLICY)],
  [
    "ServiceCIDR",
    {
      create: (range) => errorsOf(SERVICE_CIDR, range["spec"], "spec"),
      update: changedServiceCidrErrors,
    },
  ],
  [
    "IPAddress",
    {
      create: (address) => errorsOf(IP_ADDRESS, address["spec"], "spec"),
      update(address, old) {
        const of = ({ spec }: KubeObject): unknown => objectOf(spec)["parentRef"];
        const found = errorsOf(IP_ADDRESS, address["spec"], "spec");
        const [now, before] = [of(address), of(old)];
        if (!semanticEqual(now, before)) {
          found.push(invalidValue("spec.parentRef", isAbsent(now) ? null : {}, IMMUTABLE));
        }
        return found;
      },
    },
  ],
  [
    "ClusterTrustBundle",
    {
      create: bundleErrors,
      update(bundle, old) {
        const found = bundleErrors(bundle);
        immutable(signerOf(bundle), signerOf(old), "spec.signerName", found);
        return found;
      },
    },
  ],
  ["PodCertificateRequest", sameSpec],
  ["StorageVersionMigration", sameSpec],
  ["PodDisruptionBudget", ofField("spec", DISRUPTION_BUDGET)],
  ["HorizontalPodAutoscaler", ofField("spec", AUTOSCALER)],
  ["PersistentVolumeClaim", ofField("spec", CLAIM_SPEC, claimUpdate)],
  ["PersistentVolume", ofField("spec", VOLUME_SPEC, volumeUpdate)],
  [
    "StorageClass",
    { create: (object) => errorsOf(STORAGE_CLASS, object), update: changedStorageClassErrors },
  ],
  ["PriorityClass", { create: priorityClassErrors, update: changedPriorityClassErrors }],
  ["ResourceQuota", ofField("spec", QUOTA, quotaUpdate)],
  ["LimitRange", ofField("spec", LIMIT_RANGE)],
  ["Node", { create: nodeErrors, update: (node) => nodeErrors(node) }],
]);

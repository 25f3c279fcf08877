/**
 * APIService: who serves a group and version, the server itself or a service in the cluster
 * (kube-aggregator: pkg/registry/apiservice, pkg/apis/apiregistration/validation).
 */
import {
  AGE,
  type FieldError,
  fieldErrors,
  isDns1035Label,
  isDns1123Subdomain,
  type KubeObject,
  metaTime,
  nameColumn,
  type Strategy,
  sameJson,
  tableOf,
  textColumn,
  withField,
} from "@quorate/kube-storage";
import { base64Bytes } from "./configmaps.ts";

export interface ApiServiceSpec {
  readonly group: string;
  readonly version: string;
  readonly groupPriorityMinimum: number;
  readonly versionPriority: number;
  /** Absent: this server serves them. */
  readonly service?: {
    readonly namespace: string;
    readonly name: string;
    readonly port: number;
  };
  /** PEM certificates in base64; the platform's CAs where it is empty. */
  readonly caBundle?: string;
  readonly insecureSkipTLSVerify?: boolean;
}

export interface AvailableCondition {
  readonly type: "Available";
  readonly status: "True" | "False" | "Unknown";
  readonly lastTransitionTime: string;
  readonly reason: string;
  readonly message: string;
}

const MAX_PORT = 65_535;

/** The spec, with what is absent filled in. */
export function apiServiceSpecOf(object: KubeObject): ApiServiceSpec {
  const spec = (object["spec"] ?? {}) as Partial<ApiServiceSpec>;
  const { group = "", version = "", groupPriorityMinimum = 0, versionPriority = 0 } = spec;
  const { service, ...others } = spec;
  const named = service && {
    namespace: service.namespace ?? "",
    name: service.name ?? "",
    port: service.port ?? 443,
  };
  return {
    ...others,
    group,
    version,
    groupPriorityMinimum,
    versionPriority,
    ...(named ? { service: named } : {}),
  };
}

export function sameSpec(a: KubeObject, b: KubeObject): boolean {
  return sameJson(apiServiceSpecOf(a), apiServiceSpecOf(b));
}

/** Whether the server that it names is available; undefined before it was checked. */
export function availableConditionOf(object: KubeObject): AvailableCondition | undefined {
  const status = object["status"] as { conditions?: readonly AvailableCondition[] } | undefined;
  return status?.conditions?.find(({ type }) => type === "Available");
}

/** The condition of one that this server serves itself. @param lastTransitionTime of the change */
export function localCondition(lastTransitionTime: string): AvailableCondition {
  const message = "Local APIServices are always available";
  return { type: "Available", status: "True", lastTransitionTime, reason: "Local", message };
}

/** The object with the condition; its time stays where the status is the same. */
export function withAvailable(object: KubeObject, wanted: AvailableCondition): KubeObject {
  const status = (object["status"] ?? {}) as { conditions?: readonly AvailableCondition[] };
  const { conditions = [] } = status;
  const old = availableConditionOf(object);
  const isSame = old?.status === wanted.status;
  const next = isSame ? { ...wanted, lastTransitionTime: old.lastTransitionTime } : wanted;
  const all =
    old === undefined
      ? [...conditions, next]
      : conditions.map((one) => (one.type === "Available" ? next : one));
  return { ...object, status: { ...status, conditions: all } };
}

export function apiServices(strategy: Strategy): Strategy {
  return {
    ...strategy,
    allowUnconditionalUpdate: false,
    prepareForCreate(ctx, object) {
      const prepared = withField(strategy.prepareForCreate(ctx, object), "status", {});
      if (apiServiceSpecOf(prepared).service !== undefined) return prepared;
      const { creationTimestamp } = prepared.metadata;
      return withAvailable(prepared, localCondition(creationTimestamp ?? metaTime(0)));
    },
    validate: (_ctx, object) => faultsOf(object),
    validateUpdate: (_ctx, object) => faultsOf(object),
  };
}

function faultsOf(object: KubeObject): FieldError[] {
  const { required, invalidValue } = fieldErrors;
  const spec = apiServiceSpecOf(object);
  const { group, version, groupPriorityMinimum, versionPriority, service } = spec;
  const { name } = object.metadata;
  const wanted = `${version}.${group}`;
  const faults: FieldError[] = [];
  if (name !== wanted)
    faults.push(
      invalidValue(
        "metadata.name",
        name,
        `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(wanted)}`,
      ),
    );
  if (group === "" && version !== "v1")
    faults.push(
      required("spec.group", "only v1 may have an empty group and it better be legacy kube"),
    );
  if (group !== "")
    faults.push(...isDns1123Subdomain(group).map((why) => invalidValue("spec.group", group, why)));
  faults.push(...isDns1035Label(version).map((why) => invalidValue("spec.version", version, why)));
  const inRange = (field: string, value: number, max: number): void => {
    if (value > 0 && value <= max) return;
    faults.push(invalidValue(field, value, `must be positive and less than ${max}`));
  };
  inRange("spec.groupPriorityMinimum", groupPriorityMinimum, 20_000);
  inRange("spec.versionPriority", versionPriority, 1000);
  return [...faults, ...(service === undefined ? localFaults(spec) : remoteFaults(spec, service))];
}

function localFaults({ caBundle = "", insecureSkipTLSVerify = false }: ApiServiceSpec) {
  const { invalidValue } = fieldErrors;
  const faults: FieldError[] = [];
  if (caBundle !== "") {
    const why = "local APIServices may not have a caBundle";
    faults.push(invalidValue("spec.caBundle", `${base64Bytes(caBundle)} bytes`, why));
  }
  if (insecureSkipTLSVerify) {
    const why = "local APIServices may not have insecureSkipTLSVerify";
    faults.push(invalidValue("spec.insecureSkipTLSVerify", true, why));
  }
  return faults;
}

function remoteFaults(
  { caBundle = "", insecureSkipTLSVerify = false }: ApiServiceSpec,
  { namespace, name, port }: NonNullable<ApiServiceSpec["service"]>,
) {
  const { required, invalidValue } = fieldErrors;
  const faults: FieldError[] = [];
  if (namespace === "") faults.push(required("spec.service.namespace"));
  if (name === "") faults.push(required("spec.service.name"));
  if (port < 1 || port > MAX_PORT) {
    const why = `port is not valid: must be between 1 and ${MAX_PORT}, inclusive`;
    faults.push(invalidValue("spec.service.port", port, why));
  }
  if (insecureSkipTLSVerify && caBundle !== "") {
    const why = "may not be true if caBundle is present";
    faults.push(invalidValue("spec.insecureSkipTLSVerify", true, why));
  }
  return faults;
}

export const apiServiceTable = tableOf(
  nameColumn(),
  textColumn("Service", "The service that serves the group and version.", (object) => {
    const { service } = apiServiceSpecOf(object);
    return service === undefined ? "Local" : `${service.namespace}/${service.name}`;
  }),
  textColumn("Available", "Whether that service is available.", (object) => {
    const { status = "Unknown", reason = "" } = availableConditionOf(object) ?? {};
    return status === "True" || reason === "" ? status : `${status} (${reason})`;
  }),
  AGE,
);

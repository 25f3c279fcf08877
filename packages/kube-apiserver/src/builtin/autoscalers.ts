/**
 * HorizontalPodAutoscaler: stored as autoscaling/v2 and served as v1, too. What v1 has no field for
 * is in annotations there (kubernetes: pkg/apis/autoscaling/v1/conversion.go).
 *
 *     v2  metrics: [cpu 80 %, pods ...], behavior
 *     v1  targetCPUUtilizationPercentage: 80, annotations: metrics, behavior
 */
import {
  ConvertedStorage,
  type Getter,
  type GroupVersionKind,
  type KubeObject,
  type ResourceSpec,
  type RestStorage,
  type Updater,
  withMetadata,
} from "@quorate/kube-storage";

type Fields = Readonly<Record<string, unknown>>;

const V1 = "autoscaling/v1";
const V2 = "autoscaling/v2";
const ANNOTATIONS = {
  metrics: "autoscaling.alpha.kubernetes.io/metrics",
  currentMetrics: "autoscaling.alpha.kubernetes.io/current-metrics",
  behavior: "autoscaling.alpha.kubernetes.io/behavior",
  conditions: "autoscaling.alpha.kubernetes.io/conditions",
} as const;

/** The fields of a metric in v1, each with its path in v2; % is "target" or "current". */
const METRICS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  resource: {
    name: "name",
    "%AverageUtilization": "%.averageUtilization",
    "%AverageValue": "%.averageValue",
  },
  containerResource: {
    name: "name",
    "%AverageUtilization": "%.averageUtilization",
    "%AverageValue": "%.averageValue",
    container: "container",
  },
  pods: {
    metricName: "metric.name",
    "%AverageValue": "%.averageValue",
    selector: "metric.selector",
  },
  object: {
    target: "describedObject",
    metricName: "metric.name",
    "%Value": "%.value",
    selector: "metric.selector",
    averageValue: "%.averageValue",
  },
  external: {
    metricName: "metric.name",
    metricSelector: "metric.selector",
    "%Value": "%.value",
    "%AverageValue": "%.averageValue",
  },
};

function pathsOf(source: string, what: string): [string, readonly string[]][] {
  return Object.entries(METRICS[source] ?? {}).map(([name, path]) => [
    name.replace("%", what),
    path.replace("%", what).split("."),
  ]);
}

function sourceOf(metric: Fields): string {
  return Object.keys(metric).find((name) => Object.hasOwn(METRICS, name)) ?? "";
}

function toV1Metric(metric: Fields, what: "target" | "current"): Fields {
  const source = sourceOf(metric);
  const from = (metric[source] ?? {}) as Fields;
  const fields: Record<string, unknown> = {};
  for (const [name, path] of pathsOf(source, what)) {
    const value = path.reduce<unknown>((at, step) => (at as Fields | undefined)?.[step], from);
    if (value !== undefined) fields[name] = value;
  }
  return { type: metric["type"], [source]: fields };
}

function toV2Metric(metric: Fields, what: "target" | "current"): Fields {
  const source = sourceOf(metric);
  const from = (metric[source] ?? {}) as Fields;
  const fields: Record<string, Record<string, unknown>> = {};
  for (const [name, [first = "", second]] of pathsOf(source, what)) {
    const value = from[name];
    if (value === undefined) continue;
    if (second === undefined) fields[first] = value as Record<string, unknown>;
    else fields[first] = { ...fields[first], [second]: value };
  }
  const target = fields["target"];
  if (what === "target" && target !== undefined)
    target["type"] =
      target["averageUtilization"] !== undefined
        ? "Utilization"
        : target["averageValue"] !== undefined
          ? "AverageValue"
          : "Value";
  return { type: metric["type"], [source]: fields };
}

/** Go's names of the fields of the internal type, whose JSON the annotation has. */
function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((one) => renamed(one, rename));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [rename(name), renamed(one, rename)]),
  );
}

const upper = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
const lower = (name: string): string => name.charAt(0).toLowerCase() + name.slice(1);

function isCpu(metric: Fields, what: "target" | "current"): boolean {
  const resource = metric["resource"] as Fields | undefined;
  const value = resource?.[what] as Fields | undefined;
  return resource?.["name"] === "cpu" && value?.["averageUtilization"] !== undefined;
}

function cpuOf(metrics: readonly Fields[], what: "target" | "current"): unknown {
  const cpu = metrics.find((one) => isCpu(one, what))?.["resource"] as Fields | undefined;
  return (cpu?.[what] as Fields | undefined)?.["averageUtilization"];
}

function without(fields: Fields, ...names: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

/** The annotations of an object without those that v1 has for fields of v2. */
function ownAnnotations({ metadata }: KubeObject): Record<string, string> {
  const mine: readonly string[] = Object.values(ANNOTATIONS);
  return Object.fromEntries(
    Object.entries(metadata.annotations ?? {}).filter(([name]) => !mine.includes(name)),
  );
}

function withAnnotations(object: KubeObject, annotations: Record<string, string>): KubeObject {
  const isEmpty = Object.keys(annotations).length === 0;
  return withMetadata(object, { annotations: isEmpty ? undefined : annotations });
}

function toV1(object: KubeObject): KubeObject {
  const spec = (object["spec"] ?? {}) as Fields;
  const status = (object["status"] ?? {}) as Fields;
  const metrics = (spec["metrics"] ?? []) as readonly Fields[];
  const current = (status["currentMetrics"] ?? []) as readonly Fields[];
  const conditions = (status["conditions"] ?? []) as readonly Fields[];
  const annotations = ownAnnotations(object);
  const others = metrics.filter((one) => !isCpu(one, "target"));
  const add = (name: keyof typeof ANNOTATIONS, value: unknown): void => {
    annotations[ANNOTATIONS[name]] = JSON.stringify(value);
  };
  if (others.length > 0)
    add(
      "metrics",
      others.map((one) => toV1Metric(one, "target")),
    );
  if (current.length > 0)
    add(
      "currentMetrics",
      current.map((one) => toV1Metric(one, "current")),
    );
  if (spec["behavior"] !== undefined) add("behavior", renamed(spec["behavior"], upper));
  if (conditions.length > 0) add("conditions", conditions);
  const cpu = cpuOf(metrics, "target");
  const currentCpu = cpuOf(current, "current");
  return {
    ...withAnnotations(object, annotations),
    apiVersion: V1,
    spec: {
      ...without(spec, "metrics", "behavior"),
      ...(cpu === undefined ? {} : { targetCPUUtilizationPercentage: cpu }),
    },
    status: {
      currentReplicas: 0,
      ...without(status, "currentMetrics", "conditions"),
      ...(currentCpu === undefined ? {} : { currentCPUUtilizationPercentage: currentCpu }),
    },
  };
}

function cpuMetric(what: "target" | "current", percent: unknown): Fields {
  const value = {
    averageUtilization: percent,
    ...(what === "target" ? { type: "Utilization" } : {}),
  };
  return { type: "Resource", resource: { name: "cpu", [what]: value } };
}

function toV2(object: KubeObject): KubeObject {
  const spec = (object["spec"] ?? {}) as Fields;
  const status = (object["status"] ?? {}) as Fields;
  const given = object.metadata.annotations ?? {};
  const read = (name: keyof typeof ANNOTATIONS): unknown => {
    try {
      return JSON.parse(given[ANNOTATIONS[name]] ?? "null") as unknown;
    } catch {
      // As without the annotation.
      return null;
    }
  };
  const listed = (name: "metrics" | "currentMetrics", what: "target" | "current"): Fields[] => {
    const found = read(name);
    return Array.isArray(found) ? found.map((one) => toV2Metric(one as Fields, what)) : [];
  };
  const percent = spec["targetCPUUtilizationPercentage"];
  const currentPercent = status["currentCPUUtilizationPercentage"];
  const metrics = listed("metrics", "target");
  const current = listed("currentMetrics", "current");
  if (percent !== undefined) metrics.push(cpuMetric("target", percent));
  if (metrics.length === 0) metrics.push(cpuMetric("target", DEFAULT_CPU_PERCENT));
  if (current.length === 0 && currentPercent !== undefined)
    current.push(cpuMetric("current", currentPercent));
  const behavior = renamed(read("behavior"), lower);
  const conditions = read("conditions");
  return {
    ...withAnnotations(object, ownAnnotations(object)),
    apiVersion: V2,
    spec: {
      ...without(spec, "targetCPUUtilizationPercentage"),
      metrics,
      ...(behavior === null ? {} : { behavior }),
    },
    status: {
      ...without(status, "currentCPUUtilizationPercentage"),
      currentMetrics: current.length === 0 ? null : current,
      ...(Array.isArray(conditions) ? { conditions } : {}),
    },
  };
}

const DEFAULT_CPU_PERCENT = 80;

/** @param stored the resource in v2 */
export function autoscalersV1(stored: ResourceSpec): ResourceSpec {
  const servedKind: GroupVersionKind = { ...stored.kind, version: "v1" };
  const converted = (storage: RestStorage): RestStorage =>
    new ConvertedStorage(storage, toV2, toV1).verbs();
  const { kind, codec, ...rest } = stored;
  return {
    ...rest,
    kind,
    codec,
    get schema() {
      return stored.schema;
    },
    servedKind,
    customize: ({ main, subresources }) => {
      const { get, update } = converted(subresources["status"] as RestStorage) as Getter & Updater;
      return { main: converted(main), subresources: { ...subresources, status: { get, update } } };
    },
  };
}

/**
 * LimitRanger (kubernetes: plugin/pkg/admission/limitranger): the LimitRanges of a namespace fill
 * in what the containers of a new pod do not say, and bound what pods and claims ask for.
 */
import {
  type Amounts,
  type Asked,
  type AskingContainer,
  type AskingPod,
  type KubeObject,
  quantityMilli,
  sumOf,
} from "@quorate/kube-storage";
import type { AdmissionAttributes } from "./admission.ts";
import { type AdmissionPlugin, admissionForbidden, isOf } from "./chain.ts";

interface Limit {
  readonly type?: string;
  readonly min?: Amounts;
  readonly max?: Amounts;
  readonly default?: Amounts;
  readonly defaultRequest?: Amounts;
  readonly maxLimitRequestRatio?: Amounts;
}

const ANNOTATION = "kubernetes.io/limit-ranger";
/**
 * @param limitRanges of a namespace, as of now, or any state at least as new as the one before;
 * rejects with ApiError
 */
export function limitRanger(
  limitRanges: (namespace: string, isNow: boolean) => Promise<readonly KubeObject[]>,
): AdmissionPlugin {
  const limitsFor = async (
    { namespace }: AdmissionAttributes,
    isNow: boolean,
  ): Promise<readonly Limit[][]> =>
    (await limitRanges(namespace, isNow)).map((range) => {
      const { limits } = (range["spec"] ?? {}) as { readonly limits?: readonly Limit[] | null };
      return [...(limits ?? [])];
    });
  return {
    resources: ["/pods", "/persistentvolumeclaims"],
    async mutate(attributes) {
      const { object } = attributes;
      if (object === undefined || !isJudged(attributes) || !isPod(attributes)) return object;
      const ranges = await limitsFor(attributes, true);
      return ranges.reduce((pod, limits) => withDefaults(pod, limits), object);
    },
    async validate(attributes) {
      const { object } = attributes;
      if (object === undefined || !isJudged(attributes)) return;
      const problemsOf = isPod(attributes) ? podProblems : claimProblems;
      // Those of a pod were read when it was changed.
      for (const limits of await limitsFor(attributes, !isPod(attributes))) {
        const problems = [...new Set(limits.flatMap((limit) => problemsOf(object, limit)))];
        if (problems.length === 0) continue;
        const text = problems.length === 1 ? problems[0] : `[${problems.join(", ")}]`;
        throw admissionForbidden(attributes, text ?? "");
      }
    },
  };
}

function isPod(attributes: AdmissionAttributes): boolean {
  return isOf(attributes, "", "pods");
}

function isJudged(attributes: AdmissionAttributes): boolean {
  const { operation, subresource, oldObject } = attributes;
  if (oldObject?.metadata.deletionTimestamp !== undefined) return false;
  if (operation !== "CREATE" && operation !== "UPDATE") return false;
  if (isPod(attributes))
    return operation === "CREATE" ? subresource === "" : subresource === "resize";
  return subresource === "";
}

/** What containers get that do not say it: limits from `max`, requests from limits and `min`. */
function defaultsOf(limits: readonly Limit[]): Required<Asked> {
  const requests: Record<string, string> = {};
  const most: Record<string, string> = {};
  for (const limit of limits) {
    if (limit.type !== "Container") continue;
    const own = { ...limit.max, ...limit.default };
    Object.assign(most, own);
    Object.assign(requests, { ...limit.min, ...own, ...limit.defaultRequest });
  }
  return { requests, limits: most };
}

function withDefaults(pod: KubeObject, limits: readonly Limit[]): KubeObject {
  const wanted = defaultsOf(limits);
  const set: string[] = [];
  const filled = (containers: readonly AskingContainer[] | null | undefined, what: string) =>
    (containers ?? []).map((container) => withResources(container, wanted, what, set));
  const spec = (pod["spec"] ?? {}) as AskingPod;
  const containers = filled(spec.containers, "container");
  const initContainers = filled(spec.initContainers, "init container");
  if (set.length === 0) return pod;
  const annotations = {
    ...pod.metadata.annotations,
    [ANNOTATION]: `LimitRanger plugin set: ${set.join("; ")}`,
  };
  const inits = initContainers.length === 0 ? {} : { initContainers };
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations },
    spec: { ...spec, containers, ...inits },
  };
}

/** @param set what was set, in Kubernetes' words */
function withResources(
  container: AskingContainer,
  wanted: Required<Asked>,
  what: string,
  set: string[],
): AskingContainer {
  const { requests, limits } = container.resources ?? {};
  const missing = (own: Amounts | undefined, all: Amounts, kind: string): Amounts => {
    const names = Object.keys(all)
      .filter((name) => !Object.hasOwn(own ?? {}, name))
      .sort();
    if (names.length > 0) set.push(`${names.join(", ")} ${kind} for ${what} ${container.name}`);
    return Object.fromEntries(names.map((name) => [name, all[name] ?? ""]));
  };
  const more = {
    requests: { ...requests, ...missing(requests, wanted.requests, "request") },
    limits: { ...limits, ...missing(limits, wanted.limits, "limit") },
  };
  const kept = Object.entries(more).filter(([, amounts]) => Object.keys(amounts).length > 0);
  if (kept.length === 0) return container;
  return { ...container, resources: { ...container.resources, ...Object.fromEntries(kept) } };
}

function podProblems(pod: KubeObject, limit: Limit): string[] {
  const spec = (pod["spec"] ?? {}) as AskingPod;
  if (limit.type === "Pod")
    return problemsOf(limit, {
      requests: sumOf(spec, "requests"),
      limits: sumOf(spec, "limits"),
    });
  if (limit.type !== "Container") return [];
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  return containers.flatMap(({ resources }) => problemsOf(limit, resources ?? {}));
}

function claimProblems(claim: KubeObject, limit: Limit): string[] {
  if (limit.type !== "PersistentVolumeClaim") return [];
  const { resources } = (claim["spec"] ?? {}) as { readonly resources?: Asked };
  const { requests = {} } = resources ?? {};
  return [
    ...each(limit.min, (name, bound) => belowMinimum(limit, name, bound, { requests })),
    ...each(limit.max, (name, bound) => {
      const what = `maximum ${name} usage per ${limit.type} is ${bound}`;
      const request = requests[name];
      if (request === undefined) return `${what}.  No request is specified`;
      return quantityMilli(request) > quantityMilli(bound)
        ? `${what}, but request is ${request}`
        : undefined;
    }),
  ];
}

function problemsOf(limit: Limit, asked: Asked): string[] {
  return [
    ...each(limit.min, (name, bound) => belowMinimum(limit, name, bound, asked)),
    ...each(limit.max, (name, bound) => aboveMaximum(limit, name, bound, asked)),
    ...each(limit.maxLimitRequestRatio, (name, bound) => wrongRatio(limit, name, bound, asked)),
  ];
}

/** By the names of the resources. */
function each(
  bounds: Amounts | undefined,
  problemOf: (name: string, bound: string) => string | undefined,
): string[] {
  return Object.entries(bounds ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, bound]) => problemOf(name, bound) ?? []);
}

function belowMinimum({ type }: Limit, name: string, bound: string, asked: Asked) {
  const what = `minimum ${name} usage per ${type} is ${bound}`;
  const [request, limit] = [asked.requests?.[name], asked.limits?.[name]];
  if (request === undefined) return `${what}.  No request is specified`;
  if (quantityMilli(request) < quantityMilli(bound)) return `${what}, but request is ${request}`;
  if (limit !== undefined && quantityMilli(limit) < quantityMilli(bound))
    return `${what}, but limit is ${limit}`;
  return undefined;
}

function aboveMaximum({ type }: Limit, name: string, bound: string, asked: Asked) {
  const what = `maximum ${name} usage per ${type} is ${bound}`;
  const [request, limit] = [asked.requests?.[name], asked.limits?.[name]];
  if (limit === undefined) return `${what}.  No limit is specified`;
  if (quantityMilli(limit) > quantityMilli(bound)) return `${what}, but limit is ${limit}`;
  if (request !== undefined && quantityMilli(request) > quantityMilli(bound))
    return `${what}, but request is ${request}`;
  return undefined;
}

function wrongRatio({ type }: Limit, name: string, bound: string, asked: Asked) {
  const what = `${name} max limit to request ratio per ${type} is ${bound}`;
  const request = quantityMilli(asked.requests?.[name] ?? "0");
  const limit = quantityMilli(asked.limits?.[name] ?? "0");
  if (request === 0) return `${what}, but no request is specified or request is 0`;
  if (limit === 0) return `${what}, but no limit is specified or limit is 0`;
  const ratio = limit / request;
  return ratio * 1000 > quantityMilli(bound)
    ? `${what}, but provided ratio is ${ratio.toFixed(6)}`
    : undefined;
}

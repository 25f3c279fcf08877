/**
 * Endpoints of pods, nodes and services that act instead of storing an object (kubernetes:
 * pkg/registry/core/{pod,node,service,componentstatus}): bindings to nodes, evictions within
 * disruption budgets, and connections to nodes, of which there are none.
 */
import {
  ApiError,
  badRequest,
  conflict,
  forbidden,
  type GroupVersionKind,
  type KindSource,
  type KubeObject,
  kubeObjectOf,
  type LabelSelectorObject,
  MadeObject,
  type NamedCreater,
  notFound,
  type RequestContext,
  type RestStorage,
  type ServedResource,
  selectorOfObject,
  withMetadata,
} from "@quorate/kube-storage";
import { servedUnstored } from "../authn/unstored-resource.ts";
import type { LocalClient, ResourceRef } from "../informers/local-client.ts";

const PODS: ResourceRef = { group: "", version: "v1", resource: "pods" };
const BUDGETS: ResourceRef = { group: "policy", version: "v1", resource: "poddisruptionbudgets" };
/** Budgets of one namespace that an eviction looks at. */
const MAX_BUDGETS = 500;

const SUCCESS = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" };

interface Binding extends KubeObject {
  readonly target?: { readonly kind?: string; readonly name?: string };
}

/** @param client acts for the requests, which are authorized by then */
export function podEndpoints(
  source: (kind: GroupVersionKind) => KindSource,
  client: LocalClient,
): readonly ServedResource[] {
  const core = (kind: string) => source({ group: "", version: "v1", kind });
  const endpoint = (
    resource: string,
    subresource: string,
    kind: KindSource,
    storage: RestStorage,
  ): ServedResource =>
    servedUnstored(
      {
        group: "",
        version: "v1",
        resource,
        singular: "",
        subresource,
        namespaced: resource !== "nodes",
        storage,
      },
      kind,
    );
  const connections = (resource: string, kinds: Readonly<Record<string, string>>) =>
    Object.entries(kinds).map(([subresource, kind]) =>
      endpoint(resource, subresource, core(kind), unconnected(resource, subresource, client)),
    );
  const bind = bindings(client);
  return [
    endpoint("pods", "binding", core("Binding"), bind),
    endpoint(
      "pods",
      "eviction",
      source({ group: "policy", version: "v1", kind: "Eviction" }),
      evictions(client),
    ),
    ...connections("pods", {
      attach: "PodAttachOptions",
      exec: "PodExecOptions",
      log: "Pod",
      portforward: "PodPortForwardOptions",
      proxy: "PodProxyOptions",
    }),
    ...connections("nodes", { proxy: "NodeProxyOptions" }),
    ...connections("services", { proxy: "ServiceProxyOptions" }),
    {
      ...endpoint("bindings", "", core("Binding"), {
        create: (ctx, object, validate, options) =>
          bind.createNamed(ctx, object.metadata.name ?? "", object, validate, options),
      }),
      singular: "binding",
    },
    {
      ...endpoint("componentstatuses", "", core("ComponentStatus"), componentStatuses()),
      namespaced: false,
      singular: "componentstatus",
      shortNames: ["cs"],
    },
  ];
}

function bindings(client: LocalClient): NamedCreater {
  return {
    async createNamed(ctx, name, object, validate, { dryRun }) {
      const { target = {}, metadata } = object as Binding;
      if (metadata.name !== name)
        throw badRequest("name in URL does not match name in Binding object");
      if ((target.kind ?? "") !== "" && target.kind !== "Node")
        throw badRequest(
          `target.kind: Unsupported value: "${target.kind}": supported values: "Node"`,
        );
      if ((target.name ?? "") === "") throw badRequest("target.name: Required value");
      await validate(object);
      const assign = (pod: KubeObject): KubeObject => assigned(pod, object as Binding);
      if (dryRun) assign(await present(client, ctx, name));
      else {
        await client.update(PODS, ctx.namespace, name, assign);
        const status = { ...PODS, subresource: "status" };
        await client.update(status, ctx.namespace, name, scheduled);
      }
      return kubeObjectOf(SUCCESS);
    },
  };
}

interface PodSpec {
  readonly nodeName?: string;
  readonly schedulingGates?: readonly unknown[];
}

interface PodStatus {
  readonly phase?: string;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
}

function assigned(pod: KubeObject, { target, metadata: binding }: Binding): KubeObject {
  const { name = "", deletionTimestamp } = pod.metadata;
  const spec = (pod["spec"] ?? {}) as PodSpec;
  const refuse = (why: string): ApiError =>
    conflict({ group: "", resource: "pods/binding" }, name, why);
  if (deletionTimestamp !== undefined)
    throw refuse(`pod ${name} is being deleted, cannot be assigned to a host`);
  if ((spec.nodeName ?? "") !== "")
    throw refuse(`pod ${name} is already assigned to node "${spec.nodeName}"`);
  if ((spec.schedulingGates ?? []).length > 0)
    throw refuse(`pod ${name} has non-empty .spec.schedulingGates`);
  const { annotations, labels } = binding;
  return {
    ...withMetadata(pod, {
      annotations: merged(pod.metadata.annotations, annotations),
      labels: merged(pod.metadata.labels, labels),
    }),
    spec: { ...spec, nodeName: target?.name },
  };
}

type Texts = Readonly<Record<string, string>> | undefined;

function merged(present: Texts, more: Texts): Texts {
  return present === undefined && more === undefined ? undefined : { ...present, ...more };
}

function scheduled(pod: KubeObject): KubeObject {
  const status = (pod["status"] ?? {}) as PodStatus;
  const others = (status.conditions ?? []).filter(({ type }) => type !== "PodScheduled");
  const conditions = [...others, { type: "PodScheduled", status: "True" }];
  return { ...pod, status: { ...status, conditions } };
}

async function present(
  client: LocalClient,
  { namespace }: RequestContext,
  name: string,
): Promise<KubeObject> {
  const pod = await client.get(PODS, namespace, name);
  if (pod === undefined) throw notFound(PODS, name);
  return pod;
}

function evictions(client: LocalClient): NamedCreater {
  return {
    async createNamed(ctx, name, object, validate, { dryRun }) {
      if (object.metadata.name !== name)
        throw badRequest("name in URL does not match name in Eviction object");
      await validate(object);
      const pod = await present(client, ctx, name);
      const { phase } = (pod["status"] ?? {}) as PodStatus;
      const isRunning = phase !== "Succeeded" && phase !== "Failed" && phase !== "Pending";
      if (isRunning && pod.metadata.deletionTimestamp === undefined)
        await disrupt(pod, client, dryRun);
      const options = (object["deleteOptions"] ?? {}) as {
        readonly gracePeriodSeconds?: number;
        readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
      };
      await client.delete(PODS, ctx.namespace, name, { ...options, dryRun });
      return kubeObjectOf(SUCCESS);
    },
  };
}

interface Budget extends KubeObject {
  readonly spec?: { readonly selector?: LabelSelectorObject };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly disruptionsAllowed?: number;
    readonly desiredHealthy?: number;
    readonly currentHealthy?: number;
    readonly disruptedPods?: Readonly<Record<string, string>>;
  };
}

/** Takes one disruption of the pod's budget. Rejects with ApiError where there is none left. */
async function disrupt(pod: KubeObject, client: LocalClient, dryRun: boolean): Promise<void> {
  const { namespace = "", labels = {}, name = "" } = pod.metadata;
  const { items } = await client.list(BUDGETS, namespace, MAX_BUDGETS);
  const budgets = items
    .map((item) => item.object() as Budget)
    .filter(({ spec }) => spec?.selector && selectorOfObject(spec.selector).matches(labels));
  if (budgets.length > 1) {
    const text =
      "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    throw new ApiError(500, "InternalError", text);
  }
  const [budget] = budgets;
  if (budget === undefined) return;
  const take = (present: KubeObject): KubeObject => disrupted(present as Budget, name);
  if (dryRun) take(budget);
  else
    await client.update(
      { ...BUDGETS, subresource: "status" },
      namespace,
      budget.metadata.name ?? "",
      take,
    );
}

function disrupted(budget: Budget, pod: string): KubeObject {
  const { name = "", generation = 0 } = budget.metadata;
  const { status = {} } = budget;
  const { disruptionsAllowed = 0, desiredHealthy = 0, currentHealthy = 0 } = status;
  if ((status.observedGeneration ?? 0) < generation)
    throw tooMany(`The disruption budget ${name} is still being processed by the server.`, 10);
  if (disruptionsAllowed < 0)
    throw forbidden(
      { group: "policy", resource: "poddisruptionbudget" },
      name,
      "pdb disruptions allowed is negative",
    );
  if (disruptionsAllowed === 0)
    throw tooMany(
      `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ` +
        `${currentHealthy} currently`,
    );
  const disruptedPods = { ...status.disruptedPods, [pod]: null };
  return {
    ...budget,
    status: { ...status, disruptionsAllowed: disruptionsAllowed - 1, disruptedPods },
  };
}

function tooMany(message: string, retryAfterSeconds?: number): ApiError {
  const text = "Cannot evict pod as it would violate the pod's disruption budget.";
  return new ApiError(429, "TooManyRequests", text, {
    causes: [{ reason: "DisruptionBudget", message }],
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
}

/** Connections that need a node: each ends with why there is none. */
function unconnected(resource: string, subresource: string, client: LocalClient): RestStorage {
  const refuse = async ({ namespace }: RequestContext, name: string): Promise<never> => {
    const ref = { group: "", version: "v1", resource };
    const object = await client.get(ref, resource === "nodes" ? "" : namespace, name);
    if (object === undefined) throw notFound(ref, name);
    const { nodeName = "" } = (object["spec"] ?? {}) as PodSpec;
    if (resource === "pods" && nodeName === "")
      throw badRequest(`pod ${name} does not have a host assigned`);
    throw new ApiError(503, "ServiceUnavailable", `no node is connected to this server`);
  };
  if (subresource === "log") return { get: refuse };
  const asked = { get: refuse, createNamed: refuse };
  return subresource === "proxy" ? { ...asked, update: refuse, delete: refuse } : asked;
}

function componentStatuses(): RestStorage {
  const healthy = {
    kind: "ComponentStatus",
    apiVersion: "v1",
    metadata: { name: "etcd-0" },
    conditions: [{ type: "Healthy", status: "True", message: "ok" }],
  } as KubeObject;
  const object = new MadeObject("", 0, healthy);
  return {
    async get(_ctx, name) {
      if (name === "etcd-0") return object;
      throw notFound({ group: "", resource: "componentstatuses" }, name);
    },
    list: async () => ({
      items: [object],
      resourceVersion: "",
      continueToken: "",
      remainingItemCount: undefined,
    }),
  };
}

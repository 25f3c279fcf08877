/**
 * Empties namespaces that are being deleted (Kubernetes: pkg/controller/namespace/deletion).
 *
 *     Terminating -> delete collections of every resource -> anything left? -> status, retry
 *                                                         -> nothing left   -> /finalize: gone
 */
import type { Clock, Logger } from "@quorate/host";
import {
  ApiError,
  type KubeObject,
  metaTime,
  resourceName,
  type ServedResource,
  type ServedResources,
} from "@quorate/kube-storage";
import { finalizersOf } from "../builtin/namespaces.ts";
import {
  isConflict,
  isNotFound,
  type LocalClient,
  type ResourceRef,
} from "../informers/local-client.ts";
import { WorkQueue } from "./work-queue.ts";

const NAMESPACES: ResourceRef = { group: "", version: "v1", resource: "namespaces" };
const FINALIZER = "kubernetes";
export const MAX_TERMINATING_NAMESPACES = 100_000;
/** Objects of a resource that are looked at to count finalizers. */
const MAX_COUNTED = 500;

export interface NamespaceDeletionDependencies {
  readonly client: LocalClient;
  readonly served: ServedResources;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What is left of a namespace's contents. */
interface Remaining {
  readonly byResource: Map<string, number>;
  readonly byFinalizer: Map<string, number>;
  readonly errors: string[];
}

export class NamespaceDeletion {
  readonly #deps: NamespaceDeletionDependencies;
  readonly queue: WorkQueue<string>;

  constructor(deps: NamespaceDeletionDependencies, rescan: () => void) {
    this.#deps = deps;
    const { clock, logger } = deps;
    this.queue = new WorkQueue(
      {
        name: "namespaces",
        concurrency: 4,
        maxKeys: MAX_TERMINATING_NAMESPACES,
        process: (name) => this.#process(name),
        rescan,
      },
      clock,
      logger,
    );
  }

  /** Call it with each namespace as it changes. */
  observe(namespace: KubeObject): void {
    if (namespace.metadata.deletionTimestamp === undefined) return;
    if (finalizersOf(namespace).length > 0) this.queue.add(namespace.metadata.name ?? "");
  }

  stop(): void {
    this.queue.stop();
  }

  async #process(name: string): Promise<boolean> {
    const { client } = this.#deps;
    const namespace = await client.get(NAMESPACES, "", name);
    if (namespace?.metadata.deletionTimestamp === undefined) return true;
    if (!finalizersOf(namespace).includes(FINALIZER)) return true;
    const remaining = await this.#empty(name);
    try {
      await this.#report(namespace, remaining);
      if (remaining.byResource.size > 0 || remaining.errors.length > 0) return false;
      await client.update({ ...NAMESPACES, subresource: "finalize" }, "", name, withoutFinalizer);
      return true;
    } catch (error) {
      if (isNotFound(error)) return true;
      if (isConflict(error)) return false;
      throw error;
    }
  }

  async #empty(name: string): Promise<Remaining> {
    const remaining: Remaining = { byResource: new Map(), byFinalizer: new Map(), errors: [] };
    for (const resource of namespacedResources(this.#deps.served)) {
      try {
        await this.#deps.client.deleteCollection(resource, name);
        await this.#count(resource, name, remaining);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        // The resource may have gone meanwhile.
        if (!isNotFound(error)) remaining.errors.push(error.message);
      }
    }
    return remaining;
  }

  async #count(resource: ServedResource, namespace: string, into: Remaining): Promise<void> {
    const list = await this.#deps.client.list(resource, namespace, MAX_COUNTED);
    if (list.items.length === 0) return;
    const count = list.items.length + (list.remainingItemCount ?? 0);
    into.byResource.set(`${resource.resource}.${resource.group}`, count);
    for (const item of list.items) {
      for (const finalizer of item.object().metadata.finalizers ?? []) {
        into.byFinalizer.set(finalizer, (into.byFinalizer.get(finalizer) ?? 0) + 1);
      }
    }
  }

  async #report({ metadata }: KubeObject, remaining: Remaining): Promise<void> {
    const now = metaTime(this.#deps.clock.wallMs());
    const ref = { ...NAMESPACES, subresource: "status" };
    await this.#deps.client.update(ref, "", metadata.name ?? "", (present) => {
      const status = (present["status"] ?? {}) as { readonly conditions?: readonly Condition[] };
      const before = status.conditions ?? [];
      const conditions = conditionsOf(remaining, before, now);
      return conditions === undefined
        ? undefined
        : { ...present, status: { ...status, conditions } };
    });
  }
}

/** One version of each resource whose objects are in namespaces and can be deleted. */
function namespacedResources(served: ServedResources): readonly ServedResource[] {
  const seen = new Set<string>();
  return served.all().filter((resource) => {
    const { namespaced, subresource, storage } = resource;
    if (!namespaced || subresource !== "") return false;
    if (storage.deleteCollection === undefined || storage.list === undefined) return false;
    const name = resourceName(resource);
    return !seen.has(name) && seen.add(name);
  });
}

function withoutFinalizer(namespace: KubeObject): KubeObject {
  const finalizers = finalizersOf(namespace).filter((one) => one !== FINALIZER);
  return { ...namespace, spec: { ...(namespace["spec"] as object), finalizers } };
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly lastTransitionTime: string;
  readonly reason: string;
  readonly message: string;
}

/** The conditions in their order, with what they say where nothing is wrong. */
const GOOD = [
  [
    "NamespaceDeletionDiscoveryFailure",
    "ResourcesDiscovered",
    "All resources successfully discovered",
  ],
  [
    "NamespaceDeletionGroupVersionParsingFailure",
    "ParsedGroupVersions",
    "All legacy kube types successfully parsed",
  ],
  [
    "NamespaceDeletionContentFailure",
    "ContentDeleted",
    "All content successfully deleted, may be waiting on finalization",
  ],
  ["NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"],
  [
    "NamespaceFinalizersRemaining",
    "ContentHasNoFinalizers",
    "All content-preserving finalizers finished",
  ],
] as const;

/** Undefined where they are as before. */
function conditionsOf(
  remaining: Remaining,
  before: readonly Condition[],
  now: string,
): readonly Condition[] | undefined {
  const bad = problemsOf(remaining);
  const conditions = GOOD.map(([type, goodReason, goodMessage]): Condition => {
    const [reason, message] = bad.get(type) ?? [goodReason, goodMessage];
    const status = bad.has(type) ? "True" : "False";
    const old = before.find((one) => one.type === type);
    const lastTransitionTime = old?.status === status ? old.lastTransitionTime : now;
    return { type, status, lastTransitionTime, reason, message };
  });
  const isSame = conditions.every(({ type, status, reason, message }) =>
    before.some(
      (old) =>
        old.type === type &&
        old.status === status &&
        old.reason === reason &&
        old.message === message,
    ),
  );
  const others = before.filter(({ type }) => !GOOD.some(([own]) => own === type));
  return isSame ? undefined : [...others, ...conditions];
}

function problemsOf({ byResource, byFinalizer, errors }: Remaining): Map<string, [string, string]> {
  const bad = new Map<string, [string, string]>();
  if (errors.length > 0) {
    const text = `Failed to delete all resource types, ${errors.length} remaining: `;
    const message = text + [...errors].sort().join(", ");
    bad.set("NamespaceDeletionContentFailure", ["ContentDeletionFailed", message]);
  }
  if (byResource.size > 0) {
    const parts = [...byResource].map(([name, count]) => `${name} has ${count} resource instances`);
    const message = `Some resources are remaining: ${parts.sort().join(", ")}`;
    bad.set("NamespaceContentRemaining", ["SomeResourcesRemain", message]);
  }
  if (byFinalizer.size > 0) {
    const parts = [...byFinalizer].map(([name, count]) => `${name} in ${count} resource instances`);
    const message = `Some content in the namespace has finalizers remaining: ${parts.sort().join(", ")}`;
    bad.set("NamespaceFinalizersRemaining", ["SomeFinalizersRemain", message]);
  }
  return bad;
}

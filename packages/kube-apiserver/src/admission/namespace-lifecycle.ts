/**
 * NamespaceLifecycle (apiserver: pkg/admission/plugin/namespace/lifecycle): writes need their
 * namespace; a namespace that is being deleted takes no new objects; some are never deleted.
 */
import { type Clock, setNewest } from "@quorate/host";
import {
  ApiError,
  forbidden,
  type KubeObject,
  notFound,
  type RequestContext,
  type ServedResources,
  storageWith,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { phaseOf } from "../builtin/namespaces.ts";
import type { InformerHandler } from "../informers/informer.ts";
import type { AdmissionAttributes } from "./admission.ts";
import { type AdmissionPlugin, admissionForbidden } from "./chain.ts";

const IMMORTAL = new Set(["default", "kube-system", "kube-public"]);
/** For so long after a deletion the cached namespace is not relied on, of so many namespaces. */
const LIVE_LOOKUP_MS = 30_000;
export const MAX_LIVE_LOOKUPS = 100;

export function namespaceLifecycle(namespaces: Namespaces, clock: Clock): AdmissionPlugin {
  const deletedAtMs = new Map<string, number>();
  return {
    async mutate(attributes) {
      await check(attributes, namespaces, clock, deletedAtMs);
      return attributes.object;
    },
  };
}

async function check(
  attributes: AdmissionAttributes,
  namespaces: Namespaces,
  clock: Clock,
  deletedAtMs: Map<string, number>,
): Promise<void> {
  const { operation, kind, resource, name, namespace } = attributes;
  if (kind.group === "" && kind.kind === "Namespace") {
    if (operation !== "DELETE") return;
    if (IMMORTAL.has(name)) throw forbidden(resource, name, "this namespace may not be deleted");
    setNewest(deletedAtMs, name, clock.monotonicMs(), MAX_LIVE_LOOKUPS);
    return;
  }
  if (namespace === "" || operation === "DELETE" || operation === "CONNECT") return;
  if (isAccessReview(attributes)) return;
  const cached = namespaces.cached(namespace);
  const deletedMs = deletedAtMs.get(namespace);
  const mayBeStale =
    deletedMs !== undefined &&
    clock.monotonicMs() - deletedMs < LIVE_LOOKUP_MS &&
    phaseOf(cached) === "Active";
  const found = cached === undefined || mayBeStale ? await namespaces.live(namespace) : cached;
  if (found === undefined) throw notFound({ group: "", resource: "namespaces" }, namespace);
  if (operation === "CREATE" && phaseOf(found) === "Terminating") throw terminating(attributes);
}

/** A review must not reveal which namespaces there are. */
function isAccessReview({ resource }: AdmissionAttributes): boolean {
  const { group } = resource;
  return group === "authorization.k8s.io" && resource.resource === "localsubjectaccessreviews";
}

function terminating(attributes: AdmissionAttributes): ApiError {
  const { namespace } = attributes;
  const { httpStatus, code, message, details } = admissionForbidden(
    attributes,
    `unable to create new content in namespace ${namespace} because it is being terminated`,
  );
  const cause = {
    reason: "NamespaceTerminating",
    message: `namespace ${namespace} is being terminated`,
    field: "metadata.namespace",
  };
  return new ApiError(httpStatus, code, message, { ...details, causes: [cause] });
}

export interface Namespaces {
  /** From memory; undefined where there is none, or not yet. */
  cached(name: string): KubeObject | undefined;
  /** From the store; undefined where there is none. Rejects with ApiError. */
  live(name: string): Promise<KubeObject | undefined>;
}

/** Namespaces as admission sees them: as an informer follows them, and from the store behind it. */
export class KnownNamespaces implements Namespaces, InformerHandler {
  readonly #served: ServedResources;
  readonly #context: () => RequestContext;
  readonly #known = new Map<string | undefined, KubeObject>();

  /** @param context of reads, with a user that may read namespaces */
  constructor(served: ServedResources, context: () => RequestContext) {
    this.#served = served;
    this.#context = context;
  }

  added(namespace: KubeObject): void {
    this.#known.set(namespace.metadata.name, namespace);
  }

  updated(namespace: KubeObject): void {
    this.added(namespace);
  }

  deleted(namespace: KubeObject): void {
    this.#known.delete(namespace.metadata.name);
  }

  cached(name: string): KubeObject | undefined {
    return this.#known.get(name);
  }

  async live(name: string): Promise<KubeObject | undefined> {
    const { storage } = defined(this.#served.find("", "v1", "namespaces", ""), "namespaces");
    try {
      const options = { resourceVersion: "" };
      return (await storageWith(storage, "get").get(this.#context(), name, options)).object();
    } catch (error) {
      if (error instanceof ApiError && error.httpStatus === 404) return undefined;
      throw error;
    }
  }
}

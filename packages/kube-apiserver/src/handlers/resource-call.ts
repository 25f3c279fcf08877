/** What the handlers of a resource work with: the request, its resource, and the server's parts. */
import type { Logger, Random } from "@quorate/host";
import {
  ApiError,
  badRequest,
  type KubeObject,
  type OwnerReference,
  type RequestContext,
  type ServedResource,
} from "@quorate/kube-storage";
import type { Admission, AdmissionAttributes } from "../admission/admission.ts";
import type { FieldManagers } from "../apply/field-manager.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import type { Chaos, RequestChaos } from "../chaos/chaos.ts";
import type { Call } from "./call.ts";
import type { Negotiated } from "./negotiation.ts";
import type { SendDeps } from "./send-object.ts";
import type { Target } from "./target.ts";
import type { SharedFrames } from "./watch-frames.ts";
import type { SocketOpener } from "./watch-output.ts";

/** Writes get at most this long (apiserver: requestTimeoutUpperBound). */
export const WRITE_TIMEOUT_MS = 34_000;

export interface HandlerDeps extends SendDeps {
  readonly logger: Logger;
  readonly random: Random;
  readonly admission: Admission;
  readonly authorizer: Authorizer;
  /** Who tracks the fields of a resource's objects. */
  readonly fieldManagers: FieldManagers;
  /** Lists and watches may be of shards (ShardedListAndWatch). */
  readonly takesShards: boolean;
  /** Watches without a timeout end after this long, or up to twice as long. */
  readonly minWatchMs: number;
  readonly watches: OpenWatches;
  /** Of WRITE_TIMEOUT_MS. */
  readonly writeTimeouts: { add(task: () => void): () => void };
  /** Opens WebSockets for watches; undefined: they are answered as other requests. */
  readonly openSocket: SocketOpener | undefined;
  readonly frames: SharedFrames;
  /** Faults for tests; undefined: none. */
  readonly chaos: Chaos | undefined;
}

/** The open watches of the server. */
export interface OpenWatches {
  /**
   * Registers a watch. Throws ApiError 429 where the user has too many.
   * @param end called when the server stops
   * @returns to be called when the watch is over
   */
  open(call: Call, resource: ServedResource, end: () => void): () => void;
  /** Counts an event that was sent. */
  sent(resource: ServedResource, sizeBytes: number): void;
}

/** A request about a resource. */
export interface ResourceCall {
  readonly call: Call;
  /** Whom it is about: what was authorized, and all that a handler may act on. */
  readonly target: Target;
  readonly resource: ServedResource;
  readonly ctx: RequestContext;
  readonly form: Negotiated;
  /** The faults that it meets, in tests with faults. */
  readonly chaos: RequestChaos | undefined;
}

/** Group, version and resource, for errors and admission. */
export function resourceOf({ group, version, resource }: ServedResource) {
  return { group, version, resource };
}

/**
 * The attributes that are the same for all objects of a request.
 * @param named the object, where the path names none: a new one, or one of a collection
 */
export function admissionAttributes(
  { call, resource, target, ctx }: ResourceCall,
  operation: AdmissionAttributes["operation"],
  object: KubeObject | undefined,
  oldObject: KubeObject | undefined,
  options: { readonly object: unknown; readonly dryRun: boolean },
  named: { readonly name: string; readonly namespace: string } = target,
): AdmissionAttributes {
  const { name, namespace } = named;
  return {
    operation,
    object,
    oldObject,
    name,
    namespace,
    user: call.user,
    kind: resource.kind,
    resource: resourceOf(resource),
    subresource: resource.subresource,
    options: options.object,
    dryRun: options.dryRun,
    signal: ctx.signal,
    warn: ctx.warn,
    annotate: call.audit && ((key, value) => call.audit?.annotate(key, value)),
  };
}

/** Throws ApiError 400 where the object's name is not the one in the path. */
export function checkName(object: KubeObject, name: string): void {
  const own = object.metadata.name ?? "";
  if (own === "")
    throw badRequest(
      `the name of the object (${name} based on URL) was undeterminable: name must be provided`,
    );
  if (own !== name)
    throw badRequest(
      `the name of the object (${own}) does not match the name on the URL (${name})`,
    );
}

/** Unknown and duplicate fields: refused, warned of, or ignored. Throws ApiError 400. */
export function reportStrictErrors(
  ctx: RequestContext,
  resource: ServedResource,
  errors: readonly string[],
  validation: "Ignore" | "Warn" | "Strict",
): void {
  if (errors.length === 0 || validation === "Ignore") return;
  if (validation === "Warn") {
    for (const error of errors) ctx.warn(error);
    return;
  }
  const { kind, version } = resource.kind;
  const why = `strict decoding error: ${errors.join(", ")}`;
  throw badRequest(
    `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${why}`,
  );
}

/** Leaves out owner references that are there twice, and warns of them. */
export function dedupedOwners(
  object: KubeObject,
  ctx: RequestContext,
  afterAdmission: boolean,
): KubeObject {
  const references = object.metadata.ownerReferences ?? [];
  if (references.length < 2) return object;
  const kept = new Map<string, OwnerReference>();
  const duplicates: string[] = [];
  for (const reference of references) {
    const text = JSON.stringify(Object.entries(reference).sort());
    if (kept.has(text)) duplicates.push(reference.uid);
    else kept.set(text, reference);
  }
  if (duplicates.length === 0) return object;
  const when = afterAdmission ? " after mutating admission happens" : "";
  ctx.warn(
    `.metadata.ownerReferences contains duplicate entries${when}; API server dedups owner ` +
      "references in 1.20+, and may reject such requests as early as 1.24; please fix your " +
      `requests; duplicate UID(s) observed: ${duplicates.join(", ")}`,
  );
  return { ...object, metadata: { ...object.metadata, ownerReferences: [...kept.values()] } };
}

/** The namespace that an object of a request is in; "" for a resource without namespaces. */
export function namespaceFor({ namespaced }: ServedResource, ctx: RequestContext): string {
  return namespaced ? ctx.namespace : "";
}

/** A failure that is not the client's becomes 500, with its reason in the log. */
export function apiErrorOf(error: unknown, logger: Logger, call: Call): ApiError {
  if (error instanceof ApiError) return error;
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  const { method, path } = call.target;
  logger.error("a request failed", { method, path, "audit-id": call.auditId, error: stack ?? "" });
  return new ApiError(500, "InternalError", `Internal error occurred: ${message}`, {
    causes: [{ message }],
  });
}

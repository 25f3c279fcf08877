/**
 * Deletes objects (apiserver: registry/generic/registry/store.go Delete).
 *
 *     checks -> finalizers or a grace period? mark the object as deleted, it stays
 *            -> else admission, deletion
 */
import { CodedError, defined } from "@quorate/proto";
import { type KubeObject, withMetadata } from "../meta/object.ts";
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from "../meta/object-meta-validation.ts";
import type { Status } from "../meta/status.ts";
import { metaTime, parseTime } from "../meta/time.ts";
import type { RequestContext } from "../rest/context.ts";
import type { RestDeleteOptions, ValidateObject } from "../rest/interfaces.ts";
import { StorageError } from "../storage/errors.ts";
import { interpretStorageError } from "../storage/interpret-error.ts";
import { planDeletion } from "./before-delete.ts";
import { RequestWriter } from "./dry-run.ts";
import { keyOf, type StoreContext } from "./resource-spec.ts";

export interface DeleteResult {
  readonly result: KubeObject | Status;
  /** False where finalizers or a grace period keep the object. */
  readonly deletedNow: boolean;
}

/** Thrown out of the storage's update: nothing is to be written. */
class NoUpdate extends CodedError<"DeleteNow" | "Pending"> {
  constructor(code: "DeleteNow" | "Pending") {
    super("NoUpdate", code, "nothing to write");
  }
}

/** One deletion. */
interface DeleteCall {
  readonly context: StoreContext;
  readonly ctx: RequestContext;
  readonly name: string;
  readonly key: string;
  readonly validate: ValidateObject;
  readonly options: RestDeleteOptions;
  readonly writer: RequestWriter;
}

/** What an update left to do. */
interface Marked {
  readonly deleteNow: boolean;
  /** The object after the update; undefined where nothing was written. */
  readonly object: KubeObject | undefined;
  /** The grace period was 0, and another party may complete the deletion first. */
  readonly mayBeGone: boolean;
}

/** Sets deletionTimestamp on an object that finalizers keep. */
function markedAsDeleted(object: KubeObject, nowMs: number): KubeObject {
  const { deletionTimestamp, generation = 0 } = object.metadata;
  const first = deletionTimestamp === undefined;
  const later = first || (parseTime(deletionTimestamp) ?? 0) > nowMs;
  return withMetadata(object, {
    deletionTimestamp: later ? metaTime(nowMs) : deletionTimestamp,
    deletionGracePeriodSeconds: 0,
    generation: first && generation > 0 ? generation + 1 : object.metadata.generation,
  });
}

/** The response: the object for kinds that return it, else a Status with its uid. */
async function finished(
  { context, writer }: DeleteCall,
  object: KubeObject,
  gone: boolean,
): Promise<KubeObject | Status> {
  const { spec, resource, hooks } = context;
  if (gone && !writer.dryRun) await hooks.afterDelete?.(object);
  if (spec.returnsDeletedObject === true) return object;
  const { name, uid } = object.metadata;
  const details = { name, group: resource.group || undefined, kind: resource.resource, uid };
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
}

/** Marks the object as deleted, or finds that it can go at once. Throws ApiError. */
async function mark(call: DeleteCall): Promise<Marked | "pending"> {
  const { context, key, validate, options, writer, name } = call;
  let keeps = false;
  let graceful = false;
  let graceSeconds = 0;
  try {
    const object = await writer.update(
      key,
      async (existing) => {
        const present = defined(existing, "the object");
        await validate(present);
        const plan = planDeletion(context, present, options);
        if (plan.kind === "pending") throw new NoUpdate("Pending");
        const finalizers = finalizersForDeletion(context, plan.object, options);
        const changed =
          finalizers === undefined ? plan.object : withMetadata(plan.object, { finalizers });
        keeps = (changed.metadata.finalizers ?? []).length > 0;
        graceful = plan.kind === "graceful";
        graceSeconds = plan.gracePeriodSeconds;
        if (graceful) return { object: changed };
        if (!keeps) throw new NoUpdate("DeleteNow");
        return { object: markedAsDeleted(changed, context.parts.clock.wallMs()) };
      },
      false,
      options.preconditions ?? {},
    );
    const deleteNow = !keeps && graceSeconds <= 0;
    return { deleteNow, object, mayBeGone: deleteNow };
  } catch (error) {
    if (!(error instanceof NoUpdate)) {
      throw interpretStorageError(error, "update", context.resource, name);
    }
    if (error.code === "Pending") return "pending";
    return { deleteNow: true, object: undefined, mayBeGone: false };
  }
}

/** Deletes the object from the storage. */
async function remove(call: DeleteCall, marked: Marked | undefined): Promise<DeleteResult> {
  const { context, key, validate, options, writer, name } = call;
  const { uid, resourceVersion } = options.preconditions ?? {};
  const updated = marked?.object;
  const preconditions = {
    uid,
    resourceVersion:
      resourceVersion === undefined || updated === undefined
        ? resourceVersion
        : updated.metadata.resourceVersion,
  };
  try {
    const deleted = await writer.delete(key, { preconditions, validate });
    return { result: await finished(call, deleted, true), deletedNow: true };
  } catch (error) {
    const gone = error instanceof StorageError && error.code === "KeyNotFound";
    if (gone && marked?.mayBeGone === true && updated !== undefined) {
      return { result: await finished(call, updated, true), deletedNow: true };
    }
    throw interpretStorageError(error, "delete", context.resource, name);
  }
}

/** Deletes one object, or marks it as deleted. Throws ApiError. */
export async function deleteObject(
  context: StoreContext,
  ctx: RequestContext,
  name: string,
  validate: ValidateObject,
  options: RestDeleteOptions,
): Promise<DeleteResult> {
  const { spec, parts, resource } = context;
  const key = keyOf(spec, ctx.namespace, name);
  const writer = new RequestWriter(parts.storage, ctx, options.dryRun);
  const call: DeleteCall = { context, ctx, name, key, validate, options, writer };
  let present: KubeObject;
  try {
    present = defined(await parts.storage.get(key, { signal: ctx.signal }), "the object").object();
  } catch (error) {
    throw interpretStorageError(error, "delete", resource, name);
  }
  await context.hooks.beginDelete?.(ctx, present);
  const plan = planDeletion(context, present, options);
  if (plan.kind === "pending") {
    return { result: await finished(call, present, false), deletedNow: false };
  }
  const stays =
    plan.kind === "graceful" ||
    (present.metadata.finalizers ?? []).length > 0 ||
    finalizersForDeletion(context, present, options) !== undefined;
  if (!stays) return await remove(call, undefined);
  const marked = await mark(call);
  if (marked === "pending")
    return { result: await finished(call, present, false), deletedNow: false };
  if (!marked.deleteNow) return { result: defined(marked.object, "the object"), deletedNow: false };
  if (options.dryRun && marked.object !== undefined) {
    return { result: marked.object, deletedNow: true };
  }
  return await remove(call, marked);
}

type Dependents = "orphan" | "foreground" | "background";

/** What a deletion wants for dependents: its options first, then the object, then its kind. */
function wantedFor(
  { spec }: StoreContext,
  object: KubeObject,
  options: RestDeleteOptions,
): Dependents {
  const policy = spec.garbageCollection ?? "background";
  if (policy === "unsupported") return "background";
  if (options.orphanDependents !== undefined) {
    return options.orphanDependents ? "orphan" : "background";
  }
  if (options.propagationPolicy === "Orphan") return "orphan";
  if (options.propagationPolicy === "Foreground") return "foreground";
  if (options.propagationPolicy === "Background") return "background";
  for (const finalizer of object.metadata.finalizers ?? []) {
    if (finalizer === ORPHAN_FINALIZER) return "orphan";
    if (finalizer === FOREGROUND_FINALIZER) return "foreground";
  }
  return policy;
}

/**
 * Finalizers by which the garbage collector deletes or orphans dependents (apiserver:
 * registry/generic/registry/store.go, deletionFinalizersForGarbageCollection). The finalizers that
 * the deletion has to set; undefined where they stay as they are.
 */
function finalizersForDeletion(
  context: StoreContext,
  object: KubeObject,
  options: RestDeleteOptions,
): readonly string[] | undefined {
  if (!context.parts.collectsGarbage) return undefined;
  const present = object.metadata.finalizers ?? [];
  const wanted = present.filter(
    (name) => name !== ORPHAN_FINALIZER && name !== FOREGROUND_FINALIZER,
  );
  const dependents = wantedFor(context, object, options);
  if (dependents === "orphan") wanted.push(ORPHAN_FINALIZER);
  if (dependents === "foreground") wanted.push(FOREGROUND_FINALIZER);
  const set = new Set(wanted);
  const same = present.every((name) => set.has(name)) && set.size === new Set(present).size;
  return same ? undefined : wanted;
}

/**
 * Updates objects (apiserver: registry/generic/registry/store.go Update, registry/rest/update.go).
 *
 *     new object from the present one -> revision check -> beginUpdate -> namespace
 *       -> prepareForUpdate -> metadata that stays -> validation -> warnings -> canonicalize
 *       -> admission -> write, or deletion where the last finalizer went -> afterUpdate
 */
import { CodedError } from "@quorate/proto";
import { sameJson } from "../meta/equality.ts";
import { invalidValue } from "../meta/field-errors.ts";
import { type NameRule, nameIsDnsSubdomain, nameIsPathSegment } from "../meta/names.ts";
import {
  inNamespace,
  type KubeObject,
  type ManagedFieldsEntry,
  type ObjectMeta,
  withMetadata,
} from "../meta/object.ts";
import { validateObjectMeta, validateObjectMetaUpdate } from "../meta/object-meta-validation.ts";
import { conflict, type FieldError, generateNameConflict, invalid } from "../meta/status.ts";
import type { RequestContext } from "../rest/context.ts";
import type {
  UpdatedObject,
  ValidateObject,
  ValidateUpdate,
  WriteOptions,
} from "../rest/interfaces.ts";
import { StorageError } from "../storage/errors.ts";
import type { Preconditions, Updated } from "../storage/interface.ts";
import { interpretStorageError } from "../storage/interpret-error.ts";
import { beforeCreate, withSystemFields } from "./create.ts";
import { RequestWriter } from "./dry-run.ts";
import { keyOf, type StoreContext } from "./resource-spec.ts";
import type { BegunWrite } from "./strategy.ts";

/** The text of an update with an old resourceVersion (Kubernetes: OptimisticLockErrorMsg). */
export const MODIFIED =
  "the object has been modified; please apply your changes to the latest version and try again";

/** Thrown out of the storage's update: the object has to be deleted instead. */
class LastFinalizerRemoved extends CodedError<"LastFinalizerRemoved"> {
  readonly object: KubeObject;

  constructor(object: KubeObject) {
    const message = "the last finalizer of a deleted object is gone";
    super("LastFinalizerRemoved", "LastFinalizerRemoved", message);
    this.object = object;
  }
}

/** What the hooks of an update began. An attempt that lost a race is undone before the next. */
class BegunUpdate {
  #last: BegunWrite | undefined;

  /** Begins an attempt. Resolves with the object, changed or not. */
  async next(
    begin: () => Promise<BegunWrite> | undefined,
    object: KubeObject,
  ): Promise<KubeObject> {
    await this.finish(false);
    this.#last = await begin();
    return this.#last?.object ?? object;
  }

  async finish(isWritten: boolean): Promise<void> {
    const last = this.#last;
    this.#last = undefined;
    await last?.finish?.(isWritten);
  }
}

/** What an update needs besides the store's context. */
interface UpdateCall {
  readonly context: StoreContext;
  readonly ctx: RequestContext;
  readonly name: string;
  readonly begun: BegunUpdate;
  readonly dryRun: boolean;
  readonly validateCreate: ValidateObject;
  readonly validateUpdate: ValidateUpdate;
}

/** Metadata that no update changes. */
function withKeptMetadata(object: KubeObject, old: KubeObject): KubeObject {
  const { metadata } = object;
  const before = old.metadata;
  const graceless = metadata.deletionGracePeriodSeconds === undefined;
  return withMetadata(object, {
    uid: (metadata.uid ?? "") === "" ? before.uid : metadata.uid,
    creationTimestamp: before.creationTimestamp ?? metadata.creationTimestamp,
    deletionTimestamp: before.deletionTimestamp ?? metadata.deletionTimestamp,
    deletionGracePeriodSeconds: graceless
      ? before.deletionGracePeriodSeconds
      : metadata.deletionGracePeriodSeconds,
  });
}

/**
 * Errors of changed metadata. Kubernetes checks it for all kinds, then again with the rules of the
 * kind: each error is a cause of the Status several times, and once in its message.
 */
function metadataErrors(
  nameRule: NameRule,
  namespaced: boolean,
  metadata: ObjectMeta,
  old: ObjectMeta,
): FieldError[] {
  const own = validateObjectMeta(metadata, namespaced, nameRule);
  const changes = validateObjectMetaUpdate(metadata, old);
  if (nameRule === nameIsPathSegment) return [...own, ...changes];
  // Good names of the kind are good names of any kind.
  const all = own.length === 0 ? [] : validateObjectMeta(metadata, namespaced, nameIsPathSegment);
  return [...all, ...changes, ...changes, ...own];
}

async function beforeUpdate(
  { context, ctx }: UpdateCall,
  object: KubeObject,
  old: KubeObject,
): Promise<KubeObject> {
  const { spec, updateStrategy: strategy } = context;
  const { nameRule = nameIsDnsSubdomain, kind, namespaced } = spec;
  const placed = withMetadata(inNamespace(object, namespaced ? ctx.namespace : ""), {
    generation: old.metadata.generation,
  });
  const prepared = withKeptMetadata(strategy.prepareForUpdate(ctx, placed, old), old);
  const { metadata } = prepared;
  const errors = [
    ...metadataErrors(nameRule, namespaced, metadata, old.metadata),
    ...(await strategy.validateUpdate(ctx, prepared, old)),
  ];
  if (errors.length > 0) throw invalid(kind, metadata.name ?? "", errors);
  for (const text of strategy.warningsOnUpdate?.(ctx, prepared, old) ?? []) ctx.warn(text);
  const canonical = strategy.canonicalize?.(prepared) ?? prepared;
  return keepManagedTimes(canonical, old);
}

/** The object with the present revision. Throws ApiError 409 or 422. */
function atPresentRevision(call: UpdateCall, object: KubeObject, old: KubeObject): KubeObject {
  const { context, name } = call;
  const { resource, parts, updateStrategy } = context;
  const { versioner } = parts.storage;
  const wanted = versioner.resourceVersionOf(object);
  if (wanted === versioner.resourceVersionOf(old)) return object;
  if (wanted !== 0) throw conflict(resource, name, MODIFIED);
  if (updateStrategy.allowUnconditionalUpdate) {
    return withMetadata(object, { resourceVersion: old.metadata.resourceVersion });
  }
  const text = "must be specified for an update";
  const errors = [invalidValue("metadata.resourceVersion", 0, text)];
  throw invalid({ group: resource.group, kind: resource.resource }, name, errors);
}

/** Whether nothing keeps a deleted object any more. */
function deletesNow({ spec }: StoreContext, object: KubeObject, old: KubeObject): boolean {
  if ((object.metadata.finalizers ?? []).length > 0) return false;
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = old.metadata;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds !== 0) return false;
  return spec.deletesDuringUpdate?.(object, old) ?? true;
}

async function makeCreated(call: UpdateCall, object: KubeObject): Promise<Updated> {
  const { context, ctx, validateCreate, begun, dryRun } = call;
  const filled = withSystemFields(context, object);
  const created = await begun.next(() => context.hooks.beginCreate?.(ctx, filled, dryRun), filled);
  const ready = await beforeCreate(context, ctx, created);
  await validateCreate(ready);
  return { object: ready, ttlSeconds: context.spec.ttlSeconds?.(ready) };
}

async function makeUpdated(
  call: UpdateCall,
  object: KubeObject,
  old: KubeObject,
): Promise<Updated> {
  const { context, ctx, validateUpdate, begun, dryRun } = call;
  const current = atPresentRevision(call, object, old);
  const { hooks } = context;
  const changed = await begun.next(() => hooks.beginUpdate?.(ctx, current, old, dryRun), current);
  const ready = await beforeUpdate(call, changed, old);
  await validateUpdate(ready, old);
  if (deletesNow(context, ready, old)) throw new LastFinalizerRemoved(ready);
  return { object: ready, ttlSeconds: context.spec.ttlSeconds?.(ready) };
}

/** Deletes an object whose last finalizer an update removed; the result is the update's object. */
async function deleteInstead(
  { hooks, resource }: StoreContext,
  key: string,
  name: string,
  object: KubeObject,
  writer: RequestWriter,
  preconditions: Preconditions,
): Promise<{ readonly object: KubeObject; readonly created: boolean }> {
  let last = object;
  try {
    last = await writer.delete(key, { preconditions });
  } catch (error) {
    // Another update removed the finalizer first, and deleted the object.
    const gone = error instanceof StorageError && error.code === "KeyNotFound";
    if (!gone) throw interpretStorageError(error, "delete", resource, name);
  }
  if (!writer.dryRun) await hooks.afterDelete?.(last);
  return { object, created: false };
}

function updateError(
  { spec, resource }: StoreContext,
  name: string,
  creating: KubeObject | undefined,
  error: unknown,
): unknown {
  if (creating === undefined) return interpretStorageError(error, "update", resource, name);
  const exists = error instanceof StorageError && error.code === "KeyExists";
  if (exists && (creating.metadata.generateName ?? "") !== "") {
    return generateNameConflict({ ...resource, group: spec.kind.group }, name);
  }
  return interpretStorageError(error, "create", resource, name);
}

/**
 * Updates an object, or creates it where its kind or the caller allows that. Throws ApiError.
 * @param forceAllowCreate server-side apply creates objects
 */
export async function updateObject(
  context: StoreContext,
  ctx: RequestContext,
  name: string,
  updated: UpdatedObject,
  validateCreate: ValidateObject,
  validateUpdate: ValidateUpdate,
  forceAllowCreate: boolean,
  options: WriteOptions,
): Promise<{ readonly object: KubeObject; readonly created: boolean }> {
  const begun = new BegunUpdate();
  const { dryRun } = options;
  const call: UpdateCall = { context, ctx, name, begun, dryRun, validateCreate, validateUpdate };
  const { spec, parts, hooks, updateStrategy } = context;
  const key = keyOf(spec, ctx.namespace, name);
  const { uid, resourceVersion } = updated.preconditions ?? {};
  const preconditions = { uid, resourceVersion };
  const writer = new RequestWriter(parts.storage, ctx, dryRun);
  const allowCreate = forceAllowCreate || updateStrategy.allowCreateOnUpdate;
  let creating: KubeObject | undefined;
  let object: KubeObject;
  try {
    object = await writer.update(
      key,
      async (present) => {
        const made = await updated.make(ctx, present);
        creating = present === undefined ? made : undefined;
        return present === undefined
          ? await makeCreated(call, made)
          : await makeUpdated(call, made, present);
      },
      allowCreate,
      preconditions,
    );
  } catch (error) {
    await begun.finish(false);
    if (error instanceof LastFinalizerRemoved) {
      return await deleteInstead(context, key, name, error.object, writer, preconditions);
    }
    throw updateError(context, name, creating, error);
  }
  await begun.finish(true);
  if (!dryRun) {
    if (creating === undefined) hooks.afterUpdate?.(object);
    else hooks.afterCreate?.(object);
  }
  return { object, created: creating !== undefined };
}

/**
 * Keeps a write that changes nothing but the times in managedFields from being a change (apiserver:
 * endpoints/handlers/fieldmanager/equality.go). Returns the object with the old times if those are
 * the only difference, else the same object.
 */
export function keepManagedTimes(object: KubeObject, old: KubeObject): KubeObject {
  const now = object.metadata.managedFields ?? [];
  const before = old.metadata.managedFields ?? [];
  if (now.length === 0 || now.length !== before.length) return object;
  if (now.every((entry, at) => entry.time === before[at]?.time)) return object;
  if (!now.every((entry, at) => equalButTime(entry, before[at]))) return object;
  const kept = { ...object, metadata: { ...object.metadata, managedFields: before } };
  return sameJson(kept, old) ? kept : object;
}

function equalButTime(a: ManagedFieldsEntry, b: ManagedFieldsEntry | undefined): boolean {
  if (b === undefined) return false;
  const { time: _, ...left } = a;
  const { time: __, ...right } = b;
  return sameJson(left, right);
}

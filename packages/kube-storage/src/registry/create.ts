/**
 * Creates objects (apiserver: registry/generic/registry/store.go Create, registry/rest/create.go).
 *
 *     system fields, name -> beginCreate -> namespace -> prepareForCreate -> validation
 *       -> warnings -> canonicalize -> admission -> write -> afterCreate
 */
import { withMetadata, withoutSystemFields } from "../meta/change.ts";
import { nameIsDnsSubdomain, nameIsPathSegment } from "../meta/names.ts";
import type { KubeObject } from "../meta/object.ts";
import { validateObjectMeta } from "../meta/object-meta-validation.ts";
import { ApiError, badRequest, invalid } from "../meta/status.ts";
import { generateNameConflict } from "../meta/status-errors.ts";
import { metaTime } from "../meta/time.ts";
import type { RequestContext } from "../rest/context.ts";
import type { ValidateObject, WriteOptions } from "../rest/interfaces.ts";
import { StorageError } from "../storage/errors.ts";
import { interpretStorageError } from "../storage/interpret-error.ts";
import { RequestWriter } from "./dry-run.ts";
import { generateName, MAX_NAME_ATTEMPTS, newUid } from "./generate.ts";
import { keyOf } from "./keys.ts";
import type { StoreContext } from "./store-context.ts";

/** Sets uid, creationTimestamp and a generated name. */
export function withSystemFields({ parts }: StoreContext, object: KubeObject): KubeObject {
  const { name = "", generateName: base = "" } = object.metadata;
  return withMetadata(withoutSystemFields(object), {
    uid: newUid(parts.random),
    creationTimestamp: metaTime(parts.clock.wallMs()),
    name: name === "" && base !== "" ? generateName(base, parts.random) : object.metadata.name,
  });
}

/** Sets the namespace of the request. Throws ApiError 400 where the object has another one. */
export function inRequestNamespace(
  { spec }: StoreContext,
  ctx: RequestContext,
  object: KubeObject,
): KubeObject {
  const wanted = spec.namespaced ? ctx.namespace : "";
  const { namespace = "" } = object.metadata;
  if (namespace === wanted) return object;
  if (namespace !== "" && wanted !== "") {
    throw badRequest(
      "the namespace of the provided object does not match the namespace sent on the request",
    );
  }
  return withMetadata(object, { namespace: wanted === "" ? undefined : wanted });
}

/** The object as it will be written. Throws ApiError. Warnings go to the request's context. */
export async function beforeCreate(
  context: StoreContext,
  ctx: RequestContext,
  created: KubeObject,
): Promise<KubeObject> {
  const { spec } = context;
  const { strategy, kind, namespaced, nameRule = nameIsDnsSubdomain } = spec;
  const prepared = strategy.prepareForCreate(ctx, inRequestNamespace(context, ctx, created));
  const name = prepared.metadata.name ?? "";
  const anyName = nameRule === nameIsPathSegment;
  const errors = [
    ...(anyName ? [] : validateObjectMeta(prepared.metadata, namespaced, nameRule)),
    ...(await strategy.validate(ctx, prepared)),
  ];
  if (errors.length > 0) throw invalid(kind, name, errors);
  // Good names of a kind are good names of any kind.
  const common = anyName ? validateObjectMeta(prepared.metadata, namespaced, nameRule) : [];
  if (common.length > 0) throw invalid(kind, name, common);
  for (const text of strategy.warningsOnCreate?.(ctx, prepared) ?? []) ctx.warn(text);
  return strategy.canonicalize?.(prepared) ?? prepared;
}

/** The client's error of a failed create. */
async function createError(
  { spec, parts, resource }: StoreContext,
  ctx: RequestContext,
  key: string,
  object: KubeObject,
  error: unknown,
): Promise<unknown> {
  const { name = "", generateName: base = "" } = object.metadata;
  if (!(error instanceof StorageError) || error.code !== "KeyExists") {
    return interpretStorageError(error, "create", resource, name);
  }
  const exists =
    base === ""
      ? (interpretStorageError(error, "create", resource, name) as ApiError)
      : generateNameConflict({ ...resource, group: spec.kind.group }, name);
  const present = await parts.storage
    .get(key, { ignoreNotFound: true, signal: ctx.signal })
    .catch(() => undefined);
  if (present?.object().metadata.deletionTimestamp === undefined) return exists;
  const message = `object is being deleted: ${exists.message}`;
  return new ApiError(exists.httpStatus, exists.code, message, exists.details);
}

async function createOnce(
  context: StoreContext,
  ctx: RequestContext,
  object: KubeObject,
  validate: ValidateObject,
  options: WriteOptions,
): Promise<KubeObject> {
  const { spec, parts } = context;
  const filled = withSystemFields(context, object);
  const finish = await spec.hooks?.beginCreate?.(ctx, filled);
  let written: KubeObject;
  try {
    const ready = await beforeCreate(context, ctx, filled);
    await validate(ready);
    const key = keyOf(spec, ctx.namespace, ready.metadata.name ?? "");
    const writer = new RequestWriter(parts.storage, ctx, options.dryRun);
    try {
      written = await writer.create(key, ready, spec.ttlSeconds?.(ready) ?? 0);
    } catch (error) {
      throw await createError(context, ctx, key, ready, error);
    }
  } catch (error) {
    finish?.(false);
    throw error;
  }
  finish?.(true);
  if (!options.dryRun) spec.hooks?.afterCreate?.(written);
  return written;
}

/** Creates an object; with generateName, up to 8 names are tried. Throws ApiError. */
export async function createObject(
  context: StoreContext,
  ctx: RequestContext,
  object: KubeObject,
  validate: ValidateObject,
  options: WriteOptions,
): Promise<KubeObject> {
  const { name = "", generateName: base = "" } = object.metadata;
  const attempts = name === "" && base !== "" ? MAX_NAME_ATTEMPTS : 1;
  for (let attempt = 1; ; attempt++) {
    try {
      return await createOnce(context, ctx, object, validate, options);
    } catch (error) {
      const taken = error instanceof ApiError && error.code === "AlreadyExists";
      if (!taken || attempt >= attempts) throw error;
    }
  }
}

/** Gets, lists and watches objects (apiserver: registry/generic/registry/store.go). */

import { defined, quoteText as goQuote } from "@quorate/proto";
import { isDns1123Label } from "../meta/names.ts";
import type { AttributesOf, Selector } from "../meta/selectors.ts";
import { badRequest } from "../meta/status.ts";
import type { RequestContext } from "../rest/context.ts";
import type { RestGetOptions, RestList, RestListOptions } from "../rest/interfaces.ts";
import type { ListOptions, Watch } from "../storage/interface.ts";
import { interpretStorageError } from "../storage/interpret-error.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import { keyOf, keyRootOf, type ResourceSpec, type StoreContext } from "./resource-spec.ts";

/** Gets one object. Throws ApiError. */
export async function getObject(
  { spec, parts, resource }: StoreContext,
  ctx: RequestContext,
  name: string,
  { resourceVersion }: RestGetOptions,
): Promise<StoredObject> {
  const key = keyOf(spec, ctx.namespace, name);
  try {
    const options = { resourceVersion, signal: ctx.signal };
    return defined(await parts.storage.get(key, options), key);
  } catch (error) {
    throw interpretStorageError(error, "get", resource, name);
  }
}

/** The key of a list or watch: a prefix, or one object's where the field selector names it. */
function targetOf(
  { spec }: StoreContext,
  ctx: RequestContext,
  { predicate }: RestListOptions,
): { readonly key: string; readonly recursive: boolean } {
  const first = predicate.continueToken === "";
  let { namespace } = ctx;
  if (namespace === "" && spec.namespaced && first) {
    const selected = predicate.field.exactValue("metadata.namespace") ?? "";
    if (isDns1123Label(selected).length === 0) namespace = selected;
  }
  const name = first ? predicate.field.exactValue("metadata.name") : undefined;
  if (name !== undefined && (namespace !== "" || !spec.namespaced)) {
    try {
      return { key: keyOf(spec, namespace, name), recursive: false };
    } catch {
      // No object can have the name; the list over all of them finds that.
    }
  }
  return { key: keyRootOf(spec, namespace), recursive: true };
}

function storageOptions(
  ctx: RequestContext,
  options: RestListOptions,
  recursive: boolean,
): ListOptions {
  const { resourceVersion, resourceVersionMatch } = options;
  // A negative limit is none.
  const limit = Math.max(0, options.predicate.limit);
  const predicate = { ...options.predicate, limit };
  return { resourceVersion, resourceVersionMatch, predicate, recursive, signal: ctx.signal };
}

/** Lists objects. Throws ApiError. */
export async function listObjects(
  context: StoreContext,
  ctx: RequestContext,
  options: RestListOptions,
): Promise<RestList> {
  checkSelectableFields(context.spec, options.predicate.field);
  const { key, recursive } = targetOf(context, ctx, options);
  try {
    const listed = await context.parts.storage.getList(
      key,
      storageOptions(ctx, options, recursive),
    );
    const { items, resourceVersion, continueToken, remainingItemCount } = listed;
    const revision = resourceVersion === 0 ? "" : String(resourceVersion);
    const shardSelector = options.predicate.shard?.toString();
    return { items, resourceVersion: revision, continueToken, remainingItemCount, shardSelector };
  } catch (error) {
    throw interpretStorageError(error, "list", context.resource, "");
  }
}

/** Starts a watch. Throws ApiError. */
export async function watchObjects(
  context: StoreContext,
  ctx: RequestContext,
  options: RestListOptions,
): Promise<Watch> {
  checkSelectableFields(context.spec, options.predicate.field);
  const { key, recursive } = targetOf(context, ctx, options);
  const { sendInitialEvents, timeoutSeconds } = options;
  const timeoutMs = timeoutSeconds === undefined ? undefined : timeoutSeconds * 1000;
  try {
    return await context.parts.storage.watch(key, {
      ...storageOptions(ctx, options, recursive),
      sendInitialEvents,
      timeoutMs,
    });
  } catch (error) {
    throw interpretStorageError(error, "watch", context.resource, "");
  }
}

const NO_LABELS: Readonly<Record<string, string>> = {};

/** The attributes of a resource's objects, for its storage. */
export function attributesOf(
  spec: Pick<ResourceSpec, "namespaced" | "selectableFields">,
): AttributesOf {
  return (object) => {
    const { name = "", namespace = "", labels = NO_LABELS } = object.metadata;
    const own = spec.selectableFields?.(object);
    const fields: Record<string, string> = { ...own, "metadata.name": name };
    if (spec.namespaced) fields["metadata.namespace"] = namespace;
    return { labels, fields };
  };
}

/**
 * Checks that the resource can be selected by these fields; throws ApiError 400 otherwise
 * (apimachinery: runtime/conversion.go, DefaultMetaV1FieldSelectorConversion).
 */
function checkSelectableFields(spec: ResourceSpec, selector: Selector): void {
  const own = spec.selectableFieldNames;
  for (const field of selector.attributes ?? []) {
    if (field === "metadata.name") continue;
    if (own === undefined) {
      if (field === "metadata.namespace") continue;
      const text = `${goQuote(field)} is not a known field selector: only `;
      throw badRequest(`${text}"metadata.name", "metadata.namespace"`);
    }
    if (field === "metadata.namespace" && spec.namespaced) continue;
    if (!own.includes(field)) throw badRequest(`field label not supported: ${field}`);
  }
}

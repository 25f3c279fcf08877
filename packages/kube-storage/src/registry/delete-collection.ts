/**
 * Deletes what a list finds, page after page, with a bounded number of deletions at a time
 * (apiserver: registry/generic/registry/store.go DeleteCollection). It is not atomic: an error ends
 * it, and what was deleted before stays deleted.
 */
import { ApiError } from "../meta/status.ts";
import type { RequestContext } from "../rest/context.ts";
import type {
  RestDeleteOptions,
  RestList,
  RestListOptions,
  ValidateObject,
} from "../rest/interfaces.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import { deleteObject } from "./delete.ts";
import { listObjects } from "./read.ts";
import type { StoreContext } from "./resource-spec.ts";

/** Objects of one page, where the request has no limit. */
export const DELETE_COLLECTION_PAGE_OBJECTS = 500;
/** Deletions of one request at a time. */
export const MAX_CONCURRENT_DELETIONS = 8;

/** Deletes the objects of one page; rejects with the first error. */
async function deletePage(
  items: readonly StoredObject[],
  signal: RequestContext["signal"],
  deleteOne: (item: StoredObject) => Promise<void>,
): Promise<void> {
  // Those who work share one iterator.
  const waiting = items.values();
  let failed = false;
  const work = async (): Promise<void> => {
    for (const item of waiting) {
      if (failed) return;
      if (signal.aborted) throw signal.reason;
      try {
        await deleteOne(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const count = Math.min(MAX_CONCURRENT_DELETIONS, items.length);
  await Promise.all(Array.from({ length: count }, work));
}

/** Deletes all objects that the list options find. Resolves with them. Throws ApiError. */
export async function deleteCollection(
  context: StoreContext,
  ctx: RequestContext,
  validate: ValidateObject,
  options: RestDeleteOptions,
  listOptions: RestListOptions,
): Promise<RestList> {
  const { predicate } = listOptions;
  const limited = predicate.limit > 0;
  const limit = limited ? predicate.limit : DELETE_COLLECTION_PAGE_OBJECTS;
  let page: RestListOptions = { ...listOptions, predicate: { ...predicate, limit } };
  let first: RestList | undefined;
  const items: StoredObject[] = [];
  for (;;) {
    if (ctx.signal.aborted) throw ctx.signal.reason;
    const listed = await listObjects(context, ctx, page);
    items.push(...listed.items);
    await deletePage(listed.items, ctx.signal, async (item) => {
      const { name = "", namespace = "" } = item.object().metadata;
      const scoped = context.spec.namespaced ? inNamespace(ctx, namespace) : ctx;
      try {
        await deleteObject(context, scoped, name, validate, options);
      } catch (error) {
        // Another client was faster.
        if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
      }
    });
    if (limited) return listed;
    first ??= listed;
    if (listed.continueToken === "")
      return { ...first, items, continueToken: "", remainingItemCount: undefined };
    page = {
      ...page,
      resourceVersion: "",
      resourceVersionMatch: "",
      predicate: { ...page.predicate, continueToken: listed.continueToken },
    };
  }
}

/** The request as if it were for one namespace. */
function inNamespace(ctx: RequestContext, namespace: string): RequestContext {
  const { user, signal } = ctx;
  return { user, signal, namespace, warn: (text) => ctx.warn(text) };
}

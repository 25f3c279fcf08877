/** Deletes all objects of a custom resource, in pages (pkg/controller/finalizer). */

import type { KubeObject, RequestContext, RestListOptions, Store } from "@quorate/kube-storage";
import { ApiError, EVERYTHING } from "@quorate/kube-storage";

const PAGE_SIZE = 500;
const PARALLEL_DELETIONS = 16;

/** The number of objects that are still there: finalizers keep them. Rejects with ApiError. */
export async function deleteInstances(
  instances: Store,
  context: (namespace: string) => RequestContext,
): Promise<number> {
  let left = 0;
  let continueToken = "";
  do {
    const page = await instances.list(context(""), pageOptions(continueToken));
    const objects = page.items.map((item) => item.object());
    left += await deletePage(instances, objects, context);
    ({ continueToken } = page);
  } while (continueToken !== "");
  return left;
}

function pageOptions(continueToken: string): RestListOptions {
  return {
    resourceVersion: "",
    resourceVersionMatch: "",
    predicate: {
      label: EVERYTHING,
      field: EVERYTHING,
      limit: PAGE_SIZE,
      continueToken,
      allowWatchBookmarks: false,
    },
  };
}

async function deletePage(
  instances: Store,
  objects: readonly KubeObject[],
  context: (namespace: string) => RequestContext,
): Promise<number> {
  let left = 0;
  const waiting = objects.values();
  const worker = async () => {
    for (const object of waiting) {
      if (!(await deleteOne(instances, object, context))) left++;
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_DELETIONS }, worker));
  return left;
}

async function deleteOne(
  instances: Store,
  { metadata }: KubeObject,
  context: (namespace: string) => RequestContext,
): Promise<boolean> {
  const { name = "", namespace = "", deletionTimestamp } = metadata;
  if (deletionTimestamp !== undefined) return false;
  try {
    const options = { dryRun: false };
    const { deletedNow } = await instances.delete(context(namespace), name, accept, options);
    return deletedNow;
  } catch (error) {
    if (error instanceof ApiError && error.httpStatus === 404) return true;
    throw error;
  }
}

async function accept(): Promise<void> {}

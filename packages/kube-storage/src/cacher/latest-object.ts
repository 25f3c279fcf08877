/** A get of the latest: the cache's object, where the store says that it is the present one. */
import type { GetOptions, StorageInterface } from "../storage/interface.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import type { WatchCache } from "./watch-cache.ts";

/**
 * The present object: the one of the cache where its revision is the present one, or where a change
 * has arrived since that was asked; its value is not read again then. Else the store's.
 * @param whole the key as the cache has it
 */
export async function latestObject(
  cache: Pick<WatchCache, "get">,
  storage: StorageInterface,
  key: string,
  whole: string,
  options: GetOptions,
): Promise<StoredObject | undefined> {
  const before = cache.get(whole);
  if (before === undefined || storage.revisionOf === undefined) return storage.get(key, options);
  const revision = await storage.revisionOf(key, options);
  const element = cache.get(whole);
  if (revision > 0 && element !== undefined) {
    const { resourceVersion } = element.stored;
    const isNewer = element !== before && resourceVersion > revision;
    if (resourceVersion === revision || isNewer) return element.stored;
  }
  return storage.get(key, options);
}

/** Where a watch of the cache begins (apiserver: getAllEventsSinceLocked in watch_cache.go). */
import type { GroupVersionKind } from "../meta/kinds.ts";
import { type ApiError, expired } from "../meta/status.ts";
import { bookmarkEvent } from "../storage/bookmark.ts";
import type { ListOptions } from "../storage/interface.ts";
import type { WatchStart } from "./cache-watcher.ts";
import type { WatchCache } from "./watch-cache.ts";

/**
 * The start, or the client's error for a revision before the window. Without a revision and without
 * sendInitialEvents a watch begins with the present objects, as it always has.
 * @param kind of the bookmark that ends the initial objects
 * @param revision after which events follow; 0 for any
 */
export function watchStart(
  cache: WatchCache,
  kind: GroupVersionKind,
  key: string,
  revision: number,
  { sendInitialEvents, predicate }: ListOptions,
): WatchStart | ApiError {
  const { window, resourceVersion } = cache;
  const isListWatch = sendInitialEvents === true;
  if (isListWatch || (revision === 0 && sendInitialEvents === undefined)) {
    const hasEnd = isListWatch && predicate.allowWatchBookmarks;
    return {
      initial: cache.view().cursor(key),
      initialEnd: hasEnd ? bookmarkEvent(kind, resourceVersion, true) : undefined,
      nextIndex: window.endIndex,
      afterRevision: resourceVersion,
    };
  }
  const after = revision === 0 ? resourceVersion : revision;
  if (after < window.completeAfter)
    return expired(`too old resource version: ${after} (${window.completeAfter})`);
  return {
    initial: undefined,
    initialEnd: undefined,
    nextIndex: window.firstAfter(after),
    afterRevision: after,
  };
}

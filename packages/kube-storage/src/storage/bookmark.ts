/** Bookmarks: events that say how far a watch is. */
import { apiVersionOf, type GroupVersionKind } from "../meta/kinds.ts";
import type { KubeObject } from "../meta/object.ts";
import type { WatchEvent } from "./interface.ts";
import { MadeObject } from "./stored-object.ts";

/** Marks the bookmark that ends the initial events of a Kubernetes' WatchList. */
export const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/** @param endsInitialEvents adds the annotation for that */
export function bookmarkEvent(
  kind: GroupVersionKind,
  revision: number,
  endsInitialEvents: boolean,
): WatchEvent {
  const metadata = {
    resourceVersion: String(revision),
    creationTimestamp: null,
    ...(endsInitialEvents ? { annotations: { [INITIAL_EVENTS_END]: "true" } } : {}),
  };
  const object: KubeObject = { kind: kind.kind, apiVersion: apiVersionOf(kind), metadata };
  return { type: "BOOKMARK", object: new MadeObject("", revision, object) };
}

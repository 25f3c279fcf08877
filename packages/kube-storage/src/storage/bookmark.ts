/** Bookmarks: events that say how far a watch is. */
import { fromUtf8 } from "@quorate/proto";
import { apiVersionOf, type GroupVersionKind } from "../meta/kinds.ts";
import type { KubeObject } from "../meta/object.ts";
import type { WatchEvent } from "./interface.ts";

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
  let json: Uint8Array | undefined;
  return {
    type: "BOOKMARK",
    object: {
      key: "",
      resourceVersion: revision,
      object: () => object,
      json: () => {
        json ??= fromUtf8(JSON.stringify(object));
        return json;
      },
    },
  };
}

/** A stored object under another revision. */
import { fromUtf8 } from "@quorate/proto";
import type { KubeObject } from "../meta/object.ts";
import type { StoredObject } from "../storage/stored-object.ts";

/**
 * The object with another resourceVersion. Watchers see one that leaves their selector so: with its
 * last matching content, and the revision of the change that made it leave.
 */
export function restamped(stored: StoredObject, resourceVersion: number): StoredObject {
  let json: Uint8Array | undefined;
  const object = (): KubeObject => {
    const present = stored.object();
    const metadata = { ...present.metadata, resourceVersion: String(resourceVersion) };
    return { ...present, metadata };
  };
  return {
    key: stored.key,
    resourceVersion,
    sizeBytes: stored.sizeBytes,
    object,
    json: () => {
      json ??= fromUtf8(JSON.stringify(object()));
      return json;
    },
  };
}

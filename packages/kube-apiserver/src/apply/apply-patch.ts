/** The patches of PATCH requests, by their media type. Server-side apply is in field-manager.ts. */

import type { KubeObject, ObjectSchema } from "@quorate/kube-storage";
import { applyJsonPatch } from "./json-patch.ts";
import { applyMergePatch } from "./merge-patch.ts";
import { checkDepth } from "./patch-limits.ts";
import { applyStrategicMerge } from "./strategic-merge.ts";

export type PatchType =
  | "application/json-patch+json"
  | "application/merge-patch+json"
  | "application/strategic-merge-patch+json"
  | "application/apply-patch+yaml";

/** Applies a parsed patch of the first three types. Throws ApiError 400, 413 or 422. */
type ApplyPatch = (
  type: Exclude<PatchType, "application/apply-patch+yaml">,
  present: KubeObject,
  patch: unknown,
  schema: ObjectSchema | undefined,
) => unknown;

/**
 * @param type the media type
 * @param present the object in the version of the request
 * @param patch the parsed body. It does not change, so a retry can apply it to another object.
 * @param schema of the kind, for strategic merges
 * @returns what the patch makes of the object; it may be anything and has to be decoded
 * @throws ApiError 400, 413, 422, or 500 as Kubernetes does for unknown fields of strategic merges
 */
export const applyPatch: ApplyPatch = (type, present, patch, schema) => {
  // Walks over patches are recursive too.
  checkDepth(patch);
  const result = resultOf(type, present, patch, schema);
  checkDepth(result);
  return result;
};

const resultOf: ApplyPatch = (type, present, patch, schema) => {
  switch (type) {
    case "application/json-patch+json":
      return applyJsonPatch(present, patch);
    case "application/merge-patch+json":
      return applyMergePatch(present, patch);
    case "application/strategic-merge-patch+json":
      return applyStrategicMerge(present, patch, schema);
  }
};

/**
 * The patches of PATCH requests, by their media type; merge patches are here (RFC 7386, as the
 * library of Kubernetes applies them). Server-side apply is in field-manager.ts.
 */

import { badRequest, type KubeObject, type ObjectSchema, setField } from "@quorate/kube-storage";
import { applyJsonPatch } from "./json-patch.ts";
import { checkDepth } from "./patch-limits.ts";
import { applyStrategicMerge } from "./strategic-merge.ts";
import { type Fields, isMap } from "./typed-value.ts";

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

/**
 * Applies a merge patch. Neither argument changes; unchanged parts are shared.
 * @throws ApiError 400 where the patch is neither an object nor a list
 */
export function applyMergePatch(document: Fields, patch: unknown): unknown {
  if (Array.isArray(patch)) return withoutNulls(patch);
  if (!isMap(patch)) throw badRequest("Invalid JSON Patch");
  return mergeFields(document, patch);
}

function mergeFields(present: Fields, patch: Fields): Fields {
  const merged: Record<string, unknown> = { ...present };
  for (const name of Object.keys(patch)) {
    const value = patch[name];
    const old = Object.hasOwn(merged, name) ? merged[name] : undefined;
    if (value === null) delete merged[name];
    else if (isMap(old)) setField(merged, name, isMap(value) ? mergeFields(old, value) : value);
    else setField(merged, name, withoutNulls(value));
  }
  return merged;
}

/** Null means "remove" also where there is nothing; items of lists stay. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isMap(value)) return value;
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    if (value[name] !== null) setField(kept, name, withoutNulls(value[name]));
  }
  return kept;
}

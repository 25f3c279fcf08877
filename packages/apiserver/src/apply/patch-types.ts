/** The patches of PATCH requests, by their media type. */
import type { KubeObject } from "../meta/object.ts";
import type { ObjectSchema } from "../schema/schema.ts";

export type PatchType =
  | "application/json-patch+json"
  | "application/merge-patch+json"
  | "application/strategic-merge-patch+json"
  | "application/apply-patch+yaml";

/** Applies a parsed patch of the first three types. Throws ApiError 400, 413 or 422. */
export type ApplyPatch = (
  type: Exclude<PatchType, "application/apply-patch+yaml">,
  present: KubeObject,
  patch: unknown,
  schema: ObjectSchema | undefined,
) => unknown;

/** Who manages which fields (apimachinery: util/managedfields). */
export interface FieldManager {
  /**
   * managedFields after a create, update or patch by `manager`: what the request changed is its own.
   * @param old undefined for a create
   */
  update(
    old: KubeObject | undefined,
    object: KubeObject,
    manager: string,
    subresource: string,
    nowMs: number,
  ): KubeObject;
  /**
   * Server-side apply. Throws ApiError 409 with a cause for each conflict unless `force`.
   * @param present undefined where there is no object
   */
  apply(
    present: KubeObject | undefined,
    applied: KubeObject,
    manager: string,
    subresource: string,
    force: boolean,
    nowMs: number,
  ): KubeObject;
}

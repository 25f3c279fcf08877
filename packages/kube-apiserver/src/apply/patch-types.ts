/** The patches of PATCH requests, by their media type. */
import type { KubeObject, ObjectSchema } from "@quorate/kube-storage";

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

/**
 * Who manages which fields (apimachinery: util/managedfields). Entries of other versions need a
 * conversion, which may be a webhook; so both methods are asynchronous. Neither changes its
 * arguments.
 */
export interface FieldManager {
  /**
   * managedFields after a create, update or patch by `manager`: what the request changed is its own.
   * Where managedFields of `object` are empty, those of `old` count; an empty list resets them.
   * Never rejects because of the object: if it does not fit its schema, the result has no
   * managedFields.
   * @param old undefined for a create
   * @param manager the option fieldManager, or the one from the User-Agent (write-options.ts)
   */
  update(
    old: KubeObject | undefined,
    object: KubeObject,
    manager: string,
    subresource: string,
    nowMs: number,
  ): Promise<KubeObject>;
  /**
   * Server-side apply. Rejects with ApiError 409 with a cause for each conflict unless `force`, 400
   * for an object of another kind or with managedFields, 500 for one that does not fit its schema
   * (as Kubernetes does).
   * @param present undefined where there is no object
   * @param applied the client's object as it is: neither pruned nor defaulted
   * @returns the merged object, defaulted
   */
  apply(
    present: KubeObject | undefined,
    applied: KubeObject,
    manager: string,
    subresource: string,
    force: boolean,
    nowMs: number,
  ): Promise<KubeObject>;
}

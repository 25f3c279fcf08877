/**
 * Deletions in two steps, as namespaces and CustomResourceDefinitions have them: the first one
 * marks the object, a controller clears what depends on it, and a later one deletes it (kubernetes:
 * registry/core/namespace/storage; apiextensions: registry/customresourcedefinition/etcd.go).
 */
import {
  conflict,
  interpretStorageError,
  type KubeObject,
  keyOf,
  RequestWriter,
  type ResourceParts,
  type ResourceSpec,
  type ResourceStore,
  type RestDeleteOptions,
  storeOf,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";

export interface TwoSteps {
  /** The object with its deletionTimestamp and what else the first step sets. */
  marked(object: KubeObject, options: RestDeleteOptions, nowMs: number): KubeObject;
  /** Whether something keeps a marked object: a deletion leaves it as it is. */
  isKept(object: KubeObject): boolean;
}

/** The verbs of a resource outside of namespaces that is deleted so. */
export function twoStepStoreOf(
  spec: ResourceSpec,
  parts: ResourceParts,
  steps: TwoSteps,
): ResourceStore {
  const store = storeOf(spec, parts);
  const resource = { group: spec.kind.group, resource: spec.resource };
  return {
    ...store,
    async delete(ctx, name, validate, options) {
      const read = (await store.get(ctx, name, { resourceVersion: "" })).object();
      const preconditions = preconditionsOf(resource, name, read, options);
      if (read.metadata.deletionTimestamp !== undefined) {
        if (steps.isKept(read)) return { result: read, deletedNow: false };
        return await store.delete(ctx, name, validate, { ...options, preconditions });
      }
      const writer = new RequestWriter(parts.storage, ctx, options.dryRun);
      try {
        const result = await writer.update(
          keyOf(spec, "", name),
          async (existing) => {
            const present = defined(existing, "the object");
            await validate(present);
            return { object: steps.marked(present, options, parts.clock.wallMs()) };
          },
          false,
          preconditions,
        );
        return { result, deletedNow: false };
      } catch (error) {
        throw interpretStorageError(error, "update", resource, name);
      }
    },
  };
}

/** The object that was read, and no other one of its name. Throws ApiError 409. */
function preconditionsOf(
  resource: { readonly group: string; readonly resource: string },
  name: string,
  { metadata: { uid = "", resourceVersion = "" } }: KubeObject,
  { preconditions = {} }: RestDeleteOptions,
) {
  const failed = (field: string, wanted: string, present: string): Error => {
    const text = `Precondition failed: ${field} in precondition: ${wanted}, `;
    return conflict(resource, name, `${text}${field} in object meta: ${present}`);
  };
  const { uid: wantedUid = uid, resourceVersion: wantedRevision = resourceVersion } = preconditions;
  if (wantedUid !== uid) throw failed("UID", wantedUid, uid);
  if (wantedRevision !== resourceVersion) {
    throw failed("ResourceVersion", wantedRevision, resourceVersion);
  }
  return { ...preconditions, uid };
}

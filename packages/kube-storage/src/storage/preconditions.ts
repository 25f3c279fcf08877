/** Preconditions of updates and deletions (apiserver: pkg/storage/interfaces.go). */
import type { KubeObject } from "../meta/object.ts";
import { invalidObject, type StorageError } from "./errors.ts";
import type { Preconditions } from "./interface.ts";

/**
 * What is wrong with the object, or undefined where the preconditions hold.
 * @param key as in the store, for the message
 * @param object undefined where there is none
 */
export function failedPrecondition(
  preconditions: Preconditions | undefined,
  key: string,
  object: KubeObject | undefined,
): StorageError | undefined {
  if (preconditions === undefined) return undefined;
  const { uid = "", resourceVersion = "" } = object?.metadata ?? {};
  if (preconditions.uid !== undefined && preconditions.uid !== uid)
    return invalidObject(
      key,
      `Precondition failed: UID in precondition: ${preconditions.uid}, UID in object meta: ${uid}`,
    );
  const wanted = preconditions.resourceVersion;
  if (wanted !== undefined && wanted !== resourceVersion)
    return invalidObject(
      key,
      `Precondition failed: ResourceVersion in precondition: ${wanted}, ResourceVersion in object meta: ${resourceVersion}`,
    );
  return undefined;
}

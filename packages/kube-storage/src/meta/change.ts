/** Copies of objects with changed metadata; the rest is shared. */
import type { KubeObject, ObjectMeta } from "./object.ts";

/** A copy with these fields of metadata set; those that are undefined are removed. */
export function withMetadata(object: KubeObject, changes: Partial<ObjectMeta>): KubeObject {
  const metadata: Record<string, unknown> = { ...object.metadata };
  for (const [field, value] of Object.entries(changes)) {
    if (value === undefined) delete metadata[field];
    else metadata[field] = value;
  }
  return { ...object, metadata };
}

/** A copy with one top-level field set; removed where the value is undefined. */
export function withField(object: KubeObject, field: string, value: unknown): KubeObject {
  if (value !== undefined) return { ...object, [field]: value };
  const { [field]: _, ...rest } = object;
  return rest as KubeObject;
}

/** A copy without the fields that only the server sets (rest.WipeObjectMetaSystemFields). */
export function withoutSystemFields(object: KubeObject): KubeObject {
  return withMetadata(object, {
    uid: undefined,
    creationTimestamp: undefined,
    deletionTimestamp: undefined,
    deletionGracePeriodSeconds: undefined,
    selfLink: undefined,
  } as Partial<ObjectMeta>);
}

/**
 * Keeps a write that changes nothing but the times in managedFields from being a change
 * (apiserver: endpoints/handlers/fieldmanager/equality.go). The registry calls it on each update,
 * after mutating admission and before it compares the objects.
 */
import { sameJson } from "../meta/equality.ts";
import type { KubeObject, ManagedFieldsEntry } from "../meta/object.ts";

/** Returns the object with the old times if those are the only difference, else the same object. */
export function keepManagedTimes(object: KubeObject, old: KubeObject): KubeObject {
  const now = object.metadata.managedFields ?? [];
  const before = old.metadata.managedFields ?? [];
  if (now.length === 0 || now.length !== before.length) return object;
  if (now.every((entry, at) => entry.time === before[at]?.time)) return object;
  if (!now.every((entry, at) => equalButTime(entry, before[at]))) return object;
  const kept = { ...object, metadata: { ...object.metadata, managedFields: before } };
  return sameJson(kept, old) ? kept : object;
}

function equalButTime(a: ManagedFieldsEntry, b: ManagedFieldsEntry | undefined): boolean {
  if (b === undefined) return false;
  const { time: _, ...left } = a;
  const { time: __, ...right } = b;
  return sameJson(left, right);
}

/**
 * An update that changes nothing but the times in managedFields is no update: those times are
 * taken back (apiserver: handlers/fieldmanager/equality.go).
 */
import { withMetadata } from "../meta/change.ts";
import { semanticEqual } from "../meta/equality.ts";
import type { KubeObject, ManagedFieldsEntry } from "../meta/object.ts";

function sameButTime(a: ManagedFieldsEntry, b: ManagedFieldsEntry): boolean {
  return semanticEqual({ ...a, time: undefined }, { ...b, time: undefined });
}

/** The object, with the old managedFields where all else is as in the old object. */
export function withOldManagedTimes(object: KubeObject, old: KubeObject): KubeObject {
  const entries = object.metadata.managedFields ?? [];
  const oldEntries = old.metadata.managedFields ?? [];
  if (entries.length === 0 || entries.length !== oldEntries.length) return object;
  if (entries.every(({ time }, index) => time === oldEntries[index].time)) return object;
  if (!entries.every((entry, index) => sameButTime(entry, oldEntries[index]))) return object;
  const reverted = withMetadata(object, { managedFields: oldEntries });
  return semanticEqual(reverted, old) ? reverted : object;
}

/** Changes of immutable JSON values: a copy is made only where something changes. */
import { type Json, type JsonObject, setField } from "@quorate/kube-storage";

/** A field of an object; fields of Object.prototype do not count. */
export function fieldOf<T>(object: Readonly<Record<string, T>> | undefined, key: string) {
  return object !== undefined && Object.hasOwn(object, key) ? object[key] : undefined;
}

/**
 * The object with each field replaced by what `change` returns for it; `undefined` removes the
 * field. Returns the same object where nothing changes.
 */
export function mapFields(
  object: JsonObject,
  change: (value: Json, key: string) => Json | undefined,
): JsonObject {
  let copy: Record<string, Json | undefined> | undefined;
  for (const key of Object.keys(object)) {
    const value = object[key];
    if (value === undefined) continue;
    const changed = change(value, key);
    if (changed === value) continue;
    copy ??= { ...object };
    if (changed === undefined) delete copy[key];
    else setField(copy, key, changed);
  }
  return copy ?? object;
}

/** The list with each item replaced. Returns the same list where nothing changes. */
export function mapItems(
  list: readonly Json[],
  change: (item: Json, index: number) => Json,
): readonly Json[] {
  let copy: Json[] | undefined;
  for (const [i, item] of list.entries()) {
    const changed = change(item, i);
    if (changed === item) continue;
    copy ??= [...list];
    copy[i] = changed;
  }
  return copy ?? list;
}

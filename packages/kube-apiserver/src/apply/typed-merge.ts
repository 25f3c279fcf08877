/**
 * Merges an applied value into the present one (structured-merge-diff: typed/merge.go): nothing is
 * removed, and where both have a leaf, the applied one wins. Associative lists keep the present
 * order where the applied one does not demand another.
 */

import { setField } from "@quorate/kube-storage";
import { elementText, type PathElement } from "./path-element.ts";
import type { ListType, MapType, TypeAtom } from "./typed-schema.ts";
import {
  asList,
  asMap,
  type Fields,
  fieldTypeOf,
  formOf,
  isEmptyMap,
  itemElement,
  TypedError,
} from "./typed-value.ts";

/**
 * @param present undefined where there is no value; the same for `applied`, but one must be there
 * @returns undefined for nothing. Parts that do not change are shared with the arguments.
 * @throws TypedError where an applied list has an item twice
 */
export function mergeTyped(type: TypeAtom, present: unknown, applied: unknown): unknown {
  const form = formOf(type, applied === undefined ? present : applied);
  if (form.form === "map") return mergeMaps(form, present, applied);
  if (form.form === "list") return mergeLists(form, present, applied);
  return applied === undefined ? present : applied;
}

function mergeMaps(type: MapType, present: unknown, applied: unknown): unknown {
  const left = asMap(present);
  const right = asMap(applied);
  if (type.atomic || (isEmptyMap(left) && isEmptyMap(right))) {
    return applied === undefined ? present : applied;
  }
  const merged: Record<string, unknown> = {};
  for (const name in left) mergeField(merged, type, name, left[name], ownOf(right, name));
  for (const name in right) {
    if (left === undefined || !Object.hasOwn(left, name)) {
      mergeField(merged, type, name, undefined, right[name]);
    }
  }
  return isEmptyMap(merged) ? undefined : merged;
}

function ownOf(fields: Fields | undefined, name: string): unknown {
  return fields !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined;
}

function mergeField(
  merged: Record<string, unknown>,
  type: MapType,
  name: string,
  present: unknown,
  applied: unknown,
): void {
  const field = fieldTypeOf(type, name);
  const value = field === undefined ? undefined : mergeTyped(field, present, applied);
  if (value !== undefined) setField(merged, name, value);
}

function mergeLists(type: ListType, present: unknown, applied: unknown): unknown {
  const left = asList(present) ?? [];
  const right = asList(applied) ?? [];
  if (type.atomic || (left.length === 0 && right.length === 0)) {
    return applied === undefined ? present : applied;
  }
  const merged = new ListMerger(type, left, right).merge();
  return merged.length > 0 ? merged : undefined;
}

class ListMerger {
  readonly #type: ListType;
  readonly #left: readonly unknown[];
  readonly #leftKeys: PathElement[];
  readonly #rightKeys: PathElement[];
  readonly #present = new Map<PathElement, unknown>();
  readonly #applied = new Map<PathElement, unknown>();
  /** The applied items that are present too, in the order of the applied list. */
  readonly #shared: PathElement[];
  /** The items that are in both lists and in the result. */
  readonly #done = new Set<PathElement>();
  readonly #out: unknown[] = [];

  constructor(type: ListType, left: readonly unknown[], right: readonly unknown[]) {
    this.#type = type;
    this.#left = left;
    this.#rightKeys = indexItems(type, right, this.#applied, false);
    this.#leftKeys = indexItems(type, left, this.#present, true);
    this.#shared = this.#rightKeys.filter((key) => this.#present.has(key));
  }

  merge(): unknown[] {
    const left = this.#leftKeys;
    const right = this.#rightKeys;
    let nextShared = 0;
    for (let l = 0, r = 0; l < left.length || r < right.length; ) {
      const present = left[l];
      const applied = right[r];
      if (present !== undefined && present === applied) {
        this.#pushBoth(present);
        l++;
        r++;
        nextShared++;
        continue;
      }
      if (present !== undefined) {
        if (!this.#applied.has(present)) {
          this.#push(this.#left[l], undefined);
          l++;
          continue;
        }
        const wanted = this.#shared[nextShared];
        // A shared item, but another one comes first in the applied order.
        if (applied !== undefined && wanted !== undefined && wanted !== present) {
          l++;
          continue;
        }
        if (this.#done.has(present)) l++;
      }
      if (applied === undefined) continue;
      this.#pushBoth(applied);
      r++;
      if (this.#shared[nextShared] === applied) nextShared++;
    }
    return this.#out;
  }

  #pushBoth(key: PathElement): void {
    this.#done.add(key);
    this.#push(this.#present.get(key), this.#applied.get(key));
  }

  #push(present: unknown, applied: unknown): void {
    const value = mergeTyped(this.#type.item, present, applied);
    if (value !== undefined) this.#out.push(value);
  }
}

/** Fills `items` by key and returns the keys in their order. Present duplicates count as null. */
function indexItems(
  type: ListType,
  list: readonly unknown[],
  items: Map<PathElement, unknown>,
  allowDuplicates: boolean,
): PathElement[] {
  return list.map((item) => {
    const key = itemElement(type, item);
    if (!items.has(key)) items.set(key, item);
    else if (allowDuplicates) items.set(key, null);
    else throw new TypedError(`duplicate entries for key ${elementText(key)}`);
    return key;
  });
}

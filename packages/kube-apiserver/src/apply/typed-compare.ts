/**
 * What changes from one value to another (structured-merge-diff: typed/compare.go), as three sets
 * of paths. No path is in two of them.
 */
import { sameJson } from "@quorate/kube-storage";
import { type FieldSet, FieldSetBuilder } from "./field-set.ts";
import type { PathElement } from "./path-element.ts";
import type { ListType, MapType, ScalarType, TypeAtom } from "./typed-schema.ts";
import { asList, asMap, fieldTypeOf, formOf, isEmptyMap, itemElement } from "./typed-value.ts";

export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/**
 * Compares two values of one type, which were validated.
 * The time is linear in their sizes.
 */
export function compareTyped(type: TypeAtom, old: unknown, value: unknown): Comparison {
  const comparer = new Comparer();
  comparer.compare(type, old, value);
  return {
    added: comparer.added.build(),
    modified: comparer.modified.build(),
    removed: comparer.removed.build(),
  };
}

class Comparer {
  readonly added = new FieldSetBuilder();
  readonly modified = new FieldSetBuilder();
  readonly removed = new FieldSetBuilder();
  readonly #path: PathElement[] = [];

  compare(type: TypeAtom, old: unknown, value: unknown): void {
    if (old === value) return;
    const oldForm = formOf(type, old);
    const form = formOf(type, value);
    let isLeaf: boolean;
    if (value === undefined) isLeaf = this.#visit(oldForm, old, value);
    else if (old === undefined || oldForm === form) isLeaf = this.#visit(form, old, value);
    else {
      this.#visit(oldForm, old, value);
      isLeaf = this.#visit(form, old, value);
    }
    if (isLeaf) return;
    if (old === undefined) this.added.insert(this.#path);
    else if (value === undefined) this.removed.insert(this.#path);
  }

  /** Returns whether the value was compared as a whole. */
  #visit(form: MapType | ListType | ScalarType, old: unknown, value: unknown): boolean {
    if (form.form === "map") return this.#map(form, old, value);
    if (form.form === "list") return this.#list(form, old, value);
    return this.#leaf(old, value);
  }

  #leaf(old: unknown, value: unknown): true {
    if (old === undefined) this.added.insert(this.#path);
    else if (value === undefined) this.removed.insert(this.#path);
    else if (!sameJson(old, value)) this.modified.insert(this.#path);
    return true;
  }

  #map(type: MapType, old: unknown, value: unknown): boolean {
    const left = asMap(old);
    const right = asMap(value);
    // Where both are empty, null and {} still differ.
    if (type.atomic || (isEmptyMap(left) && isEmptyMap(right))) return this.#leaf(old, value);
    for (const name in left) {
      const other = right !== undefined && Object.hasOwn(right, name) ? right[name] : undefined;
      this.#item(fieldTypeOf(type, name), `f:${name}`, left[name], other);
    }
    for (const name in right) {
      if (left !== undefined && Object.hasOwn(left, name)) continue;
      this.#item(fieldTypeOf(type, name), `f:${name}`, undefined, right[name]);
    }
    return false;
  }

  #item(type: TypeAtom | undefined, element: PathElement, old: unknown, value: unknown): void {
    if (type === undefined || old === value) return;
    this.#path.push(element);
    this.compare(type, old, value);
    this.#path.pop();
  }

  #list(type: ListType, old: unknown, value: unknown): boolean {
    const left = asList(old) ?? [];
    const right = asList(value) ?? [];
    if (type.atomic || (left.length === 0 && right.length === 0)) return this.#leaf(old, value);
    const before = itemsByElement(type, left);
    const after = itemsByElement(type, right);
    for (const [element, items] of before) this.#items(type, element, items, after.get(element));
    for (const [element, items] of after) {
      if (!before.has(element)) this.#items(type, element, [], items);
    }
    return false;
  }

  /** Items with one key. Several are possible in objects from before a schema forbade that. */
  #items(
    type: ListType,
    element: PathElement,
    old: readonly unknown[],
    items: readonly unknown[] = [],
  ): void {
    if (old.length <= 1 && items.length <= 1) {
      this.#item(type.item, element, old[0], items[0]);
      return;
    }
    const path = [...this.#path, element];
    if (old.length >= 2 && items.length >= 2) {
      if (!sameJson(old, items)) this.modified.insert(path);
    } else if (old.length >= 2) {
      if (items.length > 0) this.#item(type.item, element, undefined, items[0]);
      this.removed.insert(path);
    } else {
      if (old.length > 0) this.#item(type.item, element, old[0], undefined);
      this.added.insert(path);
    }
  }
}

function itemsByElement(type: ListType, list: readonly unknown[]): Map<PathElement, unknown[]> {
  const items = new Map<PathElement, unknown[]>();
  for (const item of list) {
    const element = itemElement(type, item);
    const present = items.get(element);
    if (present === undefined) items.set(element, [item]);
    else present.push(item);
  }
  return items;
}

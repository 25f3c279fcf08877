/**
 * Field sets of values, and values without some fields (structured-merge-diff: typed/tofieldset.go,
 * typed/remove.go, fieldpath/set.go).
 */

import { setField } from "@quorate/kube-storage";
import { EMPTY_SET, type FieldSet, LEAF, nodeOf } from "./field-set.ts";
import { fieldNameOf, type PathElement } from "./path-element.ts";
import type { ListType, MapType, TypeAtom } from "./typed-schema.ts";
import {
  type Fields,
  fieldTypeOf,
  formOf,
  isEmptyMap,
  isList,
  isMap,
  itemElement,
} from "./typed-value.ts";

/** Every leaf and every item that a validated value mentions. */
export function fieldSetOfValue(type: TypeAtom, value: unknown): FieldSet {
  return collect(type, value, false) ?? EMPTY_SET;
}

/** @param member whether the path of the value is in the set in any case */
function collect(type: TypeAtom, value: unknown, member: boolean): FieldSet | undefined {
  const form = formOf(type, value);
  const children = new Map<PathElement, FieldSet>();
  if (form.form === "scalar" || form.atomic) return LEAF;
  if (form.form === "map" && isMap(value)) collectMap(form, value, children);
  else if (form.form === "list" && isList(value)) collectList(form, value, children);
  return nodeOf(member, children);
}

function collectMap(type: MapType, value: Fields, children: Map<PathElement, FieldSet>): void {
  for (const name of Object.keys(value)) {
    const declared = type.fields.get(name);
    const field = declared ?? type.element;
    if (field === undefined) continue;
    const item = value[name];
    const member = declared === undefined || item === null || (isMap(item) && isEmptyMap(item));
    const child = collect(field, item, member);
    if (child !== undefined) children.set(`f:${name}`, child);
  }
}

function collectList(
  type: ListType,
  value: readonly unknown[],
  children: Map<PathElement, FieldSet>,
): void {
  for (const item of value) {
    const key = itemElement(type, item);
    // Items with the same key are owned as a whole.
    children.set(key, children.has(key) ? LEAF : collect(type.item, item, true)!);
  }
}

/**
 * The value without the fields and items of a set. What is left empty becomes null, as in Go.
 * Unchanged parts are shared.
 */
export function removeItems(type: TypeAtom, value: unknown, set: FieldSet): unknown {
  const form = formOf(type, value);
  if (form.form === "scalar") return value ?? null;
  if (form.atomic) return null;
  if (form.form === "map") return isMap(value) ? removeFields(form, value, set) : null;
  return isList(value) ? removeFromList(form, value, set) : null;
}

function removeFields(type: MapType, value: Fields, set: FieldSet): unknown {
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const below = set.children?.get(`f:${name}`);
    if (below?.member) continue;
    const field = fieldTypeOf(type, name);
    const item = value[name];
    const stays = below === undefined || field === undefined;
    setField(kept, name, stays ? item : removeItems(field, item, below));
  }
  return isEmptyMap(kept) ? null : kept;
}

function removeFromList(type: ListType, value: readonly unknown[], set: FieldSet): unknown {
  const kept: unknown[] = [];
  for (const item of value) {
    const below = set.children?.get(itemElement(type, item));
    if (below?.member) continue;
    kept.push(below === undefined ? item : removeItems(type.item, item, below));
  }
  return kept.length > 0 ? kept : null;
}

/**
 * The set, and all declared fields on the way to its paths: "a.b.c" brings "a" where that is a
 * declared field, but not "a.b" where "a" is a map.
 */
export function withNamedFields(type: TypeAtom | undefined, set: FieldSet): FieldSet {
  if (set.children === undefined) return set;
  let changed: Map<PathElement, FieldSet> | undefined;
  for (const [element, child] of set.children) {
    if (child.children === undefined) continue;
    const name = fieldNameOf(element);
    const declared = name === undefined ? undefined : type?.map?.fields.get(name);
    let below = withNamedFields(declared ?? typeBelow(type, element), child);
    if (declared !== undefined && !below.member) {
      below = { member: true, children: below.children };
    }
    if (below === child) continue;
    changed ??= new Map(set.children);
    changed.set(element, below);
  }
  return changed === undefined ? set : { member: set.member, children: changed };
}

function typeBelow(type: TypeAtom | undefined, element: PathElement): TypeAtom | undefined {
  if (element.startsWith("f:")) return type?.map?.element;
  return element.startsWith("k:") ? type?.list?.item : undefined;
}

/** The paths of atomic maps and lists in a validated value, such as ".spec.selector". */
export function atomicPaths(type: TypeAtom, value: unknown, path = ""): string[] {
  const form = formOf(type, value);
  if (form.form === "map" && isMap(value)) {
    return [
      ...(form.atomic ? [path] : []),
      ...Object.keys(value).flatMap((name) => {
        const field = form.fields.get(name);
        return field === undefined ? [] : atomicPaths(field, value[name], `${path}.${name}`);
      }),
    ];
  }
  if (form.form !== "list" || !isList(value)) return [];
  const items = value.flatMap((item, i) => atomicPaths(form.item, item, `${path}[${i}]`));
  return [...(form.atomic ? [path] : []), ...items];
}

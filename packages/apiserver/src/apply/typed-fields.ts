/**
 * Field sets of values, and values without some fields (structured-merge-diff: typed/tofieldset.go,
 * typed/remove.go, fieldpath/set.go).
 */
import { EMPTY_SET, type FieldSet, FieldSetBuilder, isEmptySet } from "./field-set.ts";
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
  setField,
} from "./typed-value.ts";

/** Every leaf and every item that a validated value mentions. */
export function fieldSetOfValue(type: TypeAtom, value: unknown): FieldSet {
  const builder = new FieldSetBuilder();
  collect(type, value, builder);
  return builder.build();
}

function collect(type: TypeAtom, value: unknown, into: FieldSetBuilder): void {
  const form = formOf(type, value);
  if (form.form === "scalar" || form.atomic) into.add();
  else if (form.form === "map" && isMap(value)) collectMap(form, value, into);
  else if (form.form === "list" && isList(value)) collectList(form, value, into);
}

function collectMap(type: MapType, value: Fields, into: FieldSetBuilder): void {
  for (const name of Object.keys(value)) {
    const declared = type.fields.get(name);
    const field = declared ?? type.element;
    if (field === undefined) continue;
    const item = value[name];
    const child = into.child(`f:${name}`);
    collect(field, item, child);
    if (declared === undefined || item === null || (isMap(item) && isEmptyMap(item))) child.add();
  }
}

function collectList(type: ListType, value: readonly unknown[], into: FieldSetBuilder): void {
  const keys = value.map((item) => itemElement(type, item));
  const counts = new Map<PathElement, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  value.forEach((item, at) => {
    const child = into.child(keys[at]);
    child.add();
    // Items with the same key are owned as a whole.
    if (counts.get(keys[at]) === 1) collect(type.item, item, child);
  });
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
  if (isEmptySet(set) || set.children === undefined) return set;
  const children = new Map<PathElement, FieldSet>();
  for (const [element, child] of set.children) {
    const name = fieldNameOf(element);
    const declared = name === undefined ? undefined : type?.map?.fields.get(name);
    const below = withNamedFields(declared ?? typeBelow(type, element), child);
    const becomes = declared !== undefined && child.children !== undefined && !below.member;
    children.set(element, becomes ? { member: true, children: below.children } : below);
  }
  return children.size === 0 ? EMPTY_SET : { member: set.member, children };
}

function typeBelow(type: TypeAtom | undefined, element: PathElement): TypeAtom | undefined {
  if (element.startsWith("f:")) return type?.map?.element;
  return element.startsWith("k:") ? type?.list?.item : undefined;
}

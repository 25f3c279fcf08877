/**
 * Values seen through their types (structured-merge-diff: typed/helpers.go). `undefined` is an
 * absent value, which is not the same as null.
 */
import { CodedError, quoteText as goQuote } from "@quorate/proto";
import { keyElement, type PathElement, singleKeyElement, valueElement } from "./path-element.ts";
import type { ListType, MapType, ScalarType, TypeAtom } from "./typed-schema.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** A value does not fit its type. The message has Go's texts, with paths. */
export class TypedError extends CodedError<"SchemaMismatch"> {
  constructor(message: string) {
    super("TypedError", "SchemaMismatch", message);
  }
}

export function isMap(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** The map, or undefined for null, an absent value and anything else. */
export function asMap(value: unknown): Fields | undefined {
  return isMap(value) ? value : undefined;
}

export function asList(value: unknown): readonly unknown[] | undefined {
  return isList(value) ? value : undefined;
}

export function isEmptyMap(fields: Fields | undefined): boolean {
  if (fields === undefined) return true;
  for (const _ in fields) return false;
  return true;
}

/** The form of a type that a value has; for null and values that do not fit, the first one. */
export function formOf(type: TypeAtom, value: unknown): MapType | ListType | ScalarType {
  if (isList(value)) {
    if (type.list !== undefined) return type.list;
  } else if (isMap(value)) {
    if (type.map !== undefined) return type.map;
  } else if (value !== null && value !== undefined && type.scalar !== undefined) {
    return type.scalar;
  }
  const form = type.map ?? type.scalar ?? type.list;
  if (form === undefined) throw new TypedError("schema error: invalid atom: inlined");
  return form;
}

/** The type of a field; undefined if the map does not allow it. */
export function fieldTypeOf(type: MapType, name: string): TypeAtom | undefined {
  return type.fields.get(name) ?? type.element;
}

/**
 * The step that leads to an item of an associative list.
 * @throws TypedError where the item has no key, or is no scalar in a set
 */
export function itemElement(type: ListType, item: unknown): PathElement {
  return type.keys.length > 0 ? keyedItem(type, item) : setItem(item);
}

function keyedItem(type: ListType, item: unknown): PathElement {
  if (item === null) {
    throw new TypedError("associative list with keys may not have a null element");
  }
  if (!isMap(item)) {
    throw new TypedError("associative list with keys may not have non-map elements");
  }
  if (type.keys.length === 1 && Object.hasOwn(item, type.keys[0])) {
    return singleKeyElement(type.keys[0], item[type.keys[0]]);
  }
  const fields: Record<string, unknown> = {};
  let found = false;
  for (const key of type.keys) {
    const value = Object.hasOwn(item, key) ? item[key] : keyDefault(type, key);
    if (value === undefined) continue;
    fields[key] = value;
    found = true;
  }
  if (!found) {
    const keys = type.keys.map(goQuote).join(" ");
    throw new TypedError(
      `associative list with keys has an element that omits all key fields [${keys}] ` +
        "(and doesn't have default values for any key fields)",
    );
  }
  return keyElement(fields);
}

function keyDefault(type: ListType, key: string): unknown {
  if (type.item.map === undefined) {
    throw new TypedError(
      `couldn't find default value for ${key}: associative list may not have non-map types`,
    );
  }
  return type.item.map.fields.get(key)?.default ?? undefined;
}

function setItem(item: unknown): PathElement {
  if (isMap(item)) {
    throw new TypedError("associative list without keys has an element that's a map type");
  }
  if (isList(item)) {
    throw new TypedError("not supported: associative list with lists as elements");
  }
  if (item === null) {
    throw new TypedError("associative list without keys has an element that's an explicit null");
  }
  return valueElement(item);
}

/** Sets a field that may have any name, "__proto__" included. */
export function setField(fields: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== "__proto__") {
    fields[name] = value;
    return;
  }
  Object.defineProperty(fields, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}

/**
 * Values seen through their types (structured-merge-diff: typed/helpers.go). `undefined` is an
 * absent value, which is not the same as null.
 */
import { CodedError, quoteText as goQuote } from "@quorate/proto";
import { goSyntax, goType, goValue } from "./go-text.ts";
import {
  elementText,
  keyElement,
  type PathElement,
  pathText,
  singleKeyElement,
  valueElement,
} from "./path-element.ts";
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
  const [only, second] = type.keys;
  if (only !== undefined && second === undefined && Object.hasOwn(item, only)) {
    return singleKeyElement(only, item[only]);
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

/** More errors are not collected. */
const MAX_ERRORS = 100;

/**
 * @param allowDuplicates in stored objects: older versions of a schema may have allowed them
 * @throws TypedError with all errors
 */
export function validateTyped(type: TypeAtom, value: unknown, allowDuplicates: boolean): void {
  const validator = new Validator(allowDuplicates);
  validator.visit(type, value);
  const { errors } = validator;
  const [first, second] = errors;
  if (first === undefined) return;
  throw new TypedError(second === undefined ? first : ["errors:", ...errors].join("\n  "));
}

/** Checks a value against its type (structured-merge-diff: typed/validate.go). */
class Validator {
  readonly errors: string[] = [];
  readonly #path: PathElement[] = [];
  readonly #allowDuplicates: boolean;

  constructor(allowDuplicates: boolean) {
    this.#allowDuplicates = allowDuplicates;
  }

  visit(type: TypeAtom, value: unknown): void {
    const form = formOf(type, value);
    if (value === null) return;
    if (form.form === "scalar") this.#scalar(form, value);
    else if (form.form === "map") this.#map(form, value);
    else this.#list(form, value);
  }

  #report(message: string): void {
    if (this.errors.length >= MAX_ERRORS) return;
    const path = pathText(this.#path);
    this.errors.push(path === "" ? message : `${path}: ${message}`);
  }

  #scalar(type: ScalarType, value: unknown): void {
    const problem = scalarProblem(type, value);
    if (problem !== undefined) this.#report(problem);
  }

  #map(type: MapType, value: unknown): void {
    if (!isMap(value)) {
      this.#report(`expected map, got &{${goValue(value)}}`);
      return;
    }
    for (const name of Object.keys(value)) {
      const field = fieldTypeOf(type, name);
      this.#path.push(`f:${name}`);
      if (field !== undefined) this.visit(field, value[name]);
      else this.#report("field not declared in schema");
      this.#path.pop();
      if (field === undefined) return;
    }
  }

  #list(type: ListType, value: unknown): void {
    if (!isList(value)) {
      this.#report(`expected list, got &{${goValue(value)}}`);
      return;
    }
    const seen = new Set<PathElement>();
    for (let at = 0; at < value.length; at++) {
      const element = this.#elementAt(type, value[at], at);
      if (element === undefined) return;
      if (!type.atomic) {
        if (seen.has(element) && !this.#allowDuplicates) {
          this.#report(`duplicate entries for key ${elementText(element)}`);
        }
        seen.add(element);
      }
      this.#path.push(element);
      this.visit(type.item, value[at]);
      this.#path.pop();
    }
  }

  #elementAt(type: ListType, item: unknown, at: number): PathElement | undefined {
    if (type.atomic) return `i:${at}`;
    try {
      return itemElement(type, item);
    } catch (error) {
      if (!(error instanceof TypedError)) throw error;
      this.#report(`element ${at}: ${error.message}`);
      return undefined;
    }
  }
}

/** What is wrong with a scalar; undefined if nothing is. */
function scalarProblem(type: ScalarType, value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined;
  switch (type.kind) {
    case "numeric":
      if (typeof value === "number") return undefined;
      return `expected numeric (int or float), got ${goType(value)}`;
    case "string":
      if (typeof value === "string") return undefined;
      return `expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`;
    case "boolean":
      if (typeof value === "boolean") return undefined;
      return `expected boolean, got &{${goValue(value)}}`;
    default:
      if (typeof value !== "object") return undefined;
      return `expected any scalar, got &{${goValue(value)}}`;
  }
}

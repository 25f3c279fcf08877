/**
 * Resources inside of resources (x-kubernetes-embedded-resource): their apiVersion, kind and
 * metadata are typed and validated as at the root (apiextensions-apiserver:
 * pkg/apiserver/schema/objectmeta).
 */

import type { FieldError, Schema } from "@quorate/kube-storage";
import {
  invalidValue,
  isDns1035Label,
  isObject,
  type Json,
  type JsonObject,
  nameIsPathSegment,
  type ObjectMeta,
  parseApiVersion,
  required,
  validateObjectMeta,
} from "@quorate/kube-storage";
import { fieldOf, mapFields, mapItems } from "./edit.ts";
import { type CoerceOptions, coerceObjectMeta, MetaTypeError } from "./object-meta.ts";
import { at, child, keyed } from "./paths.ts";
import { traitsOf, valueSchema } from "./traits.ts";
import { walk } from "./walk.ts";

/** A malformed apiVersion, kind or metadata inside of an object. */
export class EmbeddedError extends TypeError {
  readonly problem: FieldError;

  constructor(problem: FieldError) {
    super(`${problem.field}: ${problem.message}`);
    this.problem = problem;
  }
}

/** Prunes the metadata of embedded resources. Throws EmbeddedError unless malformed ones go too. */
export function coerceEmbedded(
  value: JsonObject,
  schema: Schema | undefined,
  options: CoerceOptions,
): JsonObject;
export function coerceEmbedded(
  value: Json,
  schema: Schema | undefined,
  options: CoerceOptions,
  path?: string,
): Json;
export function coerceEmbedded(
  value: Json,
  schema: Schema | undefined,
  options: CoerceOptions,
  path = "",
): Json {
  if (schema === undefined || !traitsOf(schema).embedded) return value;
  if (Array.isArray(value)) {
    return mapItems(value, (item, i) => coerceEmbedded(item, schema.items, options, at(path, i)));
  }
  if (!isObject(value)) return value;
  const embedded = schema["x-kubernetes-embedded-resource"] === true;
  const values = valueSchema(schema);
  return mapFields(value, (field, key) => {
    const typed = embedded ? coerceTyped(field, key, path, options) : field;
    const property = fieldOf(schema.properties, key);
    if (typed === undefined) return undefined;
    if (property !== undefined) return coerceEmbedded(typed, property, options, child(path, key));
    return coerceEmbedded(typed, values, options, keyed(path, key));
  });
}

function coerceTyped(
  field: Json,
  key: string,
  path: string,
  options: CoerceOptions,
): Json | undefined {
  const where = child(path, key);
  if (key === "apiVersion" || key === "kind") {
    if (typeof field === "string") return field;
    if (options.dropMalformed) return undefined;
    throw new EmbeddedError(invalidValue(where, field, "must be a string"));
  }
  if (key !== "metadata") return field;
  try {
    return coerceObjectMeta(field, where, options);
  } catch (error) {
    if (!(error instanceof MetaTypeError)) throw error;
    if (options.dropMalformed) return field;
    throw new EmbeddedError(invalidValue(where, field, error.message));
  }
}

/** Errors of all embedded resources. */
export function validateEmbedded(
  value: Json | undefined,
  schema: Schema | undefined,
  path = "",
): FieldError[] {
  const errors: FieldError[] = [];
  walk(value, schema, path, "embedded", (node, at, where) => {
    if (isObject(node) && at["x-kubernetes-embedded-resource"] === true)
      errors.push(...resourceErrors(node, where));
  });
  return errors;
}

function resourceErrors(object: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const name of ["apiVersion", "kind"]) {
    if (!Object.hasOwn(object, name)) errors.push(required(child(path, name)));
  }
  for (const [key, value] of Object.entries(object)) {
    const where = child(path, key);
    if (key === "apiVersion") errors.push(...apiVersionErrors(value, where));
    else if (key === "kind") errors.push(...kindErrors(value, where));
    else if (key === "metadata") errors.push(...metadataErrors(value ?? null, where));
  }
  return errors;
}

function apiVersionErrors(value: unknown, path: string): FieldError[] {
  if (typeof value !== "string") return [invalidValue(path, value, "must be a string")];
  if (value === "") return [invalidValue(path, value, "must not be empty")];
  if (parseApiVersion(value) !== undefined || value.split("/").length <= 2) return [];
  return [invalidValue(path, value, `unexpected GroupVersion string: ${value}`)];
}

function kindErrors(value: unknown, path: string): FieldError[] {
  if (typeof value !== "string") return [invalidValue(path, value, "must be a string")];
  if (value === "") return [invalidValue(path, value, "must not be empty")];
  const errors = isDns1035Label(value.toLowerCase());
  if (errors.length === 0) return [];
  const prefix = "may have mixed case, but should otherwise match: ";
  return [invalidValue(path, value, prefix + errors.join(","))];
}

function metadataErrors(value: Json, path: string): readonly FieldError[] {
  try {
    const metadata = coerceObjectMeta(value, path, { dropMalformed: false }) as ObjectMeta;
    // A name is not required here; a path segment is, if there is one.
    const named = { ...metadata, name: metadata.name || "fakename" };
    return validateObjectMeta(named, metadata.namespace !== undefined, nameIsPathSegment, path);
  } catch (error) {
    if (!(error instanceof MetaTypeError)) throw error;
    return [invalidValue(path, value, error.message)];
  }
}

/**
 * Defaults of a structural schema, and nulls (apiextensions-apiserver:
 * pkg/apiserver/schema/defaulting): a null in a field that is not nullable is as if it were absent.
 */

import { isObject, type Json, type JsonObject, type Schema, setField } from "@quorate/kube-storage";
import { fieldOf, mapFields, mapItems } from "./edit.ts";
import { traitsOf, valueSchema } from "./traits.ts";

function hasDefault(schema: Schema): boolean {
  return schema.default !== undefined && schema.default !== null;
}

/** Removes nulls where the schema is neither nullable nor has a default. */
export function dropNulls(value: JsonObject, schema: Schema | undefined): JsonObject;
export function dropNulls(value: Json, schema: Schema | undefined): Json;
export function dropNulls(value: Json, schema: Schema | undefined): Json {
  if (Array.isArray(value)) {
    return mapItems(value, (item) => dropNulls(item, schema?.items));
  }
  if (!isObject(value)) return value;
  return mapFields(value, (field, key) => {
    if (field !== null && typeof field !== "object") return field;
    const below = schema && (fieldOf(schema.properties, key) ?? valueSchema(schema));
    if (field !== null) return dropNulls(field, below);
    return below !== undefined && below.nullable !== true && !hasDefault(below) ? undefined : null;
  });
}

/** Sets defaults where a field is absent, or null without being nullable. */
export function applyDefaults(value: JsonObject, schema: Schema | undefined): JsonObject;
export function applyDefaults(value: Json, schema: Schema | undefined): Json;
export function applyDefaults(value: Json, schema: Schema | undefined): Json {
  if (schema === undefined || !traitsOf(schema).defaults) return value;
  if (Array.isArray(value)) {
    return mapItems(value, (item) => defaulted(item, schema.items));
  }
  if (!isObject(value)) return value;
  const complete = withMissing(value, schema);
  return mapFields(complete, (field, key) => {
    const property = fieldOf(schema.properties, key);
    return property === undefined
      ? defaulted(field, valueSchema(schema))
      : applyDefaults(field, property);
  });
}

/** An item of a list or a value of a map. */
function defaulted(value: Json, schema: Schema | undefined): Json {
  if (schema === undefined) return value;
  const replaced = value === null && schema.nullable !== true ? (schema.default ?? null) : value;
  return applyDefaults(replaced, schema);
}

function withMissing(object: JsonObject, schema: Schema): JsonObject {
  let copy: Record<string, Json | undefined> | undefined;
  for (const [key, property] of Object.entries(schema.properties ?? {})) {
    if (!hasDefault(property)) continue;
    const present = fieldOf(object, key);
    if (present !== undefined && (present !== null || property.nullable === true)) continue;
    copy ??= { ...object };
    setField(copy, key, property.default);
  }
  return copy ?? object;
}

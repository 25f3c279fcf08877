/**
 * Pruning: fields that a structural schema does not specify are removed
 * (apiextensions-apiserver: pkg/apiserver/schema/pruning).
 */

import type { Schema } from "@quorate/kube-storage";
import { isObject, type Json, type JsonObject } from "@quorate/kube-storage";
import { fieldOf, mapFields, mapItems } from "./edit.ts";
import { valueSchema } from "./traits.ts";

/** The fields that every resource has; a schema need not list them. */
export const META_FIELDS: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata"]);

/** The schema of a whole resource: its apiVersion, kind and metadata are implicit. */
export function asResource(schema: Schema | undefined): Schema {
  if (schema?.["x-kubernetes-embedded-resource"] === true) return schema;
  return { ...schema, "x-kubernetes-embedded-resource": true };
}

/** The fields removed so far, and where the walk is. */
interface Walk {
  readonly unknown: string[] | undefined;
  path: string;
}

/**
 * @param schema `undefined` removes every field
 * @param unknown receives the paths of the removed fields, such as "spec.items[2].size"
 * @returns the same value where nothing is removed
 */
export function prune<T extends Json>(value: T, schema: Schema | undefined, unknown?: string[]): T {
  const walk: Walk = { unknown, path: "" };
  const pruned = pruneValue(value, schema, walk);
  unknown?.sort();
  return pruned as T;
}

function pruneValue(value: Json, schema: Schema | undefined, walk: Walk): Json {
  if (schema?.["x-kubernetes-preserve-unknown-fields"] === true) {
    return walkPreserved(value, schema, walk);
  }
  if (Array.isArray(value)) {
    return pruneItems(value, walk, (item) => pruneValue(item, schema?.items, walk));
  }
  return isObject(value) ? pruneObject(value, schema, walk) : value;
}

function pruneObject(object: JsonObject, schema: Schema | undefined, walk: Walk): JsonObject {
  const embedded = schema?.["x-kubernetes-embedded-resource"] === true;
  const root = walk.path;
  return mapFields(object, (value, key) => {
    if (embedded && META_FIELDS.has(key)) return value;
    const property = fieldOf(schema?.properties, key);
    if (property !== undefined) return below(walk, key, () => pruneValue(value, property, walk));
    if (schema?.additionalProperties !== undefined) {
      return below(walk, key, () => pruneValue(value, valueSchema(schema), walk));
    }
    if (schema === undefined || root !== "" || !META_FIELDS.has(key)) {
      walk.unknown?.push(root === "" ? key : `${root}.${key}`);
    }
    return undefined;
  });
}

/** Below x-kubernetes-preserve-unknown-fields only what a schema specifies is pruned. */
function walkPreserved(value: Json, schema: Schema, walk: Walk): Json {
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items === undefined) return value;
    return pruneItems(value, walk, (item) => walkPreserved(item, items, walk));
  }
  if (!isObject(value)) return value;
  if (schema.properties === undefined && schema.additionalProperties === undefined) return value;
  const embedded = schema["x-kubernetes-embedded-resource"] === true;
  return mapFields(value, (field, key) => {
    if (embedded && META_FIELDS.has(key)) return field;
    const property = fieldOf(schema.properties, key);
    if (property !== undefined) return below(walk, key, () => pruneValue(field, property, walk));
    if (schema.additionalProperties === undefined) return field;
    return below(walk, key, () => pruneValue(field, valueSchema(schema), walk));
  });
}

function pruneItems(list: readonly Json[], walk: Walk, change: (item: Json) => Json) {
  const root = walk.path;
  const pruned = mapItems(list, (item, index) => {
    if (walk.unknown !== undefined) walk.path = `${root}[${index}]`;
    return change(item);
  });
  walk.path = root;
  return pruned;
}

function below(walk: Walk, key: string, visit: () => Json): Json {
  if (walk.unknown === undefined) {
    // The path matters only as "the root or not".
    const root = walk.path;
    walk.path = "x";
    const result = visit();
    walk.path = root;
    return result;
  }
  const root = walk.path;
  walk.path = root === "" ? key : `${root}.${key}`;
  const result = visit();
  walk.path = root;
  return result;
}

/** Walks a value and its schema together, for checks of single nodes. */

import type { Schema } from "@quorate/kube-storage";
import { isObject, type Json, type JsonObject } from "@quorate/kube-storage";
import { fieldOf } from "./edit.ts";
import { at, child, keyed } from "./paths.ts";
import { type Traits, traitsOf, valueSchema } from "./traits.ts";

/**
 * Calls `visit` for each list and object, before what is in it. Parts whose schema lacks the trait
 * are skipped.
 * @param path of the value; "" for the root
 */
export function walk(
  value: Json | undefined,
  schema: Schema | undefined,
  path: string,
  trait: keyof Traits,
  visit: (node: readonly Json[] | JsonObject, schema: Schema, path: string) => void,
): void {
  if (schema === undefined || !traitsOf(schema)[trait]) return;
  if (Array.isArray(value)) {
    visit(value, schema, path);
    for (const [i, item] of value.entries()) walk(item, schema.items, at(path, i), trait, visit);
  } else if (isObject(value)) {
    visit(value, schema, path);
    const values = valueSchema(schema);
    for (const [key, field] of Object.entries(value)) {
      const property = fieldOf(schema.properties, key);
      if (property !== undefined) walk(field, property, child(path, key), trait, visit);
      else walk(field, values, keyed(path, key), trait, visit);
    }
  }
}

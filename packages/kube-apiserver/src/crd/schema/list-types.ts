/**
 * Lists of type "set" and "map": no item, or no key, occurs twice (apiextensions-apiserver:
 * pkg/apiserver/schema/listtype).
 */

import type { FieldError, Schema } from "@quorate/kube-storage";
import { duplicate, invalidValue, isObject, type Json } from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { fieldOf } from "./edit.ts";
import { at } from "./paths.ts";
import { walk } from "./walk.ts";

/** @param path "" for the root */
export function validateListTypes(
  value: Json | undefined,
  schema: Schema | undefined,
  path = "",
): FieldError[] {
  const errors: FieldError[] = [];
  walk(value, schema, path, "lists", (list, of, where) => {
    if (!Array.isArray(list)) return;
    const type = of["x-kubernetes-list-type"];
    if (type === "set") errors.push(...repeated(list).map((i) => duplicate(at(where, i), list[i])));
    else if (type === "map") errors.push(...repeatedKeys(list, of, where));
  });
  return errors;
}

/** The index of the second occurrence of each item that occurs more than once. */
function repeated(items: readonly (Json | undefined)[]): number[] {
  const times = new Map<string, number>();
  const indexes: number[] = [];
  for (const [index, item] of items.entries()) {
    const text = item === undefined ? "" : canonical(item);
    const before = times.get(text) ?? 0;
    times.set(text, before + 1);
    if (before === 1) indexes.push(index);
  }
  return indexes;
}

/** JSON with sorted keys. */
function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(defined(value[key], "the value"))}`).join(",")}}`;
}

function repeatedKeys(items: readonly Json[], schema: Schema, path: string): FieldError[] {
  for (const [i, item] of items.entries()) {
    if (item === null || isObject(item)) continue;
    return [invalidValue(at(path, i), item, "must be an object for an array of list-type map")];
  }
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const chosen = items.map((item) => {
    const object = isObject(item) ? item : {};
    const present = keys.filter((key) => fieldOf(object, key) !== undefined).sort();
    return Object.fromEntries(present.map((key) => [key, defined(object[key], "the object")]));
  });
  return repeated(chosen).map((i) => duplicate(at(path, i), chosen[i]));
}

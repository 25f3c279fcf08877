/** The rules for x-kubernetes-list-type and x-kubernetes-list-map-keys. */

import type { FieldError } from "@quorate/kube-storage";
import { fieldForbidden, invalidValue, notSupported, required } from "@quorate/kube-storage";
import { fieldOf } from "../schema/edit.ts";
import { child, keyed } from "../schema/paths.ts";
import { itemsOf, type RawSchema } from "./raw-schema.ts";

const LIST_TYPES = ["atomic", "set", "map"];
const SET_ITEM = "must be atomic as item of a list with x-kubernetes-list-type=set";
const NEED_MAP = "must be map if x-kubernetes-list-map-keys is non-empty";

/** @param atomicSets whether items of sets must be atomic */
export function listErrors(schema: RawSchema, path: string, atomicSets: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const listType: string | undefined = schema["x-kubernetes-list-type"];
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const where = child(path, "x-kubernetes-list-type");
  if (listType !== undefined && schema.type !== "array") {
    const detail = "must be array if x-kubernetes-list-type is specified";
    const type = schema.type ?? "";
    const typePath = child(path, "type");
    errors.push(type === "" ? required(typePath, detail) : invalidValue(typePath, type, detail));
  } else if (atomicSets && listType === "set") errors.push(...setItemErrors(schema, path));
  if (listType !== undefined && !LIST_TYPES.includes(listType)) {
    errors.push(notSupported(where, listType, LIST_TYPES));
  }
  if (keys.length > 0 && listType === undefined) errors.push(required(where, NEED_MAP));
  else if (keys.length > 0 && listType !== "map")
    errors.push(invalidValue(where, listType, NEED_MAP));
  if (listType === "map") errors.push(...mapErrors(schema, keys, path));
  return errors;
}

/** Whether a set has items that are merged field by field. */
export function hasGranularSetItems(schema: RawSchema): boolean {
  return schema["x-kubernetes-list-type"] === "set" && setItemErrors(schema, "").length > 0;
}

function setItemErrors(schema: RawSchema, path: string): FieldError[] {
  const items = itemsOf(schema);
  const listType: string | undefined = items?.["x-kubernetes-list-type"];
  if (items?.type === "array" && listType !== undefined && listType !== "atomic") {
    const where = child(child(path, "items"), "x-kubernetes-list-type");
    return [invalidValue(where, listType, SET_ITEM)];
  }
  if (items?.type === "object" && items["x-kubernetes-map-type"] !== "atomic") {
    const where = child(child(path, "items"), "x-kubernetes-map-type");
    return [invalidValue(where, listType ?? null, SET_ITEM)];
  }
  return [];
}

function mapErrors(schema: RawSchema, keys: readonly string[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const keysPath = child(path, "x-kubernetes-list-map-keys");
  const itemsPath = child(path, "items");
  const items = itemsOf(schema);
  if (keys.length === 0) {
    errors.push(required(keysPath, "must not be empty if x-kubernetes-list-type is map"));
  }
  if (schema.items === undefined) {
    errors.push(required(itemsPath, "must have a schema if x-kubernetes-list-type is map"));
  } else if (items === undefined) {
    const detail = "must only have a single schema if x-kubernetes-list-type is map";
    errors.push(invalidValue(itemsPath, schema.items, detail));
  }
  if (items === undefined) return errors;
  if (items.type !== "object") {
    const detail = "must be object if parent array's x-kubernetes-list-type is map";
    errors.push(invalidValue(child(itemsPath, "type"), items.type ?? "", detail));
    return errors;
  }
  const seen = new Set<string>();
  for (const key of keys) {
    const property = fieldOf(items.properties, key);
    if (property === undefined) {
      errors.push(invalidValue(keysPath, keys, "entries must all be names of item properties"));
    } else if (property.type === "array" || property.type === "object") {
      const where = child(keyed(child(itemsPath, "properties"), key), "type");
      const detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
      errors.push(invalidValue(where, items.type, detail));
    }
    if (seen.has(key)) {
      errors.push(invalidValue(keysPath, keys, "must not contain duplicate entries"));
    }
    seen.add(key);
  }
  return errors;
}

/** Keys of map lists are always present; items of sets and maps are never null. */
export function mapKeyErrors(schema: RawSchema, path: string): FieldError[] {
  const items = itemsOf(schema);
  const listType: string | undefined = schema["x-kubernetes-list-type"];
  if (items === undefined || (listType !== "set" && listType !== "map")) return [];
  const errors: FieldError[] = [];
  const itemsPath = child(path, "items");
  if (items.nullable === true) {
    const detail = `cannot be nullable when x-kubernetes-list-type is ${listType}`;
    errors.push(fieldForbidden(child(itemsPath, "nullable"), detail));
  }
  if (listType === "set") return errors;
  const inKeys = "this property is in x-kubernetes-list-map-keys, so it";
  const alwaysThere = new Set(items.required);
  for (const key of schema["x-kubernetes-list-map-keys"] ?? []) {
    const property = fieldOf(items.properties, key);
    if (property === undefined) continue;
    const where = keyed(child(itemsPath, "properties"), key);
    if (!alwaysThere.has(key) && (property.default ?? null) === null) {
      const detail = `${inKeys} must have a default or be a required property`;
      errors.push(required(child(where, "default"), detail));
    }
    if (property.nullable === true) {
      errors.push(fieldForbidden(child(where, "nullable"), `${inKeys} cannot be nullable`));
    }
  }
  return errors;
}

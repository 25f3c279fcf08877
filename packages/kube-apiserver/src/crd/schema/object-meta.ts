/**
 * The types of metadata's fields, as decoding into metav1.ObjectMeta enforces them for custom
 * resources (apiextensions-apiserver: pkg/apiserver/schema/objectmeta/coerce.go).
 */
import { isObject, type Json, type JsonObject } from "@quorate/kube-storage";
import { fieldOf, mapFields } from "./edit.ts";

/** What a field's value must be; `fields` for a struct. */
interface Shape {
  readonly type: "string" | "int64" | "bool" | "time" | "strings" | "map" | "structs" | "raw";
  /** Go's name of the struct's type, for error texts. */
  readonly struct?: string;
  readonly fields?: Readonly<Record<string, Shape>>;
}

const text: Shape = { type: "string" };
const number: Shape = { type: "int64" };
const truth: Shape = { type: "bool" };
const time: Shape = { type: "time" };
const map: Shape = { type: "map" };

const OWNER_REFERENCE = {
  apiVersion: text,
  kind: text,
  name: text,
  uid: text,
  controller: truth,
  blockOwnerDeletion: truth,
};

const MANAGED_FIELDS_ENTRY = {
  manager: text,
  operation: text,
  apiVersion: text,
  time,
  fieldsType: text,
  fieldsV1: { type: "raw" } as Shape,
  subresource: text,
};

const OBJECT_META: Readonly<Record<string, Shape>> = {
  name: text,
  generateName: text,
  namespace: text,
  selfLink: text,
  uid: text,
  resourceVersion: text,
  generation: number,
  creationTimestamp: time,
  deletionTimestamp: time,
  deletionGracePeriodSeconds: number,
  labels: map,
  annotations: map,
  ownerReferences: { type: "structs", struct: "OwnerReference", fields: OWNER_REFERENCE },
  finalizers: { type: "strings" },
  managedFields: { type: "structs", struct: "ManagedFieldsEntry", fields: MANAGED_FIELDS_ENTRY },
};

/** Why a value is no metadata, in the words of Go's JSON decoder. */
export class MetaTypeError extends TypeError {}

/** How malformed and unknown fields are treated. */
export interface CoerceOptions {
  /** Malformed fields are removed instead of refused. */
  readonly dropMalformed: boolean;
  /** Receives the paths of unknown fields, such as "metadata.size". */
  readonly unknown?: string[] | undefined;
}

/**
 * The metadata without unknown fields and nulls. Throws MetaTypeError.
 * @param path of the metadata, for the paths of unknown fields
 */
export function coerceObjectMeta(value: Json, path: string, options: CoerceOptions): JsonObject {
  if (!isObject(value)) {
    throw new MetaTypeError(
      `json: cannot unmarshal ${jsonName(value)} into Go value of type v1.ObjectMeta`,
    );
  }
  return coerceStruct(value, OBJECT_META, "ObjectMeta", path, options);
}

function coerceStruct(
  object: JsonObject,
  shapes: Readonly<Record<string, Shape>>,
  struct: string,
  path: string,
  options: CoerceOptions,
): JsonObject {
  return mapFields(object, (value, key) => {
    const shape = fieldOf(shapes, key);
    if (shape === undefined) {
      options.unknown?.push(`${path}.${key}`);
      return undefined;
    }
    if (value === null || isEmpty(value, shape)) return undefined;
    const problem = misfit(value, shape);
    if (problem === undefined) return coerceBelow(value, shape, `${path}.${key}`, options);
    if (options.dropMalformed) return undefined;
    throw new MetaTypeError(
      problem.startsWith("parsing")
        ? problem
        : `json: cannot unmarshal ${problem} into Go struct field ${struct}.${key}${GO_TYPES[shape.type]}`,
    );
  });
}

/** An empty list or map is as if it were absent, as encoding with "omitempty" makes it. */
function isEmpty(value: Json, shape: Shape): boolean {
  if (shape.type === "map") return isObject(value) && Object.keys(value).length === 0;
  if (shape.type === "strings" || shape.type === "structs") {
    return Array.isArray(value) && value.length === 0;
  }
  return false;
}

const GO_TYPES: Readonly<Record<Shape["type"], string>> = {
  string: " of type string",
  int64: " of type int64",
  bool: " of type bool",
  time: " of type string",
  strings: " of type string",
  map: " of type string",
  structs: " of type v1.OwnerReference",
  raw: " of type v1.FieldsV1",
};

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** Undefined where the value fits, else what it is. */
function misfit(value: Json, shape: Shape): string | undefined {
  switch (shape.type) {
    case "string":
      return typeof value === "string" ? undefined : jsonName(value);
    case "int64":
      if (typeof value === "number" && Number.isInteger(value)) return undefined;
      return typeof value === "number" ? `number ${value}` : jsonName(value);
    case "bool":
      return typeof value === "boolean" ? undefined : jsonName(value);
    case "time":
      if (typeof value !== "string") return jsonName(value);
      return RFC3339.test(value) ? undefined : `parsing time ${JSON.stringify(value)}`;
    case "strings":
      if (!Array.isArray(value)) return jsonName(value);
      return misfitOf(value);
    case "map":
      return isObject(value) ? misfitOf(Object.values(value)) : jsonName(value);
    case "structs":
      if (!Array.isArray(value)) return jsonName(value);
      return value.every(isObject) ? undefined : "array";
    default:
      return isObject(value) ? undefined : jsonName(value);
  }
}

function misfitOf(values: readonly (Json | undefined)[]): string | undefined {
  const other = values.find((value) => typeof value !== "string" && value !== null);
  return other === undefined ? undefined : jsonName(other);
}

function coerceBelow(value: Json, shape: Shape, path: string, options: CoerceOptions): Json {
  if (shape.fields === undefined || !Array.isArray(value)) return value;
  const { fields, struct = "" } = shape;
  let changed = false;
  const items = value.map((item, i) => {
    const result = coerceStruct(item as JsonObject, fields, struct, `${path}[${i}]`, options);
    changed ||= result !== item;
    return result;
  });
  return changed ? items : value;
}

/** The kind of a JSON value, as Go's decoder names it. */
export function jsonName(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (typeof value === "boolean") return "bool";
  return value === null ? "null" : typeof value;
}

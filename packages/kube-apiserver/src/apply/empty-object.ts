/**
 * The object that a create of a built-in kind is compared with. Go's structs have fields that are
 * always there, such as "spec": {}. Who creates the object does not own them, only what is in them.
 */

import type { KubeObject, ObjectSchema, Schema } from "@quorate/kube-storage";
import { apiVersionOf, type GroupVersionKind } from "@quorate/kube-storage";
import { type Fields, isMap } from "./typed-value.ts";

/**
 * @param schema of a built-in kind; the fields that are always there have defaults in it
 * @param decoded the kind's object without fields, decoded and so defaulted
 */
export function emptyObjectOf(
  kind: GroupVersionKind,
  schema: ObjectSchema,
  decoded: KubeObject,
): KubeObject {
  const fields = emptyFields(schema.schema, decoded);
  return { ...fields, apiVersion: apiVersionOf(kind), kind: kind.kind } as KubeObject;
}

/** Keeps empty structs, zero values and null; drops what a default of the kind set. */
function emptyFields(schema: Schema, decoded: Fields): Fields {
  const empty: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(decoded)) {
    const field = schema.properties?.[name];
    if (field === undefined) continue;
    if (value === null) empty[name] = null;
    else if (isMap(field.default)) empty[name] = isMap(value) ? emptyFields(field, value) : {};
    else if (field.default !== undefined) empty[name] = field.default;
  }
  return empty;
}

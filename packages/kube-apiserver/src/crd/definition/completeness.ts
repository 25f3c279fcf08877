/**
 * Each field that allOf, anyOf, oneOf or not restricts is specified outside of them, too
 * (apiextensions-apiserver: pkg/apiserver/schema/complete.go).
 */

import type { FieldError } from "@quorate/kube-storage";
import { required } from "@quorate/kube-storage";
import { fieldOf } from "../schema/edit.ts";
import { at, child, keyed } from "../schema/paths.ts";
import { itemsOf, type RawSchema } from "./raw-schema.ts";

/** @param path of the schema, a whole resource's */
export function completenessErrors(schema: RawSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  restrictions(schema, schema, path, path, errors);
  return errors;
}

/** The alternatives of `values`, which restrict what `schema` specifies. */
function restrictions(
  values: RawSchema,
  schema: RawSchema,
  path: string,
  valuesPath: string,
  to: FieldError[],
): void {
  if (values.not !== undefined) nested(values.not, schema, path, child(valuesPath, "not"), to);
  for (const name of ["allOf", "anyOf", "oneOf"] as const) {
    for (const [i, one] of (values[name] ?? []).entries()) {
      nested(one, schema, path, at(child(valuesPath, name), i), to);
    }
  }
}

function nested(
  values: RawSchema,
  schema: RawSchema | undefined,
  path: string,
  valuesPath: string,
  to: FieldError[],
): void {
  if (schema === undefined) {
    to.push(required(path, `because it is defined in ${valuesPath}`));
    return;
  }
  restrictions(values, schema, path, valuesPath, to);
  const items = itemsOf(values);
  if (items !== undefined) {
    nested(items, itemsOf(schema), child(path, "items"), child(valuesPath, "items"), to);
  }
  for (const [key, property] of Object.entries(values.properties ?? {})) {
    const where = keyed(child(path, "properties"), key);
    const valuesWhere = keyed(child(valuesPath, "properties"), key);
    nested(property, fieldOf(schema.properties, key), where, valuesWhere, to);
  }
}

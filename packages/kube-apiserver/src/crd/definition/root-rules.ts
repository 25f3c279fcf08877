/** The rules for the root of a schema. */

import type { FieldError } from "@quorate/kube-storage";
import { fieldForbidden, invalidValue } from "@quorate/kube-storage";
import type { RawSchema } from "./raw-schema.ts";

/** What a root may have beside a status subresource, by the names of Go's fields. */
const ALLOWED: readonly [goName: string, name: keyof RawSchema][] = [
  ["Description", "description"],
  ["Type", "type"],
  ["Format", "format"],
  ["Title", "title"],
  ["Maximum", "maximum"],
  ["ExclusiveMaximum", "exclusiveMaximum"],
  ["Minimum", "minimum"],
  ["ExclusiveMinimum", "exclusiveMinimum"],
  ["MaxLength", "maxLength"],
  ["MinLength", "minLength"],
  ["Pattern", "pattern"],
  ["MaxItems", "maxItems"],
  ["MinItems", "minItems"],
  ["UniqueItems", "uniqueItems"],
  ["MultipleOf", "multipleOf"],
  ["Required", "required"],
  ["Items", "items"],
  ["Properties", "properties"],
  ["ExternalDocs", "externalDocs"],
  ["Example", "example"],
  ["XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"],
  ["XValidations", "x-kubernetes-validations"],
];

const ALLOWED_NAMES: ReadonlySet<string> = new Set(ALLOWED.map(([, name]) => name));

/** @param status whether the status subresource is enabled, whose schema is cut out */
export function rootErrors(schema: RawSchema, path: string, status: boolean): FieldError[] {
  const errors: FieldError[] = [];
  if (status) errors.push(...statusRootErrors(schema, path));
  if (schema.nullable === true) {
    errors.push(fieldForbidden(`${path}.nullable`, "nullable cannot be true at the root"));
  }
  return errors;
}

function statusRootErrors(schema: RawSchema, path: string): FieldError[] {
  if (schema.type !== undefined && schema.type !== "object") {
    const detail =
      'only "object" is allowed as the type at the root of the schema if the status subresource ' +
      "is enabled";
    return [invalidValue(`${path}.type`, schema.type, detail)];
  }
  const other = Object.entries(schema).find(
    ([name, value]) => !ALLOWED_NAMES.has(name) && isSet(value),
  );
  if (other === undefined) return [];
  const names = ALLOWED.map(([goName]) => goName).join(" ");
  const detail =
    `only [${names}] fields are allowed at the root of the schema if the status subresource is ` +
    "enabled";
  return [invalidValue(path, schema, detail)];
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && value !== "";
}

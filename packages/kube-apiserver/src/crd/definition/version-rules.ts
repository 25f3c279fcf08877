/** A version besides its schema: columns, subresources, selectable fields, warnings. */

import type { FieldError } from "@quorate/kube-storage";
import { duplicate, invalidValue, required, tooMany } from "@quorate/kube-storage";
import { isPrintable } from "@quorate/proto";
import { at, child } from "../schema/paths.ts";
import { findField } from "./field-path.ts";
import type { RawSchema } from "./raw-schema.ts";
import type { StoredColumn } from "./stored-form.ts";
import type { SelectableField, Subresources } from "./types.ts";

const COLUMN_TYPES = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS = [
  "byte",
  "date",
  "date-time",
  "double",
  "float",
  "int32",
  "int64",
  "password",
];

/** More selectable fields of a version are refused. */
export const MAX_SELECTABLE_FIELDS = 8;
const MAX_WARNING_LENGTH = 256;

export function columnErrors(column: StoredColumn, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { name = "", type = "", format = "", JSONPath = "" } = column;
  if (name === "") errors.push(required(child(path, "name")));
  const types = `must be one of ${COLUMN_TYPES.join(",")}`;
  if (type === "") errors.push(required(child(path, "type"), types));
  else if (!COLUMN_TYPES.includes(type))
    errors.push(invalidValue(child(path, "type"), type, types));
  if (format !== "" && !COLUMN_FORMATS.includes(format)) {
    const detail = `must be one of ${COLUMN_FORMATS.join(",")}`;
    errors.push(invalidValue(child(path, "format"), format, detail));
  }
  const where = child(path, "JSONPath");
  if (JSONPath === "") errors.push(required(where));
  else errors.push(...simplePathErrors(JSONPath, where));
  return errors;
}

function simplePathErrors(text: string, path: string): FieldError[] {
  if (text.startsWith(".")) return [];
  return [invalidValue(path, text, "must be a simple json path starting with .")];
}

export function subresourceErrors(
  subresources: Subresources | undefined,
  path: string,
): FieldError[] {
  const scale = subresources?.scale;
  if (scale === undefined || scale === null) return [];
  const { specReplicasPath = "", statusReplicasPath = "", labelSelectorPath = "" } = scale;
  const errors = [
    ...replicasErrors(specReplicasPath, ".spec", child(path, "scale.specReplicasPath")),
    ...replicasErrors(statusReplicasPath, ".status", child(path, "scale.statusReplicasPath")),
  ];
  if (labelSelectorPath === "") return errors;
  const where = child(path, "scale.labelSelectorPath");
  const simple = simplePathErrors(labelSelectorPath, where);
  errors.push(...simple);
  if (simple.length > 0 || /^\.(spec|status)\./.test(labelSelectorPath)) return errors;
  const detail = "should be a json path under either .spec or .status";
  return [...errors, invalidValue(where, labelSelectorPath, detail)];
}

function replicasErrors(text: string, below: string, path: string): FieldError[] {
  if (text === "") return [required(path)];
  const simple = simplePathErrors(text, path);
  if (simple.length > 0 || text.startsWith(`${below}.`)) return simple;
  return [invalidValue(path, text, `should be a json path under ${below}`)];
}

/** @param allowMany whether more fields than are allowed were there before */
export function selectableFieldErrors(
  fields: readonly SelectableField[],
  schema: RawSchema,
  path: string,
  allowMany: boolean,
): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [i, { jsonPath = "" }] of fields.entries()) {
    const where = child(at(path, i), "jsonPath");
    if (jsonPath === "") {
      errors.push(required(where));
      continue;
    }
    const found = findField(jsonPath, schema, false);
    if (typeof found === "string") {
      errors.push(invalidValue(where, jsonPath, `is an invalid path: ${found}`));
      continue;
    }
    if (found.first === "metadata") {
      errors.push(invalidValue(where, jsonPath, "must not point to fields in metadata"));
    }
    if (!["string", "boolean", "integer"].includes(found.schema?.type ?? "")) {
      errors.push(invalidValue(where, jsonPath, NOT_SELECTABLE));
    }
    if (seen.has(found.path)) errors.push(duplicate(where, jsonPath));
    seen.add(found.path);
  }
  if (seen.size > MAX_SELECTABLE_FIELDS && !allowMany) {
    errors.push(tooMany(path, seen.size, MAX_SELECTABLE_FIELDS));
  }
  return errors;
}

const NOT_SELECTABLE =
  "must point to a field of type string, boolean or integer. Enum string fields and strings with " +
  "formats are allowed.";

/** What is wrong with a version's deprecationWarning. */
export function deprecationErrors(
  deprecated: boolean,
  warning: string | undefined,
  path: string,
): FieldError[] {
  if (warning === undefined) return [];
  const texts = deprecated ? warningTexts(warning) : ["can only be set for deprecated versions"];
  return texts.map((text) => invalidValue(child(path, "deprecationWarning"), warning, text));
}

function warningTexts(warning: string): string[] {
  const texts: string[] = [];
  if (warning.length > MAX_WARNING_LENGTH) {
    texts.push(`must be <= ${MAX_WARNING_LENGTH} characters long`);
  }
  if (warning === "") texts.push("must not be an empty string");
  const index = [...warning].findIndex((character) => !isPrintable(character));
  if (index >= 0) {
    const what = "must only contain printable UTF-8 characters; non-printable character found";
    texts.push(`${what} at index ${index}`);
  }
  return texts;
}

/**
 * Makes FieldErrors with Kubernetes' texts (apimachinery: util/validation/field/errors.go). `value`
 * is any JSON value; it is part of the text, as Go prints it.
 */
import { goJson, goQuote } from "./go-text.ts";
import type { FieldError } from "./status.ts";

export function required(field: string, detail = ""): FieldError {
  return fieldError("FieldValueRequired", field, "Required value", detail);
}

export function invalidValue(field: string, value: unknown, detail: string): FieldError {
  return fieldError("FieldValueInvalid", field, `Invalid value: ${shown(value)}`, detail);
}

/** The value has not the type of the field. */
export function typeInvalid(field: string, value: unknown, detail: string): FieldError {
  return fieldError("FieldValueTypeInvalid", field, `Invalid value: ${shown(value)}`, detail);
}

export function duplicate(field: string, value: unknown): FieldError {
  return fieldError("FieldValueDuplicate", field, `Duplicate value: ${shown(value)}`, "");
}

export function valueNotFound(field: string, value: unknown): FieldError {
  return fieldError("FieldValueNotFound", field, `Not found: ${shown(value)}`, "");
}

/** @param supported in the order in which the text lists them */
export function notSupported(
  field: string,
  value: unknown,
  supported: readonly string[],
): FieldError {
  const detail =
    supported.length === 0 ? "" : `supported values: ${supported.map(goQuote).join(", ")}`;
  return fieldError("FieldValueNotSupported", field, `Unsupported value: ${shown(value)}`, detail);
}

export function fieldForbidden(field: string, detail: string): FieldError {
  return fieldError("FieldValueForbidden", field, "Forbidden", detail);
}

/** @param maxBytes -1 where the text names no bound */
export function tooLong(field: string, maxBytes: number): FieldError {
  const unit = maxBytes === 1 ? "byte" : "bytes";
  const detail = maxBytes < 0 ? "value is too long" : `may not be more than ${maxBytes} ${unit}`;
  return fieldError("FieldValueTooLong", field, "Too long", detail);
}

export function tooMany(field: string, actual: number, max: number): FieldError {
  const detail = `must have at most ${max} ${max === 1 ? "item" : "items"}`;
  return fieldError("FieldValueTooMany", field, `Too many: ${actual}`, detail);
}

/** Something that is not the client's fault. */
export function internalFieldError(field: string, detail: string): FieldError {
  return fieldError("InternalError", field, "Internal error", detail);
}

function fieldError(
  type: FieldError["type"],
  field: string,
  body: string,
  detail: string,
): FieldError {
  return { type, field, message: detail === "" ? body : `${body}: ${detail}` };
}

function shown(value: unknown): string {
  return typeof value === "string" ? goQuote(value) : goJson(value);
}

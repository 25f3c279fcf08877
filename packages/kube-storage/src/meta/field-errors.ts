/**
 * Makes FieldErrors with Kubernetes' texts (apimachinery: util/validation/field/errors.go). `value`
 * is any JSON value; it is part of the text, as Go prints it.
 */

import { quoteText as goQuote } from "@quorate/proto";
import { goJson } from "./go-text.ts";
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

/** The value names something that is not there. */
export function fieldNotFound(field: string, value: unknown): FieldError {
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

function fieldError(
  type: FieldError["type"],
  field: string,
  body: string,
  detail: string,
): FieldError {
  return { type, field, message: detail === "" ? body : `${body}: ${detail}` };
}

/** Characters of a value that the text of an error quotes; Kubernetes quotes all. */
export const MAX_QUOTED_VALUE = 1024;

function shown(value: unknown): string {
  if (typeof value !== "string") return shownJson(value);
  if (value.length <= MAX_QUOTED_VALUE) return goQuote(value);
  return `${goQuote(value.slice(0, MAX_QUOTED_VALUE))}${CUT}`;
}

const CUT = "... (the value is longer)";

/** JSON; of a long value the beginning, for no more work than that takes. */
function shownJson(value: unknown): string {
  let text = "";
  const isFull = (): boolean => text.length > MAX_QUOTED_VALUE;
  const write = (one: unknown): void => {
    if (typeof one === "string") text += goJson(one.slice(0, MAX_QUOTED_VALUE + 1));
    else if (typeof one !== "object" || one === null) text += goJson(one);
    else if (Array.isArray(one)) writeItems("[", one, "]", write);
    else {
      writeItems("{", definedNames(one as Fields), "}", (name) => {
        text += `${goJson(name)}:`;
        write((one as Fields)[name]);
      });
    }
  };
  const writeItems = <T>(
    open: string,
    items: Iterable<T>,
    close: string,
    item: (one: T) => void,
  ) => {
    text += open;
    let isFirst = true;
    for (const one of items) {
      if (isFull()) return;
      if (!isFirst) text += ",";
      isFirst = false;
      item(one);
    }
    text += close;
  };
  write(value);
  return isFull() ? `${text.slice(0, MAX_QUOTED_VALUE)}${CUT}` : text;
}

type Fields = Readonly<Record<string, unknown>>;

function* definedNames(fields: Fields): Iterable<string> {
  for (const name in fields) if (fields[name] !== undefined) yield name;
}

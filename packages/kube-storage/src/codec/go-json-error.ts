/** Errors of decoding JSON into Go's types, with the texts of Go's encoding/json. */
import { CodedError } from "@quorate/proto";

/** JSON of the wrong type for a field, or a text that a field's type refuses. */
export class TypedJsonError extends CodedError<"WrongType"> {
  constructor(message: string) {
    super("TypedJsonError", "WrongType", message);
  }
}

/** How Go calls the type of a JSON value. */
export function jsonKind(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return value === null ? "null" : typeof value === "boolean" ? "bool" : typeof value;
}

/**
 * Kind and version of a parsed body, before anything else of it is read (apimachinery:
 * runtime/serializer/json/meta.go).
 */
import { jsonKind } from "./go-json-error.ts";
import { JsonSyntaxError } from "./json-parser.ts";

const GO_TYPE =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; ' +
  'Kind string "json:\\"kind,omitempty\\"" }';

/** "" where the body does not say it. */
export interface StatedKind {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Throws JsonSyntaxError with Go's text for a value that is no object, or of other types. */
export function statedKind(value: unknown): StatedKind {
  if (value === null) return { apiVersion: "", kind: "" };
  if (typeof value !== "object" || Array.isArray(value))
    throw new JsonSyntaxError(
      `json: cannot unmarshal ${jsonKind(value)} into Go value of type ${GO_TYPE}`,
    );
  const fields = value as Readonly<Record<string, unknown>>;
  // The first one in the text is the one that Go complains about.
  for (const [name, field] of Object.entries(fields))
    if ((name === "apiVersion" || name === "kind") && typeof field !== "string" && field !== null)
      throw new JsonSyntaxError(
        `json: cannot unmarshal ${jsonKind(field)} into Go struct field .${name} of type string`,
      );
  const text = (name: string): string =>
    Object.hasOwn(fields, name) && typeof fields[name] === "string" ? fields[name] : "";
  return { apiVersion: text("apiVersion"), kind: text("kind") };
}

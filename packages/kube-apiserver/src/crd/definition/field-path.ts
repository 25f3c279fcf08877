/**
 * Paths in schemas: the fieldPath of a rule, and selectable fields (apiextensions-apiserver:
 * pkg/apiserver/schema/cel/validation.go: ValidFieldPath).
 *
 *     .spec.ports['http-1'].port
 */
import { fieldOf } from "../schema/edit.ts";
import { child, keyed } from "../schema/paths.ts";
import { type RawSchema, valuesOf } from "./raw-schema.ts";

/** A path and the schema of what it names. */
export interface FoundField {
  readonly path: string;
  /** The path's first field. */
  readonly first: string;
  readonly schema: RawSchema | undefined;
}

const TOKEN = /'(?:[^'\\]|\\.)*'|[.[\]]|[^.[\]]+/g;
const NOT_A_FIELD = "does not refer to a valid field";

/** Finds the field. Returns the reason, in Kubernetes' words, where there is none. */
export function findField(path: string, schema: RawSchema, arrays: boolean): FoundField | string {
  const tokens = path.match(TOKEN) ?? [];
  let found: FoundField = { path: "", first: "", schema };
  for (let i = 0; i < tokens.length; ) {
    const read = arrays || tokens[i] !== "[" ? nameAt(tokens, i) : "array notation is not allowed";
    if (typeof read === "string") return read;
    const next = step(found, read.name);
    if (typeof next === "string") return next;
    found = next;
    i = read.next;
  }
  return found;
}

/** The reason why a path names no field; undefined where it names one. */
export function fieldPathError(
  path: string,
  schema: RawSchema,
  arrays: boolean,
): string | undefined {
  const found = findField(path, schema, arrays);
  return typeof found === "string" ? found : undefined;
}

function nameAt(tokens: readonly string[], i: number): { name: string; next: number } | string {
  if (tokens[i] === ".") {
    const name = tokens[i + 1];
    return name === undefined ? "unexpected end of JSON path" : { name, next: i + 2 };
  }
  if (tokens[i] !== "[") return `expected [ or . but got: ${tokens[i]}`;
  const quoted = tokens[i + 1];
  if (quoted === undefined) return "unexpected end of JSON path";
  if (quoted.length < 2 || !quoted.startsWith("'") || !quoted.endsWith("'")) {
    return `expected single quoted string but got ${quoted}`;
  }
  if (tokens[i + 2] === undefined) return "unexpected end of JSON path";
  if (tokens[i + 2] !== "]") return `expected ] but got ${tokens[i + 2]}`;
  return { name: quoted.slice(1, -1).replace(/\\(.)/g, "$1"), next: i + 3 };
}

function step(at: FoundField, name: string): FoundField | string {
  const { schema } = at;
  const first = at.path === "" ? name : at.first;
  if (schema?.properties !== undefined) {
    const property = fieldOf(schema.properties, name);
    if (property === undefined) return NOT_A_FIELD;
    return { path: child(at.path, name), first, schema: property };
  }
  if (schema?.additionalProperties === undefined) return NOT_A_FIELD;
  return { path: keyed(at.path, name), first, schema: valuesOf(schema) };
}

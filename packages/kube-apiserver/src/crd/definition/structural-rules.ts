/**
 * What makes a schema structural (apiextensions-apiserver: pkg/apiserver/schema/validation.go):
 * types, properties and extensions stand outside of allOf, anyOf, oneOf and not, and each field
 * that those name is specified outside, too.
 */
import {
  type FieldError,
  fieldForbidden,
  invalidValue,
  required,
  sameJson,
} from "@quorate/kube-storage";
import { fieldOf } from "../schema/edit.ts";
import { at, child, keyed } from "../schema/paths.ts";
import { PatternError, type Patterns } from "../validation/patterns.ts";
import { itemsOf, type RawSchema, valuesOf } from "./raw-schema.ts";

type Level = "root" | "item" | "field";

const INT_OR_STRING = [{ type: "integer" }, { type: "string" }];

/** All violations, in the order of their texts. */
export function structuralErrors(
  schema: RawSchema,
  path: string,
  patterns: Patterns | undefined,
): FieldError[] {
  const errors: FieldError[] = [];
  new StructuralCheck(patterns, errors).node(schema, "root", path);
  errors.push(...completenessErrors(schema, path));
  const text = (error: FieldError) => `${error.field}: ${error.message}`;
  return errors.sort((a, b) => (text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : 0));
}

class StructuralCheck {
  readonly #patterns: Patterns | undefined;
  readonly #errors: FieldError[];

  constructor(patterns: Patterns | undefined, errors: FieldError[]) {
    this.#patterns = patterns;
    this.#errors = errors;
  }

  node(schema: RawSchema, level: Level, path: string): void {
    const items = itemsOf(schema);
    if (schema.type === "array" && items === undefined)
      this.#required(path, "items", "must be specified");
    if (items !== undefined) this.node(items, "item", child(path, "items"));
    for (const [key, property] of Object.entries(schema.properties ?? {})) {
      this.node(property, "field", keyed(child(path, "properties"), key));
    }
    if (schema.additionalProperties !== undefined) {
      const where = child(path, "additionalProperties");
      if (level === "root")
        this.#errors.push(fieldForbidden(where, "must not be used at the root"));
      const values = valuesOf(schema);
      if (values !== undefined) this.node(values, "field", where);
    }
    this.#intOrString(schema, path);
    const skipAny = sameJson(schema.anyOf, INT_OR_STRING);
    const skipFirst = sameJson(schema.allOf?.[0]?.anyOf, INT_OR_STRING);
    this.#values(schema, skipAny, skipFirst, level, path);
    this.#type(schema, level, path);
    this.#metadata(schema, level, path);
  }

  #required(path: string, name: string, detail: string): void {
    this.#errors.push(required(child(path, name), detail));
  }

  #intOrString(schema: RawSchema, path: string): void {
    if (schema["x-kubernetes-int-or-string"] !== true) return;
    for (const name of [
      "x-kubernetes-preserve-unknown-fields",
      "x-kubernetes-embedded-resource",
    ] as const) {
      if (schema[name] !== true) continue;
      const detail = "must be false if x-kubernetes-int-or-string is true";
      this.#errors.push(invalidValue(child(path, name), true, detail));
    }
  }

  #type(schema: RawSchema, level: Level, path: string): void {
    const type: string = schema.type ?? "";
    const where = child(path, "type");
    const embedded = schema["x-kubernetes-embedded-resource"] === true;
    const open = schema["x-kubernetes-preserve-unknown-fields"] === true;
    if (embedded && type !== "object") {
      const detail = "must be object if x-kubernetes-embedded-resource is true";
      this.#errors.push(type === "" ? required(where, detail) : invalidValue(where, type, detail));
    } else if (type === "" && schema["x-kubernetes-int-or-string"] !== true && !open) {
      this.#errors.push(required(where, EMPTY_TYPE[level]));
    }
    if (embedded && schema.additionalProperties !== undefined) {
      const detail = "must not be used if x-kubernetes-embedded-resource is set";
      this.#errors.push(fieldForbidden(child(path, "additionalProperties"), detail));
    }
    if (level === "root" && type !== "" && type !== "object") {
      this.#errors.push(invalidValue(where, type, "must be object at the root"));
    }
    if (embedded && !open && Object.keys(schema.properties ?? {}).length === 0) {
      const detail =
        "must not be empty if x-kubernetes-embedded-resource is true without " +
        "x-kubernetes-preserve-unknown-fields";
      this.#required(path, "properties", detail);
    }
  }

  #metadata(schema: RawSchema, level: Level, path: string): void {
    const checked = level === "root" || schema["x-kubernetes-embedded-resource"] === true;
    const properties = child(path, "properties");
    for (const name of ["kind", "apiVersion"]) {
      const property = fieldOf(schema.properties, name);
      if (property === undefined || !checked || property.type === "string") continue;
      const where = child(keyed(properties, name), "type");
      this.#errors.push(invalidValue(where, property.type ?? "", "must be string"));
    }
    const metadata = fieldOf(schema.properties, "metadata");
    if (metadata === undefined) return;
    const where = keyed(properties, "metadata");
    if (checked && metadata.type !== "object") {
      this.#errors.push(invalidValue(child(where, "type"), metadata.type ?? "", "must be object"));
    }
    if (level === "root" && restrictsMetadata(metadata)) {
      const detail =
        "must not specify anything other than name and generateName, but metadata is " +
        "implicitly specified";
      this.#errors.push(fieldForbidden(where, detail));
    }
  }

  /** allOf, anyOf, oneOf, not and the pattern. */
  #values(
    schema: RawSchema,
    skipAny: boolean,
    skipFirst: boolean,
    level: Level,
    path: string,
  ): void {
    if (!skipAny) {
      for (const [i, one] of (schema.anyOf ?? []).entries()) {
        this.#nested(one, false, level, at(child(path, "anyOf"), i));
      }
    }
    for (const [i, one] of (schema.allOf ?? []).entries()) {
      this.#nested(one, skipFirst && i === 0, level, at(child(path, "allOf"), i));
    }
    for (const [i, one] of (schema.oneOf ?? []).entries()) {
      this.#nested(one, false, level, at(child(path, "oneOf"), i));
    }
    if (schema.not !== undefined) this.#nested(schema.not, false, level, child(path, "not"));
    this.#pattern(schema, path);
  }

  #pattern({ pattern }: RawSchema, path: string): void {
    if (pattern === undefined || pattern === "") return;
    try {
      this.#patterns?.compile(pattern);
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      const detail = `must be a valid regular expression, but isn't: ${error.message}`;
      this.#errors.push(invalidValue(child(path, "pattern"), pattern, detail));
    }
  }

  /** A schema below allOf, anyOf, oneOf or not: it may only restrict values. */
  #nested(schema: RawSchema, skipAny: boolean, level: Level, path: string): void {
    this.#values(schema, skipAny, false, level, path);
    const items = itemsOf(schema);
    if (items !== undefined) this.#nested(items, false, level, child(path, "items"));
    for (const [key, property] of Object.entries(schema.properties ?? {})) {
      this.#nested(property, false, "field", keyed(child(path, "properties"), key));
    }
    for (const [name, detail, isSet] of FORBIDDEN_NESTED) {
      if (isSet(schema)) this.#errors.push(fieldForbidden(child(path, name), detail));
    }
    if (fieldOf(schema.properties, "metadata") !== undefined) {
      const where = keyed(child(path, "properties"), "metadata");
      this.#errors.push(fieldForbidden(where, "must not be specified in a nested context"));
    }
  }
}

const EMPTY_TYPE: Readonly<Record<Level, string>> = {
  root: "must not be empty at the root",
  item: "must not be empty for specified array items",
  field: "must not be empty for specified object fields",
};

const EMPTY = "must be empty to be structural";
const UNDEFINED = "must be undefined to be structural";
const FALSE = "must be false to be structural";

type Nested = readonly [name: string, detail: string, isSet: (schema: RawSchema) => boolean];

const FORBIDDEN_NESTED: readonly Nested[] = [
  ["type", EMPTY, (s) => (s.type ?? "") !== ""],
  ["additionalProperties", UNDEFINED, (s) => (s.additionalProperties ?? false) !== false],
  ["default", UNDEFINED, (s) => (s.default ?? null) !== null],
  ["title", EMPTY, (s) => (s.title ?? "") !== ""],
  ["description", EMPTY, (s) => (s.description ?? "") !== ""],
  ["nullable", FALSE, (s) => s.nullable === true],
  [
    "x-kubernetes-preserve-unknown-fields",
    FALSE,
    (s) => s["x-kubernetes-preserve-unknown-fields"] === true,
  ],
  ["x-kubernetes-embedded-resource", FALSE, (s) => s["x-kubernetes-embedded-resource"] === true],
  ["x-kubernetes-int-or-string", FALSE, (s) => s["x-kubernetes-int-or-string"] === true],
  ["x-kubernetes-list-map-keys", EMPTY, (s) => (s["x-kubernetes-list-map-keys"]?.length ?? 0) > 0],
  ["x-kubernetes-list-type", UNDEFINED, (s) => s["x-kubernetes-list-type"] !== undefined],
  ["x-kubernetes-map-type", UNDEFINED, (s) => s["x-kubernetes-map-type"] !== undefined],
  ["x-kubernetes-validations", EMPTY, (s) => (s["x-kubernetes-validations"]?.length ?? 0) > 0],
];

/** Whether the schema of metadata says more than "name" and "generateName". */
function restrictsMetadata(metadata: RawSchema): boolean {
  const { type: _, default: __, properties = {}, ...rest } = metadata;
  const names = Object.keys(properties);
  if (!names.every((name) => name === "name" || name === "generateName")) return true;
  return Object.values(rest).some(isSet);
}

function isSet(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== undefined && value !== null && value !== false && value !== "";
}

/**
 * Each field that allOf, anyOf, oneOf or not restricts is specified outside of them, too
 * (apiextensions-apiserver: pkg/apiserver/schema/complete.go).
 *
 * @param path of the schema, a whole resource's
 */
function completenessErrors(schema: RawSchema, path: string): FieldError[] {
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

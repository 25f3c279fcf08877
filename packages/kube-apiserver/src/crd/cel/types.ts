/**
 * CEL's types of the values of a schema, and the values (apiserver: pkg/cel/common/schemas.go,
 * values.go). Types of fields are made and values are converted when an expression reads them.
 */
import type { Schema } from "@quorate/kube-storage";
import { isObject, type Json, type JsonObject, sameJson } from "@quorate/kube-storage";
import { defined, fromBase64 } from "@quorate/proto";
import { fieldOf } from "../schema/edit.ts";
import { valueSchema } from "../schema/traits.ts";
import { escapeName } from "./base/names.ts";
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  type FieldTypes,
  INT,
  listOf,
  mapOf,
  STRING,
  struct,
  TIMESTAMP,
  type Type,
} from "./lang/types.ts";
import { parseDuration, parseTimestamp, StructValue } from "./lang/values.ts";

/** A type, how JSON becomes a value of it, and the bytes of its smallest JSON. */
export interface CelType {
  readonly type: Type;
  readonly minBytes: number;
  convert(value: Json): unknown;
}

/** The longest body of a request that Kubernetes' estimation assumes. */
export const MAX_REQUEST_BYTES: number = 3 * 1024 * 1024;
const DATE_CHARS = 12;
const TIME_CHARS = 32;

/** A JSON value of unknown type. */
export function convertDynamic(value: Json): unknown {
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return once(value, () => value.map(convertDynamic));
  if (!isObject(value)) return value;
  return once(value, () => new JsonMap(value));
}

/** A JSON object of unknown type. Its values are converted when they are read: it may be large. */
class JsonMap extends Map<string, unknown> {
  readonly #raw: JsonObject;

  constructor(raw: JsonObject) {
    super();
    this.#raw = raw;
  }

  override get size(): number {
    return Object.keys(this.#raw).length;
  }

  override has(key: unknown): boolean {
    return typeof key === "string" && Object.hasOwn(this.#raw, key);
  }

  override get(key: unknown): unknown {
    return this.has(key) ? this.#converted(key as string) : undefined;
  }

  #converted(key: string): unknown {
    return convertDynamic(defined(this.#raw[key], "the field"));
  }

  override *entries(): MapIterator<[string, unknown]> {
    for (const key of Object.keys(this.#raw)) yield [key, this.#converted(key)];
  }

  override [Symbol.iterator](): MapIterator<[string, unknown]> {
    return this.entries();
  }

  override *keys(): MapIterator<string> {
    yield* Object.keys(this.#raw);
  }

  override *values(): MapIterator<unknown> {
    for (const [, value] of this.entries()) yield value;
  }
}

/** Values that are converted once, however many expressions read them. */
const converted = new WeakMap<object, unknown>();

function once<T>(value: object, make: () => T): T {
  const known = converted.get(value);
  if (known !== undefined) return known as T;
  const made = make();
  converted.set(value, made);
  return made;
}

/**
 * The type of a schema's values; undefined for values that no expression can read.
 * @param isResource whether the schema is that of a whole resource
 * @param name of its struct, for errors
 */
export function celTypeOf(
  schema: Schema,
  isResource: boolean,
  name = "selfType",
): CelType | undefined {
  const plain = plainType(schema, isResource, name);
  if (plain === undefined || schema.nullable !== true) return plain;
  const { maxElements = 0 } = plain.type;
  return {
    ...plain,
    type: { ...DYN, maxElements },
    convert: (value) => (value === null ? null : plain.convert(value)),
  };
}

function isEmbedded(schema: Schema): boolean {
  return schema["x-kubernetes-embedded-resource"] === true;
}

function plainType(schema: Schema, isResource: boolean, name: string): CelType | undefined {
  if (schema["x-kubernetes-int-or-string"] === true) {
    const maxElements =
      schema.maxLength === undefined ? MAX_REQUEST_BYTES - 2 : schema.maxLength * 4;
    return { type: { ...DYN, maxElements }, minBytes: 1, convert: convertDynamic };
  }
  switch (schema.type) {
    case "string":
      return stringType(schema);
    case "integer":
      return { type: INT, minBytes: 1, convert: integer };
    case "number":
      return { type: DOUBLE, minBytes: 1, convert: (value) => value };
    case "boolean":
      return { type: BOOL, minBytes: 4, convert: (value) => value };
    case "array":
      return schema.items === undefined ? undefined : listType(schema, schema.items, name);
    case "object":
      return schema.additionalProperties === undefined
        ? objectType(schema, isResource, name)
        : mapType(schema, name);
    default:
      return undefined;
  }
}

function integer(value: Json): unknown {
  return Number.isInteger(value) ? BigInt(value as number) : value;
}

function listType(schema: Schema, items: Schema, name: string): CelType | undefined {
  const item = celTypeOf(items, isEmbedded(items), `${name}.@idx`);
  if (item === undefined) return undefined;
  const maxElements = schema.maxItems ?? Math.floor((MAX_REQUEST_BYTES - 2) / (item.minBytes + 1));
  return {
    type: { ...listOf(item.type), maxElements },
    minBytes: 2,
    convert: (value) =>
      Array.isArray(value) ? once(value, () => value.map((one) => item.convert(one))) : value,
  };
}

/** A colon, a comma, and a key with its quotes. */
const KEY_BYTES = 6;

function mapType(schema: Schema, name: string): CelType | undefined {
  const values = valueSchema(schema);
  const item = values && celTypeOf(values, isEmbedded(values), `${name}.@elem`);
  if (item === undefined) return undefined;
  const maxElements =
    schema.maxProperties ?? Math.floor((MAX_REQUEST_BYTES - 2) / (item.minBytes + KEY_BYTES));
  return {
    type: { ...mapOf(STRING, item.type), maxElements },
    minBytes: 2,
    convert: (value) =>
      isObject(value)
        ? once(
            value,
            () =>
              new Map(
                Object.entries(value).map(([key, one]) => [
                  key,
                  item.convert(defined(one, "the value")),
                ]),
              ),
          )
        : value,
  };
}

function objectType(schema: Schema, isResource: boolean, name: string): CelType {
  const properties =
    isResource || isEmbedded(schema) ? withMetaFields(schema) : (schema.properties ?? {});
  const fields = new Fields(properties, name);
  const type = struct(name, fields);
  let minBytes = 2;
  for (const key of schema.required ?? []) {
    const property = fieldOf(properties, key);
    // A default fills in what is missing.
    if (property === undefined || property.default !== undefined) continue;
    const below = celTypeOf(property, isEmbedded(property));
    if (below !== undefined) minBytes += key.length + 4 + below.minBytes;
  }
  return {
    type,
    minBytes,
    convert: (value) =>
      isObject(value) ? once(value, () => new ObjectValue(type, fields, value)) : value,
  };
}

/** The fields of an object, whose types are made when they are asked for. */
class Fields implements FieldTypes {
  readonly #name: string;
  readonly #sources = new Map<string, { readonly key: string; readonly schema: Schema }>();
  readonly #made = new Map<string, CelType | undefined>();

  constructor(properties: Readonly<Record<string, Schema>>, name: string) {
    this.#name = name;
    for (const [key, schema] of Object.entries(properties)) {
      const field = escapeName(key);
      if (field !== undefined) this.#sources.set(field, { key, schema });
    }
  }

  celType(field: string): CelType | undefined {
    const source = this.#sources.get(field);
    if (source === undefined) return undefined;
    if (!this.#made.has(field)) {
      const { schema } = source;
      this.#made.set(field, celTypeOf(schema, isEmbedded(schema), `${this.#name}.${field}`));
    }
    return this.#made.get(field);
  }

  keyOf(field: string): string {
    return this.#sources.get(field)?.key ?? "";
  }

  get(field: string): Type | undefined {
    return this.celType(field)?.type;
  }

  has(field: string): boolean {
    return this.celType(field) !== undefined;
  }
}

class ObjectValue extends StructValue {
  readonly celType: Type;
  readonly #fields: Fields;
  readonly #raw: JsonObject;

  constructor(celType: Type, fields: Fields, raw: JsonObject) {
    super();
    this.celType = celType;
    this.#fields = fields;
    this.#raw = raw;
  }

  field(name: string): unknown {
    const type = this.#fields.celType(name);
    const value = type && fieldOf(this.#raw, this.#fields.keyOf(name));
    return value === undefined ? undefined : type?.convert(value);
  }

  equals(other: unknown): boolean {
    return other instanceof ObjectValue && sameJson(this.#raw, other.#raw);
  }
}

/** What rules of a resource may read besides its own fields. */
function withMetaFields(schema: Schema): Readonly<Record<string, Schema>> {
  const text: Schema = { type: "string" };
  const metadata: Schema = { type: "object", properties: { name: text, generateName: text } };
  return { ...schema.properties, apiVersion: text, kind: text, metadata };
}

function stringType({ format, maxLength, enum: values }: Schema): CelType {
  const whole = MAX_REQUEST_BYTES - 2;
  switch (format) {
    case "byte":
      return {
        type: { ...BYTES, maxElements: maxLength ?? whole },
        minBytes: 2,
        convert: (value) => (typeof value === "string" ? (fromBase64(value) ?? value) : value),
      };
    case "duration":
      return {
        type: { ...DURATION, maxElements: TIME_CHARS },
        minBytes: 3,
        convert: (value) => (typeof value === "string" ? (parseDuration(value) ?? value) : value),
      };
    case "date":
    case "date-time":
      return {
        type: { ...TIMESTAMP, maxElements: format === "date" ? DATE_CHARS : TIME_CHARS },
        minBytes: format === "date" ? DATE_CHARS : 21,
        convert: timeOf,
      };
  }
  const longest = (values ?? []).map((one) => (typeof one === "string" ? one.length : 0));
  const enumChars = longest.length === 0 ? whole : Math.max(...longest);
  const maxElements = maxLength === undefined ? enumChars : maxLength * 4;
  return { type: { ...STRING, maxElements }, minBytes: 2, convert: (value) => value };
}

function timeOf(value: Json): unknown {
  if (typeof value !== "string") return value;
  return parseTimestamp(/^\d{4}-\d\d-\d\d$/.test(value) ? `${value}T00:00:00Z` : value) ?? value;
}

/**
 * CEL's types of the values of a schema, and the values (apiserver: pkg/cel/common/schemas.go,
 * values.go). Values are converted when an expression reads them.
 */

import type { Schema } from "@quorate/kube-storage";
import { isObject, type Json, type JsonObject, parseTime } from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { fieldOf } from "../schema/edit.ts";
import { valueSchema } from "../schema/traits.ts";
import { budget } from "./base/budget.ts";
import { escapeName } from "./base/names.ts";
import type { CelEnvironment } from "./library.ts";

/** A type, and how JSON becomes a value of it. */
export interface CelType {
  readonly name: string;
  convert(value: Json): unknown;
}

const STRING: CelType = { name: "string", convert: (value) => value };
const BOOL: CelType = { name: "bool", convert: (value) => value };
const DOUBLE: CelType = { name: "double", convert: (value) => value };
const INT: CelType = {
  name: "int",
  convert: (value) => (Number.isInteger(value) ? BigInt(value as number) : value),
};
const DYN: CelType = { name: "dyn", convert: convertDynamic };

/** A JSON value of unknown type. */
export function convertDynamic(value: Json): unknown {
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) {
    budget.charge(value.length);
    return value.map(convertDynamic);
  }
  if (!isObject(value)) return value;
  const fields = Object.entries(value);
  budget.charge(fields.length);
  return new Map(fields.map(([key, field]) => [key, convertDynamic(defined(field, "the field"))]));
}

/** An object value: its fields are converted when they are read. */
abstract class ObjectValue extends Map<string, unknown> {
  readonly raw: JsonObject;

  constructor(raw: JsonObject) {
    super();
    this.raw = raw;
  }
}

/** Declares the types of a schema's values in an environment. */
export class CelTypes {
  readonly #environment: CelEnvironment;
  /** The fields that expressions name; others are not declared. */
  readonly #names: ReadonlySet<string>;
  #count = 0;

  constructor(environment: CelEnvironment, names: ReadonlySet<string>) {
    this.#environment = environment;
    this.#names = names;
  }

  /**
   * Undefined for values that no expression can read.
   * @param isResource whether the schema is that of a whole resource
   */
  typeOf(schema: Schema, isResource: boolean): CelType | undefined {
    const type = this.#plainType(schema, isResource);
    if (type === undefined || schema.nullable !== true) return type;
    return { name: "dyn", convert: (value) => (value === null ? null : type.convert(value)) };
  }

  #plainType(schema: Schema, isResource: boolean): CelType | undefined {
    if (schema["x-kubernetes-int-or-string"] === true) return DYN;
    switch (schema.type) {
      case "string":
        return stringType(schema.format ?? "");
      case "integer":
        return INT;
      case "number":
        return DOUBLE;
      case "boolean":
        return BOOL;
      case "array":
        return schema.items === undefined ? undefined : this.#listType(schema.items);
      case "object":
        return this.#objectOrMap(schema, isResource);
      default:
        return undefined;
    }
  }

  #listType(items: Schema): CelType | undefined {
    const item = this.typeOf(items, items["x-kubernetes-embedded-resource"] === true);
    if (item === undefined) return undefined;
    return {
      name: `list<${item.name}>`,
      convert(value) {
        if (!Array.isArray(value)) return value;
        budget.charge(value.length);
        return value.map((one) => item.convert(one));
      },
    };
  }

  #objectOrMap(schema: Schema, isResource: boolean): CelType | undefined {
    if (schema.additionalProperties === undefined) return this.#objectType(schema, isResource);
    const values = valueSchema(schema);
    const type = values && this.typeOf(values, values["x-kubernetes-embedded-resource"] === true);
    if (type === undefined) return undefined;
    return {
      name: `map<string, ${type.name}>`,
      convert(value) {
        if (!isObject(value)) return value;
        const entries = Object.entries(value);
        budget.charge(entries.length);
        return new Map(entries.map(([key, one]) => [key, type.convert(defined(one, "the value"))]));
      },
    };
  }

  #objectType(schema: Schema, isResource: boolean): CelType {
    const embedded = isResource || schema["x-kubernetes-embedded-resource"] === true;
    const properties = embedded ? withMetaFields(schema) : (schema.properties ?? {});
    const fields: Record<string, string> = {};
    const sources = new Map<string, { readonly key: string; readonly type: CelType }>();
    for (const [key, property] of Object.entries(properties)) {
      const name = escapeName(key);
      if (name === undefined || !this.#names.has(name)) continue;
      const type = this.typeOf(property, property["x-kubernetes-embedded-resource"] === true);
      if (type === undefined) continue;
      fields[name] = type.name;
      sources.set(name, { key, type });
    }
    const name = `object${++this.#count}`;
    const ctor = objectClass(sources);
    this.#environment.registerType(name, { ctor, fields });
    this.#environment.registerOperator(`${name} == ${name}`, equalObjects);
    return { name, convert: (value) => (isObject(value) ? new ctor(value) : value) };
  }
}

type Sources = ReadonlyMap<string, { readonly key: string; readonly type: CelType }>;

function objectClass(sources: Sources): new (raw: JsonObject) => ObjectValue {
  return class extends ObjectValue {
    override get(name: string): unknown {
      if (super.has(name)) return super.get(name);
      const source = sources.get(name);
      const value = source === undefined ? undefined : fieldOf(this.raw, source.key);
      if (source === undefined || value === undefined) return undefined;
      const converted = source.type.convert(value);
      super.set(name, converted);
      return converted;
    }

    override has(name: string): boolean {
      return this.get(name) !== undefined;
    }
  };
}

function equalObjects(a: ObjectValue, b: ObjectValue): boolean {
  return equalJson(a.raw, b.raw);
}

/** Comparison of JSON that costs as much as it visits. */
function equalJson(a: unknown, b: unknown): boolean {
  budget.charge(1);
  if (a === b) return true;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, i) => equalJson(item, b[i]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && equalJson(a[key], b[key]));
}

/** What rules of a resource may read besides its own fields. */
function withMetaFields(schema: Schema): Readonly<Record<string, Schema>> {
  const text: Schema = { type: "string" };
  const metadata: Schema = { type: "object", properties: { name: text, generateName: text } };
  return { ...schema.properties, apiVersion: text, kind: text, metadata };
}

function stringType(format: string): CelType {
  switch (format) {
    case "byte":
      return { name: "bytes", convert: (value) => value };
    case "duration":
      return STRING;
    case "date":
    case "date-time":
    case "datetime":
      return { name: "google.protobuf.Timestamp", convert: toDate };
    default:
      return STRING;
  }
}

function toDate(value: Json): unknown {
  if (typeof value !== "string") return value;
  const ms = parseTime(/^\d{4}-\d\d-\d\d$/.test(value) ? `${value}T00:00:00Z` : value);
  return ms === undefined ? value : new Date(ms);
}

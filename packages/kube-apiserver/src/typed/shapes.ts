/**
 * Descriptions of JSON values that are both a schema and a TypeScript type:
 *
 *     const spec = record({ size: integer({ minimum: 1, default: 3 }), note: optional(text()) });
 *     type Spec = ValueOf<typeof spec>; // { readonly size: number; readonly note?: string }
 */
import type { Json, Schema } from "@quorate/kube-storage";

/** Describes values of type T. */
export interface Shape<T> {
  readonly schema: Schema;
  /** Never there: it makes T known to the compiler. */
  readonly value?: T;
}

/** A field that may be absent. */
export interface OptionalShape<T> extends Shape<T> {
  readonly optional: true;
}

/** The type of the values that a shape describes. */
export type ValueOf<S> = S extends Shape<infer T> ? T : never;

export type ShapeFields = Readonly<Record<string, Shape<unknown>>>;

type OptionalKeys<F extends ShapeFields> = {
  [K in keyof F]: F[K] extends { readonly optional: true } ? K : never;
}[keyof F];

/** The type of objects with these fields. */
export type RecordOf<F extends ShapeFields> = {
  readonly [K in Exclude<keyof F, OptionalKeys<F>>]: ValueOf<F[K]>;
} & { readonly [K in OptionalKeys<F>]?: ValueOf<F[K]> };

/** What all shapes take; `default` fills an absent field. */
export interface ShapeOptions<T> {
  readonly description?: string;
  readonly default?: T;
  readonly nullable?: boolean;
}

export interface TextOptions extends ShapeOptions<string> {
  readonly minLength?: number;
  readonly maxLength?: number;
  /** A regular expression of RE2, as in CustomResourceDefinitions. */
  readonly pattern?: string;
  /** Such as "date-time" or "uri". */
  readonly format?: string;
}

export interface NumberOptions extends ShapeOptions<number> {
  readonly minimum?: number;
  readonly maximum?: number;
  readonly multipleOf?: number;
}

export function text(options: TextOptions = {}): Shape<string> {
  return { schema: { type: "string", ...options } };
}

/** A whole number of up to 64 bits. */
export function integer(options: NumberOptions = {}): Shape<number> {
  return { schema: { type: "integer", ...options } };
}

export function number(options: NumberOptions = {}): Shape<number> {
  return { schema: { type: "number", ...options } };
}

export function boolean(options: ShapeOptions<boolean> = {}): Shape<boolean> {
  return { schema: { type: "boolean", ...options } };
}

/** One of several texts. */
export function oneOf<const T extends readonly string[]>(
  values: T,
  options: ShapeOptions<T[number]> = {},
): Shape<T[number]> {
  return { schema: { type: "string", enum: [...values], ...options } };
}

/** A text or a whole number, such as a port. */
export function intOrString(options: ShapeOptions<string | number> = {}): Shape<string | number> {
  return { schema: { "x-kubernetes-int-or-string": true, ...options } };
}

export interface ListShapeOptions<T> extends Omit<ShapeOptions<readonly T[]>, "default"> {
  readonly minItems?: number;
  readonly maxItems?: number;
  /** "set": values are unique. "map": objects, unique by `keys`. For server-side apply. */
  readonly kind?: "atomic" | "set" | "map";
  /** The fields that identify an item of kind "map". */
  readonly keys?: readonly string[];
}

export function list<T>(item: Shape<T>, options: ListShapeOptions<T> = {}): Shape<readonly T[]> {
  const { kind, keys, ...rest } = options;
  const schema: Schema = {
    type: "array",
    items: item.schema,
    ...rest,
    ...(kind === undefined ? {} : { "x-kubernetes-list-type": kind }),
    ...(keys === undefined ? {} : { "x-kubernetes-list-map-keys": [...keys] }),
  };
  return { schema };
}

/** An object with any names and one shape of values. */
export function map<T>(
  value: Shape<T>,
  options: { readonly description?: string; readonly maxProperties?: number } = {},
): Shape<Readonly<Record<string, T>>> {
  return { schema: { type: "object", additionalProperties: value.schema, ...options } };
}

/** Any JSON object; its fields are kept. */
export function anything(): Shape<Readonly<Record<string, Json>>> {
  return { schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
}

/** A field that may be absent. */
export function optional<T>(shape: Shape<T>): OptionalShape<T> {
  return { schema: shape.schema, optional: true };
}

/** An object with these fields; others are dropped. */
export function record<F extends ShapeFields>(
  fields: F,
  options: { readonly description?: string | undefined; readonly default?: Json } = {},
): Shape<RecordOf<F>> {
  const properties: Record<string, Schema> = {};
  const required: string[] = [];
  for (const [name, shape] of Object.entries(fields)) {
    properties[name] = shape.schema;
    if (!("optional" in shape) && shape.schema.default === undefined) required.push(name);
  }
  const schema: Schema = { type: "object", properties, ...options };
  return { schema: required.length === 0 ? schema : { ...schema, required } };
}

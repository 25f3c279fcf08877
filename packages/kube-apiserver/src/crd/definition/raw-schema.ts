/** A schema as a client sent it, with what structural schemas must not have. */
import type { Json, Schema } from "@quorate/kube-storage";

export interface RawSchema
  extends Omit<Schema, "items" | "properties" | "not" | "allOf" | "anyOf" | "oneOf"> {
  readonly id?: string;
  readonly $schema?: string;
  readonly $ref?: string;
  readonly items?: RawSchema | readonly RawSchema[];
  readonly properties?: Readonly<Record<string, RawSchema>>;
  readonly not?: RawSchema;
  readonly allOf?: readonly RawSchema[];
  readonly anyOf?: readonly RawSchema[];
  readonly oneOf?: readonly RawSchema[];
  readonly patternProperties?: Readonly<Record<string, RawSchema>>;
  readonly definitions?: Readonly<Record<string, RawSchema>>;
  readonly dependencies?: Readonly<Record<string, Json>>;
  readonly additionalItems?: Json;
  readonly externalDocs?: Json;
}

/** Deeper schemas are refused: they are walked by recursion. */
export const MAX_SCHEMA_DEPTH = 128;

/** `items` where it is one schema. */
export function itemsOf(schema: RawSchema): RawSchema | undefined {
  return Array.isArray(schema.items) ? undefined : (schema.items as RawSchema | undefined);
}

/** `additionalProperties` where it is a schema. */
export function valuesOf(schema: RawSchema): RawSchema | undefined {
  const { additionalProperties: values } = schema;
  return typeof values === "object" ? (values as RawSchema) : undefined;
}

/** All schemas directly below, those of alternatives included. */
export function childrenOf(schema: RawSchema): RawSchema[] {
  const children: RawSchema[] = [];
  if (Array.isArray(schema.items)) children.push(...(schema.items as readonly RawSchema[]));
  else if (schema.items !== undefined) children.push(schema.items as RawSchema);
  for (const list of [schema.allOf, schema.anyOf, schema.oneOf]) {
    if (list !== undefined) children.push(...list);
  }
  if (schema.not !== undefined) children.push(schema.not);
  for (const map of [schema.properties, schema.patternProperties, schema.definitions]) {
    if (map !== undefined) children.push(...Object.values(map));
  }
  const values = valuesOf(schema);
  if (values !== undefined) children.push(values);
  return children;
}

/** Whether `check` holds of the schema or of one below it. */
export function someSchema(
  schema: RawSchema | undefined,
  check: (schema: RawSchema) => boolean,
): boolean {
  if (schema === undefined) return false;
  if (check(schema)) return true;
  return childrenOf(schema).some((below) => someSchema(below, check));
}

/** Whether the schema is nested more deeply than is served. */
export function isTooDeep(schema: RawSchema | undefined): boolean {
  let level: RawSchema[] = schema === undefined ? [] : [schema];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_SCHEMA_DEPTH) return true;
    level = level.flatMap(childrenOf);
  }
  return false;
}

/** Why no structural schema can be made of it, in Kubernetes' words. */
export function unsupportedPart(schema: RawSchema | undefined): string | undefined {
  if (schema === undefined) return undefined;
  const own = unsupportedField(schema);
  if (own !== undefined) return own;
  for (const below of childrenOf(schema)) {
    const part = unsupportedPart(below);
    if (part !== undefined) return part;
  }
  return undefined;
}

function unsupportedField(schema: RawSchema): string | undefined {
  for (const [name, isSet] of UNSUPPORTED) {
    if (isSet(schema)) return `OpenAPIV3Schema '${name}' is not supported`;
  }
  if (schema["x-kubernetes-preserve-unknown-fields"] === false) {
    return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
  }
  if (!Array.isArray(schema.items)) return undefined;
  return "OpenAPIV3Schema 'items' must be a schema, but is an array";
}

function hasKeys(object: object | undefined): boolean {
  return object !== undefined && Object.keys(object).length > 0;
}

const UNSUPPORTED: readonly (readonly [string, (schema: RawSchema) => boolean])[] = [
  ["id", (s) => (s.id ?? "") !== ""],
  ["schema", (s) => (s.$schema ?? "") !== ""],
  ["$ref", (s) => (s.$ref ?? "") !== ""],
  ["patternProperties", (s) => hasKeys(s.patternProperties)],
  ["dependencies", (s) => hasKeys(s.dependencies)],
  ["additionalItems", (s) => s.additionalItems !== undefined],
  ["definitions", (s) => hasKeys(s.definitions)],
];

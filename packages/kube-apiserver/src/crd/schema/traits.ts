/**
 * What occurs in a schema or below it, so that passes over objects skip the parts of a schema that
 * have nothing for them. Schemas of CustomResourceDefinitions are trees.
 */
import type { Schema } from "@quorate/kube-storage";

export interface Traits {
  readonly defaults: boolean;
  readonly embedded: boolean;
  /** Lists of type "set" or "map". */
  readonly lists: boolean;
  /** x-kubernetes-validations. */
  readonly rules: boolean;
}

const NONE: Traits = { defaults: false, embedded: false, lists: false, rules: false };
const known = new WeakMap<Schema, Traits>();

/** The schema of an array's items, of a map's values, and of each property. */
export function* childSchemas(schema: Schema): Generator<Schema> {
  if (schema.items !== undefined) yield schema.items;
  if (typeof schema.additionalProperties === "object") yield schema.additionalProperties;
  if (schema.properties !== undefined) yield* Object.values(schema.properties);
}

/** The schemas of values that may occur at a field that `properties` does not list. */
export function valueSchema(schema: Schema): Schema | undefined {
  return typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined;
}

/** Computed once for each schema. */
export function traitsOf(schema: Schema | undefined): Traits {
  if (schema === undefined) return NONE;
  const present = known.get(schema);
  if (present !== undefined) return present;
  known.set(schema, NONE);
  const listType = schema["x-kubernetes-list-type"];
  const traits = {
    defaults: schema.default !== undefined && schema.default !== null,
    embedded: schema["x-kubernetes-embedded-resource"] === true,
    lists: listType === "set" || listType === "map",
    rules: (schema["x-kubernetes-validations"]?.length ?? 0) > 0,
  };
  for (const child of childSchemas(schema)) {
    const below = traitsOf(child);
    traits.defaults ||= below.defaults;
    traits.embedded ||= below.embedded;
    traits.lists ||= below.lists;
    traits.rules ||= below.rules;
  }
  known.set(schema, traits);
  return traits;
}

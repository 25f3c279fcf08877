/**
 * Types for server-side apply, made of structural schemas (kube-openapi: pkg/schemaconv/openapi.go;
 * structured-merge-diff: schema/elements.go). A type may allow several forms of values; the value
 * decides.
 */
import type { Json, ObjectSchema, Schema } from "@quorate/kube-storage";

export type ScalarKind = "numeric" | "string" | "boolean" | "untyped";

export interface ListType {
  readonly form: "list";
  readonly item: TypeAtom;
  /** The items of an atomic list have one owner together. */
  readonly atomic: boolean;
  /** The key fields of the items; none in a set of scalars. */
  readonly keys: readonly string[];
}

export interface MapType {
  readonly form: "map";
  readonly fields: ReadonlyMap<string, TypeAtom>;
  /** Of all fields that are not declared; undefined where those are not allowed. */
  readonly element: TypeAtom | undefined;
  readonly atomic: boolean;
  /** No field is declared, and the values may be anything. */
  readonly free: boolean;
}

export interface ScalarType {
  readonly form: "scalar";
  readonly kind: ScalarKind;
}

/** A type: the forms that a value may have. */
export interface TypeAtom {
  readonly scalar?: ScalarType;
  readonly list?: ListType;
  readonly map?: MapType;
  /** Of a field: what an absent value stands for. Only key fields of lists look at it. */
  readonly default?: Json;
}

type Building = { -readonly [K in keyof TypeAtom]: TypeAtom[K] };

const UNTYPED_SCALAR: ScalarType = { form: "scalar", kind: "untyped" };
const NO_FIELDS: ReadonlyMap<string, TypeAtom> = new Map();

function makeUntyped(): TypeAtom {
  const atom: Building = { scalar: UNTYPED_SCALAR };
  atom.list = { form: "list", item: atom, atomic: true, keys: [] };
  atom.map = { form: "map", fields: NO_FIELDS, element: atom, atomic: true, free: false };
  return atom;
}

/** Any value, with one owner. */
const UNTYPED_ATOMIC = makeUntyped();

function makeDeduced(): TypeAtom {
  const atom: Building = { scalar: UNTYPED_SCALAR };
  atom.list = { form: "list", item: UNTYPED_ATOMIC, atomic: true, keys: [] };
  atom.map = { form: "map", fields: NO_FIELDS, element: atom, atomic: false, free: true };
  return atom;
}

/** Any value; the fields of its maps have owners of their own. */
export const DEDUCED = makeDeduced();

/** Made types, by the schema of the object. */
const made = new WeakMap<Schema, TypeAtom>();

/**
 * The type of a kind. Without a schema, types are deduced from the values.
 * The result is kept as long as the schema lives.
 */
export function typeOfObject(object: ObjectSchema | undefined): TypeAtom {
  if (object === undefined) return DEDUCED;
  let type = made.get(object.schema);
  if (type === undefined) {
    type = new TypeMaker(object.schema).typeOf(object.schema, false);
    made.set(object.schema, type);
  }
  return type;
}

const QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension";

class TypeMaker {
  readonly #metadata: Schema | undefined;
  readonly #known = new Map<Schema, TypeAtom>();
  /** For schemas below x-kubernetes-preserve-unknown-fields. */
  readonly #knownPreserving = new Map<Schema, TypeAtom>();

  constructor(root: Schema) {
    this.#metadata = root.properties?.["metadata"];
  }

  typeOf(schema: Schema, inherited: boolean): TypeAtom {
    if (schema.definition === QUANTITY) return { scalar: UNTYPED_SCALAR };
    if (schema.definition === RAW_EXTENSION) return UNTYPED_ATOMIC;
    const preserve =
      schema["x-kubernetes-preserve-unknown-fields"] === true ||
      (inherited && schema.definition === undefined);
    const known = preserve ? this.#knownPreserving : this.#known;
    const present = known.get(schema);
    if (present !== undefined) return present;
    // Schemas may be cyclic: the type is known before its parts are.
    const atom: Building = {};
    known.set(schema, atom);
    this.#fill(atom, schema, preserve);
    return atom;
  }

  #fill(atom: Building, schema: Schema, preserve: boolean): void {
    if (schema.default !== undefined) atom.default = schema.default;
    const type = schema["x-kubernetes-int-or-string"] === true ? undefined : schema.type;
    if (type === undefined) atom.scalar = UNTYPED_SCALAR;
    else if (type !== "array" && type !== "object") atom.scalar = scalarOf(type, schema.format);
    if (type === undefined || type === "array") atom.list = this.#listOf(schema, preserve);
    if (type === undefined || type === "object") atom.map = this.#mapOf(schema, preserve);
  }

  #listOf(schema: Schema, preserve: boolean): ListType {
    const item = schema.items === undefined ? UNTYPED_ATOMIC : this.typeOf(schema.items, preserve);
    return { form: "list", item, ...relationOf(schema) };
  }

  #mapOf(schema: Schema, preserve: boolean): MapType {
    const fields = new Map<string, TypeAtom>();
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
      fields.set(name, this.typeOf(field, preserve));
    }
    if (schema["x-kubernetes-embedded-resource"] === true) this.#embed(fields);
    const element = this.#elementOf(schema, preserve, fields.size);
    return {
      form: "map",
      fields,
      element,
      atomic: schema["x-kubernetes-map-type"] === "atomic",
      free: fields.size === 0 && element !== undefined && isUntyped(element, schema),
    };
  }

  /** An embedded object has a kind and metadata whether the schema says so or not. */
  #embed(fields: Map<string, TypeAtom>): void {
    const text: TypeAtom = { scalar: { form: "scalar", kind: "string" } };
    fields.set("apiVersion", text);
    fields.set("kind", text);
    if (this.#metadata !== undefined) fields.set("metadata", this.typeOf(this.#metadata, false));
  }

  #elementOf(schema: Schema, preserve: boolean, declared: number): TypeAtom | undefined {
    const additional = schema.additionalProperties;
    if (additional === undefined) return preserve || declared === 0 ? DEDUCED : undefined;
    if (typeof additional === "boolean") return additional ? DEDUCED : undefined;
    return this.typeOf(additional, preserve);
  }
}

/** Whether the values of a map without declared fields may be anything. */
function isUntyped(element: TypeAtom, schema: Schema): boolean {
  if (element === DEDUCED) return true;
  const additional = schema.additionalProperties;
  const isNamed = typeof additional === "object" && additional.definition !== undefined;
  return !isNamed && element.scalar?.kind === "untyped";
}

function scalarOf(type: string, format: string | undefined): ScalarType {
  if (type === "boolean") return { form: "scalar", kind: "boolean" };
  if (type === "integer" || type === "number") return { form: "scalar", kind: "numeric" };
  const isText = format === undefined || format === "" || format === "byte";
  return isText ? { form: "scalar", kind: "string" } : UNTYPED_SCALAR;
}

/** Who owns the items of a list. Built-in kinds may have only the tags of strategic merges. */
function relationOf(schema: Schema): { atomic: boolean; keys: readonly string[] } {
  const type = schema["x-kubernetes-list-type"];
  if (type !== undefined) {
    const keys = type === "map" ? (schema["x-kubernetes-list-map-keys"] ?? []) : [];
    return { atomic: type === "atomic", keys };
  }
  const strategies = schema["x-kubernetes-patch-strategy"]?.split(",") ?? [];
  if (!strategies.includes("merge")) return { atomic: true, keys: [] };
  const key = schema["x-kubernetes-patch-merge-key"];
  return { atomic: false, keys: key === undefined ? [] : [key] };
}

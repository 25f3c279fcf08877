/**
 * Resources that a program adds in TypeScript:
 *
 *     const widgets = defineResource({
 *       group: "example.org", version: "v1", kind: "Widget",
 *       fields: { spec: record({ size: integer({ default: 3 }) }), status: optional(anything()) },
 *       strategy: { validate: (_ctx, widget) => checkSize(widget.spec.size) },
 *     });
 *
 * They behave as custom resources do: unknown fields are pruned, defaults are set, JSON is stored.
 */

import type {
  KindSource,
  KubeObject,
  ResourceSpec,
  ScalePaths,
  StoreHooks,
} from "@quorate/kube-storage";
import { AGE, jsonCodec, kindSource, nameColumn, tableOf, textColumn } from "@quorate/kube-storage";
import { VersionSchema } from "../crd/serving/version-schema.ts";
import { versionSource } from "../crd/serving/version-source.ts";
import { type RecordOf, record, type ShapeFields } from "./shapes.ts";
import { type TypedStrategy, typedStrategies } from "./typed-strategy.ts";

/** The objects of a resource with these fields. */
export type TypedObject<F extends ShapeFields> = KubeObject & RecordOf<F>;

/** A column between the name and the age. */
export interface TypedColumn<T> {
  readonly name: string;
  readonly description?: string;
  /** Shown in wide output only. */
  readonly wide?: boolean;
  cell(object: T, nowMs: number): string | number | boolean | null;
}

export interface ResourceDefinition<F extends ShapeFields> {
  /** A DNS domain, such as "example.org". */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** Default: the kind in small letters and the plural of English. */
  readonly plural?: string;
  readonly singular?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  /** Default: "Namespaced". */
  readonly scope?: "Namespaced" | "Cluster";
  readonly description?: string;
  /** The fields besides metadata. With `status` among them the resource has /status. */
  readonly fields: F;
  /** Present where the resource has /scale. */
  readonly scale?: ScalePaths;
  readonly columns?: readonly TypedColumn<TypedObject<F>>[];
  /** Fields that clients can select objects by, such as ".spec.color" as "spec.color". */
  readonly selectableFields?: Readonly<Record<string, (object: TypedObject<F>) => string>>;
  readonly strategy?: TypedStrategy<TypedObject<F>>;
  readonly hooks?: StoreHooks;
  /** Objects live this long after their last write. */
  readonly ttlSeconds?: (object: TypedObject<F>) => number;
}

/** A resource that can be served. */
export interface TypedResource<F extends ShapeFields = ShapeFields> {
  readonly spec: ResourceSpec;
  readonly source: KindSource;
  /** Never there: it makes the fields known to the compiler. */
  readonly fields?: F;
}

/** The type of a resource's objects. */
export type ObjectOf<R> = R extends TypedResource<infer F> ? TypedObject<F> : never;

/** The plural of a kind's name, as kubectl guesses it. */
function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  if (/(?:s|x|z|ch|sh)$/.test(name)) return `${name}es`;
  return /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : `${name}s`;
}

function selectable<F extends ShapeFields>(definition: ResourceDefinition<F>) {
  const entries = Object.entries(definition.selectableFields ?? {});
  return {
    selectableFieldNames: entries.map(([name]) => name),
    selectableFields: (object: KubeObject) =>
      Object.fromEntries(entries.map(([name, read]) => [name, read(object as TypedObject<F>)])),
  };
}

function schemaOf<F extends ShapeFields>({ group, version, kind, ...rest }: ResourceDefinition<F>) {
  const { schema } = record(rest.fields, { description: rest.description });
  const metadata = kindSource("", "v1", "ConfigMap").schema.schema.properties?.["metadata"];
  const declared = { name: version, schema: { openAPIV3Schema: schema } };
  return new VersionSchema({ group, version, kind }, declared, metadata ?? {}, false);
}

/** Declares a resource. Its storage and endpoints come from the server that it is added to. */
export function defineResource<const F extends ShapeFields>(
  definition: ResourceDefinition<F>,
): TypedResource<F> {
  const { group, version, kind, scope = "Namespaced", ttlSeconds } = definition;
  const { plural = pluralOf(kind), singular = kind.toLowerCase() } = definition;
  const namespaced = scope === "Namespaced";
  const schema = schemaOf(definition);
  const own = definition.strategy ?? {};
  const hasStatus = "status" in definition.fields;
  const { main, status } = typedStrategies({ version: schema, namespaced, hasStatus, own });
  const columns = (definition.columns ?? []).map(({ name, description = "", wide, cell }) =>
    textColumn(name, description, (o, nowMs) => cell(o as TypedObject<F>, nowMs), wide ? 1 : 0),
  );
  const spec: ResourceSpec = {
    kind: { group, version, kind },
    resource: plural,
    singular,
    shortNames: definition.shortNames ?? [],
    categories: definition.categories ?? [],
    namespaced,
    storagePrefix: `${group}/${plural}`,
    codec: jsonCodec,
    schema: { kind: { group, version, kind }, schema: schema.complete },
    strategy: main,
    ...(hasStatus ? { statusStrategy: status } : {}),
    ...(definition.scale === undefined ? {} : { scale: definition.scale }),
    ...(definition.hooks === undefined ? {} : { hooks: definition.hooks }),
    table: tableOf(nameColumn(), ...columns, AGE),
    ...selectable(definition),
    ...(ttlSeconds === undefined
      ? {}
      : { ttlSeconds: (object: KubeObject) => ttlSeconds(object as TypedObject<F>) }),
  };
  return { spec, source: versionSource(schema, jsonCodec) };
}

/** Schemas of a kind with a field for each way in which fields are merged and owned. */
import type { ObjectSchema, Schema } from "@quorate/kube-storage";

const TEXT: Schema = { type: "string" };
const COUNT: Schema = { type: "integer", format: "int64" };
const TEXTS: Schema = { type: "object", additionalProperties: TEXT };

const METADATA: Schema = {
  type: "object",
  properties: {
    name: TEXT,
    namespace: TEXT,
    uid: TEXT,
    resourceVersion: TEXT,
    generation: COUNT,
    creationTimestamp: { type: "string", format: "date-time" },
    labels: TEXTS,
    annotations: TEXTS,
    finalizers: { type: "array", items: TEXT, "x-kubernetes-list-type": "set" },
    managedFields: { type: "array", items: { type: "object" } },
  },
};

const PORT: Schema = {
  type: "object",
  properties: { port: COUNT, protocol: { type: "string", default: "TCP" }, name: TEXT },
};

const CONTAINER: Schema = {
  type: "object",
  properties: {
    name: TEXT,
    image: TEXT,
    args: { type: "array", items: TEXT, "x-kubernetes-list-type": "atomic" },
    ports: {
      type: "array",
      items: PORT,
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["port", "protocol"],
    },
    limits: TEXTS,
  },
};

function listByName(items: Schema): Schema {
  return {
    type: "array",
    items,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
  };
}

const NAMED: Schema = { type: "object", properties: { name: TEXT, value: COUNT } };

function specOf(later: boolean): Schema {
  return {
    type: "object",
    properties: {
      replicas: COUNT,
      ratio: { type: "number" },
      paused: { type: "boolean" },
      text: TEXT,
      either: { "x-kubernetes-int-or-string": true },
      containers: later
        ? { type: "array", items: CONTAINER, "x-kubernetes-list-type": "atomic" }
        : listByName(CONTAINER),
      tags: { type: "array", items: TEXT, "x-kubernetes-list-type": "set" },
      numbers: { type: "array", items: COUNT, "x-kubernetes-list-type": "set" },
      nodes: later ? listByName(NAMED) : { type: "array", items: NAMED },
      selector: {
        type: "object",
        properties: { app: TEXT, tier: TEXT },
        "x-kubernetes-map-type": later ? "granular" : "atomic",
      },
      nested: {
        type: "object",
        properties: { deep: { type: "object", properties: { value: TEXT, other: TEXT } } },
        "x-kubernetes-map-type": later ? "atomic" : "granular",
      },
      points: { type: "object", additionalProperties: NAMED },
      free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      mixed: {
        type: "object",
        properties: { value: TEXT, below: { type: "object", properties: { value: TEXT } } },
        "x-kubernetes-preserve-unknown-fields": true,
      },
    },
  };
}

const STATUS: Schema = {
  type: "object",
  properties: {
    phase: TEXT,
    conditions: {
      type: "array",
      items: { type: "object", properties: { type: TEXT, status: TEXT } },
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["type"],
    },
  },
};

function thingOf(version: string, later: boolean): ObjectSchema {
  return {
    kind: { group: "example.org", version, kind: "Thing" },
    schema: {
      type: "object",
      properties: {
        apiVersion: TEXT,
        kind: TEXT,
        metadata: METADATA,
        spec: specOf(later),
        status: STATUS,
      },
    },
  };
}

/** The versions v1 and v2, under an earlier and a later schema. */
export const THINGS: readonly Readonly<Record<string, ObjectSchema>>[] = [false, true].map(
  (later) => ({ v1: thingOf("v1", later), v2: thingOf("v2", later) }),
);

/** The same as OpenAPI documents have it. */
export function openApiOf(things: Readonly<Record<string, ObjectSchema>>): unknown {
  const schemas = Object.entries(things).map(([version, { kind, schema }]) => [
    `org.example.${version}.Thing`,
    { ...schema, "x-kubernetes-group-version-kind": [kind] },
  ]);
  return Object.fromEntries(schemas);
}

/** The kind of the strategic merge cases. Only built-in kinds have such tags. */
export const STRATEGIC: ObjectSchema = {
  kind: { group: "", version: "v1", kind: "thing" },
  schema: strategicSchema(),
};

function merged(items: Schema, key?: string, strategy = "merge"): Schema {
  return {
    type: "array",
    items,
    "x-kubernetes-patch-strategy": strategy,
    ...(key !== undefined && { "x-kubernetes-patch-merge-key": key }),
  };
}

function strategicSchema(): Schema {
  const port: Schema = { type: "object", properties: { port: COUNT, protocol: TEXT } };
  const item: Schema = {
    definition: "test.thingItem",
    type: "object",
    properties: {
      name: TEXT,
      value: TEXT,
      count: COUNT,
      ports: merged(port, "port"),
      args: { type: "array", items: TEXT },
    },
  };
  const mode: Schema = {
    definition: "test.thingMode",
    type: "object",
    properties: { type: TEXT, a: TEXT, b: item },
  };
  return {
    definition: "test.thing",
    type: "object",
    properties: {
      metadata: {
        definition: "test.thingMeta",
        type: "object",
        properties: { name: TEXT, labels: TEXTS, finalizers: merged(TEXT) },
      },
      data: TEXTS,
      mode: { ...mode, "x-kubernetes-patch-strategy": "retainKeys" },
      whole: { ...mode, "x-kubernetes-patch-strategy": "replace" },
      items: merged(item, "name"),
      kept: merged(item, "name", "merge,retainKeys"),
      plain: { type: "array", items: item },
      words: merged(TEXT),
      numbers: merged(COUNT),
      rest: { type: "array", items: TEXT },
    },
  };
}

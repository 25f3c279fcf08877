/**
 * Definitions and values whose errors were recorded from kube-apiserver 1.36.3, in recorded.json.
 * A recording is a list of "field: message", sorted, because Go's maps have no order.
 */
import type { Json } from "@quorate/kube-storage";

export type Anything = { [key: string]: Json };

/** A definition that is refused, or accepted where nothing is recorded. */
export interface DefinitionCase {
  readonly name: string;
  readonly crd: Anything;
}

export function definition(plural: string, schema: Json, more: Anything = {}): Anything {
  const version = { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.recorded.example` },
    spec: {
      group: "recorded.example",
      scope: "Namespaced",
      names: { plural, kind: plural[0].toUpperCase() + plural.slice(1) },
      versions: [version],
      ...more,
    },
  };
}

const OPEN = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

function spec(schema: Json): Json {
  return { type: "object", properties: { spec: schema } };
}

function field(schema: Json): Json {
  return spec({ type: "object", properties: { field: schema } });
}

const version = (name: string, more: Anything = {}): Anything => ({
  name,
  served: true,
  storage: true,
  schema: { openAPIV3Schema: OPEN },
  ...more,
});

const schemas: Record<string, Json> = {
  "no type at the root": {},
  "another type at the root": { type: "string" },
  "a field without a type": field({}),
  "items without a type": field({ type: "array", items: {} }),
  "an array without items": field({ type: "array" }),
  "an unknown type": field({ type: "text" }),
  "type null": field({ type: "null" }),
  "nested type": field({ type: "object", anyOf: [{ type: "object" }] }),
  "nested description and title": field({
    type: "string",
    allOf: [{ description: "a", title: "b" }],
  }),
  "nested extensions": field({
    type: "object",
    not: {
      "x-kubernetes-preserve-unknown-fields": true,
      "x-kubernetes-int-or-string": true,
      "x-kubernetes-embedded-resource": true,
      nullable: true,
      default: {},
      additionalProperties: { type: "string" },
    },
  }),
  "nested metadata": { type: "object", oneOf: [{ properties: { metadata: {} } }] },
  "restricted metadata": {
    type: "object",
    properties: { metadata: { type: "object", properties: { labels: { type: "object" } } } },
  },
  "name of metadata": {
    type: "object",
    properties: {
      metadata: { type: "object", properties: { name: { type: "string", maxLength: 5 } } },
    },
  },
  "kind is a number": { type: "object", properties: { kind: { type: "integer" } } },
  "not complete": { type: "object", anyOf: [{ properties: { spec: { required: ["a"] } } }] },
  "values at the root": { type: "object", additionalProperties: { type: "string" } },
  "values and properties": field({
    type: "object",
    properties: { a: { type: "string" } },
    additionalProperties: { type: "string" },
  }),
  "int or string": field({ "x-kubernetes-int-or-string": true }),
  "int or string with anyOf": field({
    anyOf: [{ type: "integer" }, { type: "string" }],
    "x-kubernetes-int-or-string": true,
  }),
  "int or string, other order": field({
    anyOf: [{ type: "string" }, { type: "integer" }],
    "x-kubernetes-int-or-string": true,
  }),
  "int or string that is preserved": field({
    "x-kubernetes-int-or-string": true,
    "x-kubernetes-preserve-unknown-fields": true,
  }),
  "embedded without type": field({ "x-kubernetes-embedded-resource": true }),
  "embedded without properties": field({ type: "object", "x-kubernetes-embedded-resource": true }),
  "preserve is false": field({ type: "object", "x-kubernetes-preserve-unknown-fields": false }),
  "broken pattern": field({ type: "string", pattern: "[a" }),
  "lookahead in a pattern": field({ type: "string", pattern: "(?=a)b" }),
  "unique items": field({ type: "array", uniqueItems: true, items: { type: "string" } }),
  "unsupported parts": field({ type: "object", $ref: "#/definitions/a", id: "x" }),
  "pattern properties": field({ type: "object", patternProperties: { a: { type: "string" } } }),
  "nullable at the root": { type: "object", nullable: true },
  "map type of a string": field({ type: "string", "x-kubernetes-map-type": "atomic" }),
  "unknown map type": field({ type: "object", "x-kubernetes-map-type": "list" }),
  "list type of an object": field({ type: "object", "x-kubernetes-list-type": "set" }),
  "unknown list type": field({
    type: "array",
    items: { type: "string" },
    "x-kubernetes-list-type": "bag",
  }),
  "map without keys": field({
    type: "array",
    items: { type: "object" },
    "x-kubernetes-list-type": "map",
  }),
  "keys without a map": field({
    type: "array",
    items: { type: "object" },
    "x-kubernetes-list-map-keys": ["a"],
  }),
  "map of strings": field({
    type: "array",
    items: { type: "string" },
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["a"],
  }),
  "bad keys": field({
    type: "array",
    items: {
      type: "object",
      properties: { a: { type: "object" }, b: { type: "string", nullable: true } },
    },
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["a", "b", "b", "c"],
  }),
  "set of granular objects": field({
    type: "array",
    items: { type: "object", nullable: true },
    "x-kubernetes-list-type": "set",
  }),
  "default of another type": field({ type: "string", default: 5 }),
  "default with unknown fields": field({ type: "object", default: { a: 1 } }),
  "default against the pattern": field({ type: "string", pattern: "^a$", default: "b" }),
  "default in metadata": {
    type: "object",
    properties: { metadata: { type: "object", default: {} } },
  },
  "default of the apiVersion": {
    type: "object",
    properties: { apiVersion: { type: "string", default: "v1" } },
  },
  "rule without text": spec({ type: "object", "x-kubernetes-validations": [{ rule: " " }] }),
  "rule with a bad reason": spec({
    type: "object",
    properties: { a: { type: "string" } },
    "x-kubernetes-validations": [{ rule: "true", reason: "Bad", fieldPath: ".b", message: " " }],
  }),
};

const definitions: Record<string, Anything> = {
  "two storage versions": { versions: [version("v1"), version("v2")] },
  "no storage version": { versions: [version("v1", { storage: false })] },
  "no versions": { versions: [] },
  "one name twice": { versions: [version("v1"), version("v1", { storage: false })] },
  "a bad version": { versions: [version("1.0")] },
  "a version without schema": { versions: [{ name: "v1", served: true, storage: true }] },
  "one group label": { group: "recorded" },
  "a bad group": { group: "Recorded.example" },
  "a bad scope": { scope: "Global" },
  "no scope": { scope: "" },
  "the same kind and list kind": { names: { plural: "bad", kind: "Bad", listKind: "Bad" } },
  "bad names": {
    names: {
      plural: "bad",
      singular: "Bad",
      kind: "Bad-",
      shortNames: ["", "b_"],
      categories: ["All"],
    },
  },
  "no kind": { names: { plural: "bad" } },
  "bad columns": {
    versions: [
      version("v1", {
        additionalPrinterColumns: [
          { name: "", type: "string", jsonPath: ".a" },
          { name: "b", type: "text", jsonPath: ".a" },
          { name: "c", type: "string", format: "f", jsonPath: "a" },
          { name: "d", type: "string", jsonPath: "" },
        ],
      }),
    ],
  },
  "bad scale": {
    versions: [
      version("v1", {
        subresources: {
          scale: {
            specReplicasPath: ".status.replicas",
            statusReplicasPath: "status.replicas",
            labelSelectorPath: ".metadata.labels",
          },
        },
      }),
    ],
  },
  "scale without paths": {
    versions: [
      version("v1", { subresources: { scale: { specReplicasPath: "", statusReplicasPath: "" } } }),
    ],
  },
  "status and a root with anyOf": {
    versions: [
      version("v1", {
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: "array", items: { type: "string" } } },
      }),
    ],
  },
  "selectable fields": {
    versions: [
      version("v1", {
        schema: { openAPIV3Schema: field({ type: "string" }) },
        selectableFields: [
          { jsonPath: ".spec.field" },
          { jsonPath: ".spec.field" },
          { jsonPath: ".spec.other" },
          { jsonPath: ".spec" },
          { jsonPath: "" },
        ],
      }),
    ],
  },
  "a warning for a version in use": { versions: [version("v1", { deprecationWarning: "old" })] },
  "an empty warning": { versions: [version("v1", { deprecated: true, deprecationWarning: "" })] },
  "a long warning": {
    versions: [version("v1", { deprecated: true, deprecationWarning: `${"w".repeat(257)}\n` })],
  },
  "webhook conversion without webhook": { conversion: { strategy: "Webhook" } },
  "webhook without webhook conversion": {
    conversion: {
      strategy: "None",
      webhook: { clientConfig: { url: "https://a" }, conversionReviewVersions: ["v1"] },
    },
  },
  "webhook with url and service": {
    conversion: {
      strategy: "Webhook",
      webhook: {
        clientConfig: { url: "https://a", service: { name: "a", namespace: "b" } },
        conversionReviewVersions: ["v9", "v9", "V"],
      },
    },
  },
  "webhook with a bad url": {
    conversion: {
      strategy: "Webhook",
      webhook: {
        clientConfig: { url: "http://u:p@a/b?c=d#e" },
        conversionReviewVersions: ["v1"],
      },
    },
  },
  "webhook with a bad service": {
    conversion: {
      strategy: "Webhook",
      webhook: {
        clientConfig: { service: { name: "", namespace: "b", port: 0, path: "a//B" } },
        conversionReviewVersions: ["v1"],
      },
    },
  },
  "an unknown strategy": { conversion: { strategy: "Magic" } },
  "preserves unknown fields": { preserveUnknownFields: true },
};

export const definitionCases: readonly DefinitionCase[] = [
  ...Object.entries(schemas).map(([name, schema]) => ({ name, crd: definition("bad", schema) })),
  ...Object.entries(definitions).map(([name, more]) => ({
    name,
    crd: definition("bad", OPEN, more),
  })),
  {
    name: "a name of another kind",
    crd: { ...definition("bad", OPEN), metadata: { name: "other.recorded.example" } },
  },
  {
    name: "a protected group",
    crd: {
      ...definition("bad", OPEN, { group: "recorded.k8s.io" }),
      metadata: { name: "bad.recorded.k8s.io" },
    },
  },
  {
    name: "a bad approval",
    crd: {
      ...definition("bad", OPEN, { group: "recorded.k8s.io" }),
      metadata: {
        name: "bad.recorded.k8s.io",
        annotations: { "api-approved.kubernetes.io": "yes" },
      },
    },
  },
];

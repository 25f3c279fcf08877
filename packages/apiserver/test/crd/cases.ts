/**
 * Definitions and values whose errors were recorded from kube-apiserver 1.36.3, in recorded.json.
 * A recording is a list of "field: message", sorted, because Go's maps have no order.
 */
import type { Json } from "../../index.ts";

export type Anything = { [key: string]: Json };

/** A definition that is refused, or accepted where nothing is recorded. */
export interface DefinitionCase {
  readonly name: string;
  readonly crd: Anything;
}

/** A value below spec.value against its schema; with `old`, an update. */
export interface ValueCase {
  readonly name: string;
  readonly schema: Anything;
  readonly value?: Json;
  readonly old?: Json;
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

const twoFields = {
  type: "object",
  properties: { a: { type: "string" }, b: { type: "integer" } },
};

export const valueCases: readonly ValueCase[] = [
  { name: "text for a number", schema: { type: "integer" }, value: "x" },
  { name: "number for a text", schema: { type: "string" }, value: 5 },
  { name: "fraction for an integer", schema: { type: "integer" }, value: 1.5 },
  { name: "whole number for a number", schema: { type: "number" }, value: 5 },
  { name: "list for an object", schema: { type: "object" }, value: [1] },
  { name: "object for a list", schema: { type: "array", items: { type: "string" } }, value: {} },
  { name: "bool for a text", schema: { type: "string" }, value: true },
  { name: "int or string", schema: { "x-kubernetes-int-or-string": true }, value: {} },
  { name: "int or string, a bool", schema: { "x-kubernetes-int-or-string": true }, value: true },
  {
    name: "required",
    schema: {
      type: "object",
      required: ["a", "b"],
      properties: { a: { type: "string" }, b: { type: "string" } },
    },
    value: {},
  },
  { name: "required itself", schema: { type: "string" } },
  { name: "enum", schema: { type: "string", enum: ["a", "b"] }, value: "c" },
  { name: "enum of numbers", schema: { type: "integer", enum: [1, 2] }, value: 3 },
  { name: "too long", schema: { type: "string", maxLength: 3 }, value: "abcd" },
  { name: "too long by one", schema: { type: "string", maxLength: 1 }, value: "ab" },
  { name: "characters, not bytes", schema: { type: "string", maxLength: 3 }, value: "äöü" },
  { name: "too short", schema: { type: "string", minLength: 3 }, value: "ab" },
  { name: "pattern", schema: { type: "string", pattern: "^[a-z]+$" }, value: "A" },
  { name: "pattern with quotes", schema: { type: "string", pattern: "^'\"<&>$" }, value: "\"'<\n" },
  { name: "maximum", schema: { type: "integer", maximum: 5 }, value: 6 },
  {
    name: "exclusive maximum",
    schema: { type: "integer", maximum: 5, exclusiveMaximum: true },
    value: 5,
  },
  { name: "minimum", schema: { type: "integer", minimum: 5 }, value: 4 },
  {
    name: "exclusive minimum",
    schema: { type: "number", minimum: 0.5, exclusiveMinimum: true },
    value: 0.5,
  },
  { name: "maximum of a fraction", schema: { type: "number", maximum: 1.5 }, value: 1.75 },
  { name: "multiple", schema: { type: "integer", multipleOf: 3 }, value: 4 },
  { name: "multiple of a fraction", schema: { type: "number", multipleOf: 0.5 }, value: 0.7 },
  { name: "int32", schema: { type: "integer", format: "int32" }, value: 3000000000 },
  {
    name: "min items",
    schema: { type: "array", minItems: 2, items: { type: "string" } },
    value: ["a"],
  },
  {
    name: "max items",
    schema: { type: "array", maxItems: 1, items: { type: "string" } },
    value: ["a", "b"],
  },
  {
    name: "min properties",
    schema: { type: "object", minProperties: 1, additionalProperties: { type: "string" } },
    value: {},
  },
  {
    name: "max properties",
    schema: { type: "object", maxProperties: 1, additionalProperties: { type: "string" } },
    value: { a: "b", c: "d" },
  },
  {
    name: "values of a map",
    schema: { type: "object", additionalProperties: { type: "string" } },
    value: { "a.b": 1 },
  },
  {
    name: "no fields at all",
    schema: { type: "object", additionalProperties: false },
    value: { a: "b" },
  },
  { name: "items", schema: { type: "array", items: twoFields }, value: [{ a: 1 }, { b: "x" }] },
  {
    name: "anyOf",
    schema: { ...twoFields, anyOf: [{ required: ["a"] }, { required: ["b"] }] },
    value: {},
  },
  {
    name: "anyOf, best failure",
    schema: {
      ...twoFields,
      anyOf: [
        { required: ["a"], properties: { a: { maxLength: 1 } } },
        { required: ["b"], properties: { b: { maximum: 1 } } },
      ],
    },
    value: { b: 2 },
  },
  {
    name: "oneOf, none",
    schema: { ...twoFields, oneOf: [{ required: ["a"] }, { required: ["b"] }] },
    value: {},
  },
  {
    name: "oneOf, two",
    schema: { ...twoFields, oneOf: [{ required: ["a"] }, { required: ["b"] }] },
    value: { a: "x", b: 1 },
  },
  {
    name: "allOf",
    schema: { type: "string", allOf: [{ maxLength: 1 }, { pattern: "^a" }] },
    value: "bb",
  },
  {
    name: "allOf, one",
    schema: { type: "string", allOf: [{ maxLength: 1 }, { pattern: "^b" }] },
    value: "bb",
  },
  { name: "not", schema: { type: "string", not: { pattern: "^a" } }, value: "ab" },
  {
    name: "set",
    schema: { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set" },
    value: ["a", "b", "a", "a"],
  },
  {
    name: "map list",
    schema: {
      type: "array",
      items: { ...twoFields, required: ["a"] },
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["a"],
    },
    value: [
      { a: "x", b: 1 },
      { a: "x", b: 2 },
    ],
  },
  {
    name: "map list of two keys",
    schema: {
      type: "array",
      items: { ...twoFields, required: ["a", "b"] },
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["b", "a"],
    },
    value: [
      { a: "x", b: 1 },
      { a: "x", b: 1 },
    ],
  },
  {
    name: "null that is dropped",
    schema: { type: "object", required: ["a"], properties: { a: { type: "string" } } },
    value: { a: null },
  },
  { name: "null in a list", schema: { type: "array", items: { type: "string" } }, value: [null] },
  { name: "nullable enum", schema: { type: "string", nullable: true, enum: ["a"] }, value: null },
  {
    name: "embedded",
    schema: {
      type: "object",
      "x-kubernetes-embedded-resource": true,
      "x-kubernetes-preserve-unknown-fields": true,
    },
    value: { kind: "A_b", metadata: { name: "a/b", namespace: "N" } },
  },
  {
    name: "embedded without kind",
    schema: {
      type: "object",
      "x-kubernetes-embedded-resource": true,
      "x-kubernetes-preserve-unknown-fields": true,
    },
    value: { apiVersion: "" },
  },
  ...(
    [
      ["date", "2026-02-30"],
      ["date-time", "2026-02-28 10:00:00Z"],
      ["email", "a@"],
      ["ipv4", "256.1.1.1"],
      ["ipv6", "::g"],
      ["cidr", "10.0.0.0/33"],
      ["uri", "not a uri"],
      ["uuid", "x"],
      ["hostname", "-a"],
      ["byte", "a"],
      ["duration", "soon"],
      ["mac", "1:2"],
      ["hexcolor", "#12"],
      ["isbn", "1"],
      ["ssn", "1"],
      ["creditcard", "4111111111111112"],
      ["rgbcolor", "rgb(256,0,0)"],
      ["bsonobjectid", "x"],
      ["k8s-short-name", "A"],
      ["unknown", "anything"],
      ["password", "p"],
    ] as const
  ).map(([format, value]) => ({
    name: `format ${format}`,
    schema: { type: "string", format },
    value,
  })),
  { name: "format of another type", schema: { type: "string", format: "date" }, value: 5 },
  {
    name: "unchanged and wrong",
    schema: {
      type: "object",
      properties: { a: { type: "string", maxLength: 9 }, b: { type: "integer" } },
    },
    old: { a: "x" },
    value: { a: "x", b: "1" },
  },
];

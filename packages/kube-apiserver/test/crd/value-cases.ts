/**
 * Values whose errors were recorded from kube-apiserver 1.36.3, in recorded.json: as POST of an
 * object, or as its PUT.
 */
import type { Json } from "@quorate/kube-storage";
import type { Anything } from "./cases.ts";

/** A value below spec.value against its schema; with `old`, an update. */
export interface ValueCase {
  readonly name: string;
  readonly schema: Anything;
  readonly value?: Json;
  readonly old?: Json;
}

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

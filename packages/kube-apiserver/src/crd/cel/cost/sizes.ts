/**
 * How large values of a schema can be in one request (apiserver: pkg/cel/common/schemas.go): the
 * bounds that the schema sets, else as many as fit the longest body.
 */
import type { Schema } from "@quorate/kube-storage";
import { valueSchema } from "../../schema/traits.ts";

/** The longest body of a request that Kubernetes' estimation assumes. */
const MAX_REQUEST_BYTES = 3 * 1024 * 1024;
/** Of a key with its quotes, the colon and the comma. */
const KEY_BYTES = 6;
const BOUNDED_TEXTS: Readonly<Record<string, number>> = {
  duration: 32,
  date: 12,
  "date-time": 42,
};
/** Schemas are walked by recursion; deeper values count as the smallest. */
const MAX_DEPTH = 32;

/** The bytes of the smallest JSON of a schema. */
export function leastBytes(schema: Schema | undefined, depth = 0): number {
  if (schema === undefined || depth > MAX_DEPTH) return 1;
  switch (schema.type) {
    case "boolean":
      return "true".length;
    case "number":
    case "integer":
      return 1;
    case "object": {
      let bytes = 2;
      for (const name of schema.required ?? []) {
        const property = schema.properties?.[name];
        // A default fills in what is missing.
        if (property === undefined || property.default !== undefined) continue;
        bytes += name.length + 4 + leastBytes(property, depth + 1);
      }
      return bytes;
    }
    case "array":
    case "string":
      return 2;
    default:
      return 1;
  }
}

/** The most elements of a list or map. */
export function mostElements(schema: Schema): number {
  if (schema.type === "array") {
    const { maxItems, items } = schema;
    return maxItems ?? Math.floor((MAX_REQUEST_BYTES - 2) / (leastBytes(items) + 1));
  }
  const { maxProperties } = schema;
  const least = leastBytes(valueSchema(schema));
  return maxProperties ?? Math.floor((MAX_REQUEST_BYTES - 2) / (least + KEY_BYTES));
}

/** The most bytes of a text. */
export function mostTextBytes({ maxLength, format = "", enum: values }: Schema): number {
  if (maxLength !== undefined) return maxLength * 4;
  if (values !== undefined)
    return Math.max(0, ...values.map((one) => (typeof one === "string" ? one.length : 0)));
  return BOUNDED_TEXTS[format] ?? MAX_REQUEST_BYTES - 2;
}

/** How often a value of the schema can be in a request, where no list around it has a bound. */
export function mostOccurrences(schema: Schema): number {
  return Math.floor(MAX_REQUEST_BYTES / (leastBytes(schema) + 1));
}

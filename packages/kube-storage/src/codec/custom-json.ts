/**
 * Types whose JSON is not an object of their fields: times, quantities, numbers or strings, and
 * values of any type. Source: the UnmarshalJSON methods of apimachinery and apiextensions.
 */

import { canonicalQuantity } from "../meta/quantity.ts";
import { type CustomName, type MessageType, messageType } from "../schema/message-type.ts";
import { canonicalTime } from "./go-time.ts";
import { jsonKind } from "./json-parser.ts";

/** What these types need of the decoder that meets them. */
export interface CustomDecoding {
  /** Keeps the first error. Returns undefined. */
  fail(message: string): undefined;
  /** Keeps the error for a value of the wrong type. Returns undefined. */
  wrongType(value: string, goType: string): undefined;
  /** An embedded object whose unknown and duplicate fields Go does not look for. */
  leniently(type: MessageType, value: unknown): unknown;
}

/** The value in the form that Go writes; undefined for nil. Errors go to the decoder. */
export function customFromJson(
  custom: CustomName,
  value: unknown,
  decoder: CustomDecoding,
): unknown {
  switch (custom) {
    case "Time":
      return time(value, "seconds", decoder);
    case "MicroTime":
      return time(value, "micros", decoder);
    case "Quantity":
      return quantity(value, decoder);
    case "IntOrString":
      return intOrString(value, decoder);
    case "JSONSchemaPropsOrBool":
      return schemaOrBool(value, decoder);
    case "JSONSchemaPropsOrArray":
      return schemaOr(value, decoder, (items) =>
        items.map((item) => decoder.leniently(jsonSchemaProps(), item ?? {})),
      );
    case "JSONSchemaPropsOrStringArray":
      return schemaOr(value, decoder, (items) => items);
    default:
      return value === null ? undefined : value;
  }
}

/** The type of schemas in CustomResourceDefinitions. */
export function jsonSchemaProps(): MessageType {
  return messageType("apiextensions.JSONSchemaProps") as MessageType;
}

function time(value: unknown, unit: "seconds" | "micros", decoder: CustomDecoding): unknown {
  if (value === null) return undefined;
  if (typeof value !== "string") return decoder.wrongType(jsonKind(value), "string");
  try {
    return canonicalTime(value, unit) ?? undefined;
  } catch (error) {
    return decoder.fail((error as SyntaxError).message);
  }
}

function quantity(value: unknown, decoder: CustomDecoding): unknown {
  if (value === null) return "0";
  try {
    return canonicalQuantity(String(value));
  } catch (error) {
    return decoder.fail((error as SyntaxError).message);
  }
}

function intOrString(value: unknown, decoder: CustomDecoding): unknown {
  if (value === null) return 0;
  if (typeof value === "string") return value;
  if (typeof value !== "number") return decoder.wrongType(jsonKind(value), "int32");
  return (value | 0) === value ? value : decoder.wrongType(`number ${value}`, "int32");
}

function schemaOrBool(value: unknown, decoder: CustomDecoding): unknown {
  if (typeof value === "boolean") return value;
  if (jsonKind(value) === "object") return decoder.leniently(jsonSchemaProps(), value);
  return decoder.fail("boolean or JSON schema expected");
}

function schemaOr(
  value: unknown,
  decoder: CustomDecoding,
  fromArray: (items: readonly unknown[]) => unknown,
): unknown {
  // Go writes null for all that is neither.
  if (Array.isArray(value)) return value.length === 0 ? null : fromArray(value);
  return jsonKind(value) === "object" ? decoder.leniently(jsonSchemaProps(), value) : null;
}

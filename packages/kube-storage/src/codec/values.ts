/**
 * Objects from the values of their fields, as Go's encoding/json would write them: in the order of
 * the type's fields, empty ones omitted or written as zero values.
 */

import { DEFAULTERS } from "../schema/defaults.ts";
import type { FieldValues, MutableObject } from "../schema/maps.ts";
import type { CustomName, Field, MessageType, ValueType } from "../schema/message-type.ts";

/** The zero values of custom types; undefined is nil, which JSON writes as null. */
const CUSTOM_ZERO: Readonly<Record<CustomName, unknown>> = {
  Time: undefined,
  MicroTime: undefined,
  Quantity: "0",
  IntOrString: 0,
  RawExtension: undefined,
  FieldsV1: undefined,
  JSON: undefined,
  JSONSchemaPropsOrArray: undefined,
  JSONSchemaPropsOrBool: false,
  JSONSchemaPropsOrStringArray: undefined,
};

const SCALAR_ZERO: Readonly<Record<string, unknown>> = {
  string: "",
  bool: false,
  int32: 0,
  int64: 0,
  double: 0,
};

/** What Go has for a value that is absent or null; undefined for nil. */
export function zeroOf(type: ValueType): unknown {
  if (type.pointer) return undefined;
  if (type.shape === "scalar") return SCALAR_ZERO[type.scalar];
  if (type.shape !== "message") return undefined;
  const message = type.message();
  if (message.custom !== undefined) return CUSTOM_ZERO[message.custom];
  return message.alias === undefined ? objectOf(message, []) : undefined;
}

/**
 * An object from its fields' values, defaults filled in.
 * @param values by position in `type.fields`; undefined is absent, or nil. Changed by the call.
 */
export function objectOf(type: MessageType, values: unknown[]): MutableObject {
  let slot = 0;
  for (const { preset, type: fieldType } of type.fields) {
    if (values[slot] === undefined) values[slot] = zeroOf(fieldType);
    if (preset !== undefined && isMissing(fieldType, values[slot])) values[slot] = preset;
    slot++;
  }
  const setDefaults = DEFAULTERS.get(type.fullName);
  if (setDefaults !== undefined) setDefaults(fieldValues(type, values));
  const object: MutableObject = {};
  let at = 0;
  for (const field of type.fields) {
    const value = values[at++];
    if (!isOmitted(field, value)) object[field.name] = value === undefined ? null : value;
  }
  return object;
}

function isMissing(type: ValueType, value: unknown): boolean {
  return value === undefined || (!type.pointer && (value === "" || value === 0));
}

function fieldValues(type: MessageType, values: unknown[]): FieldValues {
  const slotOf = (name: string): number => {
    const slot = type.slotOf.get(name);
    if (slot === undefined) throw new RangeError(`${type.name} has no field ${name}`);
    return slot;
  };
  return {
    names: type.fields.map((field) => field.name),
    get: (name) => values[slotOf(name)],
    set: (name, value) => {
      values[slotOf(name)] = value;
    },
    setMissing: (name, value) => {
      const slot = slotOf(name);
      const field = type.fields[slot];
      if (field !== undefined && isMissing(field.type, values[slot])) values[slot] = value;
    },
  };
}

function isOmitted({ omit, type }: Field, value: unknown): boolean {
  if (omit === "") return false;
  if (value === undefined) return omit === "zero" || type.pointer || type.shape !== "message";
  if (type.pointer) return false;
  switch (type.shape) {
    case "scalar":
      return value === "" || value === 0 || value === false;
    case "list":
      return omit === "empty" && (value as readonly unknown[]).length === 0;
    case "map":
      return omit === "empty" && isEmptyObject(value as object);
    default:
      return false;
  }
}

function isEmptyObject(value: object): boolean {
  for (const _ in value) return false;
  return true;
}

/** An element of a list or map: nil is null there. */
export function orNull(value: unknown): unknown {
  return value === undefined ? null : value;
}

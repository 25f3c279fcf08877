/**
 * Protobuf of built-in kinds, byte for byte as Go writes it: fields by ascending number; strings,
 * numbers, booleans and messages that are no pointers always, also when they are empty; pointers
 * where they are set; maps sorted by the bytes of their keys (source: the generated.pb.go files).
 */
import { fromUtf8, type Writer, writeFromBase64 } from "@quorate/proto";
import { type MutableObject, sortedKeys } from "../schema/maps.ts";
import type { CustomName, MessageType, ValueType, WireField } from "../schema/message-type.ts";
import { jsonSchemaProps } from "./custom-json.ts";
import { type Instant, parseTime } from "./go-time.ts";
import { MAX_MESSAGE_DEPTH } from "./limits.ts";

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

/** The wire type of each scalar. */
const WIRE_TYPES: Readonly<Record<string, number>> = {
  string: BYTES,
  bytes: BYTES,
  bool: VARINT,
  int32: VARINT,
  int64: VARINT,
  double: FIXED64,
};

function wireTypeOf({ shape, scalar }: ValueType): number {
  return shape === "scalar" ? WIRE_TYPES[scalar] : BYTES;
}

/**
 * Writes an object's fields, without a length before them.
 * @param object its JSON value; fields of no known name are left out
 * @throws TypeError for a value of the wrong type, and for nesting that is too deep
 */
export function writeMessage(
  writer: Writer,
  type: MessageType,
  object: MutableObject,
  depth = 0,
): void {
  if (depth > MAX_MESSAGE_DEPTH) throw new TypeError(`${type.name}: nested too deep`);
  for (const field of type.wire) {
    if (field.inlined) {
      writer.uint32((field.number << 3) | BYTES);
      const start = writer.open();
      writeMessage(writer, field.type.message(), object, depth + 1);
      writer.close(start);
      continue;
    }
    const { name } = type.fields[field.slot];
    try {
      writeField(writer, field, object[name], depth);
    } catch (error) {
      throw located(error, name);
    }
  }
}

/** Adds a field's name to the error of a value in it. */
function located(error: unknown, name: string): unknown {
  if (!(error instanceof TypeError || error instanceof SyntaxError || error instanceof RangeError))
    return error;
  const { message } = error;
  const at = /^[.[]/.test(message) ? name : `${name}: `;
  return new TypeError(`${at}${message}`);
}

function writeField(writer: Writer, { number, type }: WireField, value: unknown, depth: number) {
  const isNil = value === undefined || value === null;
  if (type.shape === "list") {
    if (isNil) return;
    if (!Array.isArray(value)) throw new TypeError("not a list");
    for (const item of value) writeValue(writer, number, type.of as ValueType, item, depth);
  } else if (type.shape === "map") {
    if (isNil) return;
    writeMap(writer, number, type.of as ValueType, value as MutableObject, depth);
  } else if (!isNil || !(type.pointer || type.scalar === "bytes")) {
    writeValue(writer, number, type, value, depth);
  } else if (!type.pointer && type.shape === "message") {
    writeValue(writer, number, type, value, depth);
  }
}

function writeMap(
  writer: Writer,
  number: number,
  of: ValueType,
  map: MutableObject,
  depth: number,
): void {
  if (typeof map !== "object") throw new TypeError("not a map");
  for (const key of sortedKeys(map)) {
    writer.uint32((number << 3) | BYTES);
    const start = writer.open();
    writer.uint32((1 << 3) | BYTES);
    writer.string(key);
    const value = map[key];
    if (value !== null || of.scalar !== "bytes") writeValue(writer, 2, of, value, depth);
    writer.close(start);
  }
}

/** One value with its tag; an absent one is the zero value. */
function writeValue(
  writer: Writer,
  number: number,
  type: ValueType,
  value: unknown,
  depth: number,
): void {
  writer.uint32((number << 3) | wireTypeOf(type));
  if (type.shape === "scalar") writeScalar(writer, type.scalar, value ?? undefined);
  else if (type.shape === "message") {
    const start = writer.open();
    writeMessageValue(writer, type.message(), value ?? undefined, depth + 1);
    writer.close(start);
  } else throw new TypeError("a list of lists");
}

function writeMessageValue(writer: Writer, type: MessageType, value: unknown, depth: number): void {
  if (type.custom !== undefined) writeCustom(writer, type.custom, value, depth);
  else if (type.alias !== undefined) {
    // A message with one field that is the list or map.
    const field = { number: 1, slot: 0, type: type.alias, inlined: false };
    writeField(writer, field, value, depth);
  } else {
    if (value !== undefined && (typeof value !== "object" || Array.isArray(value)))
      throw new TypeError(`not a ${type.name}`);
    writeMessage(writer, type, (value ?? {}) as MutableObject, depth);
  }
}

function writeScalar(writer: Writer, scalar: string, value: unknown): void {
  switch (scalar) {
    case "string":
      writer.string(typed<string>(value ?? "", "string"));
      return;
    case "bool":
      writer.bool(typed<boolean>(value ?? false, "boolean"));
      return;
    case "int32":
      writer.int32(typed<number>(value ?? 0, "number"));
      return;
    case "int64":
      writer.int64(typed<number>(value ?? 0, "number"));
      return;
    case "double":
      writer.fixed64(doubleBits(typed<number>(value ?? 0, "number")));
      return;
    default: {
      const text = typed<string>(value ?? "", "string");
      const bytes = new Uint8Array(Math.ceil((text.length * 3) / 4));
      writer.view(bytes.subarray(0, writeFromBase64(bytes, text, 0)));
    }
  }
}

function typed<T>(value: unknown, type: string): T {
  if (typeof value !== type) throw new TypeError(`not a ${type}`);
  return value as T;
}

const DOUBLE = new Float64Array(1);
const DOUBLE_BITS = new BigUint64Array(DOUBLE.buffer);

function doubleBits(value: number): bigint {
  DOUBLE[0] = value;
  return DOUBLE_BITS[0];
}

function writeCustom(writer: Writer, custom: CustomName, value: unknown, depth: number): void {
  switch (custom) {
    case "Time":
      writeTime(writer, value === undefined ? undefined : parseTime(String(value), "seconds"));
      return;
    case "MicroTime":
      writeTime(writer, value === undefined ? undefined : parseTime(String(value), "micros"), true);
      return;
    case "Quantity":
      tagged(writer, 1, String(value ?? "0"));
      return;
    case "IntOrString":
      writer.uint32(1 << 3);
      writer.uint32(typeof value === "string" ? 1 : 0);
      writer.uint32(2 << 3);
      writer.int32(typeof value === "number" ? value : 0);
      tagged(writer, 3, typeof value === "string" ? value : "");
      return;
    case "RawExtension":
    case "FieldsV1":
    case "JSON":
      if (value === undefined) return;
      writer.uint32((1 << 3) | BYTES);
      writer.view(fromUtf8(JSON.stringify(value)));
      return;
    default:
      writeSchemaOr(writer, custom, value, depth);
  }
}

function tagged(writer: Writer, number: number, text: string): void {
  writer.uint32((number << 3) | BYTES);
  writer.string(text);
}

function writeTime(writer: Writer, time: Instant | undefined, withMicros = false): void {
  if (time === undefined) return;
  writer.uint32(1 << 3);
  writer.int64(time.seconds);
  writer.uint32(2 << 3);
  writer.int32(withMicros ? time.micros * 1000 : 0);
}

function writeSchemaOr(writer: Writer, custom: CustomName, value: unknown, depth: number): void {
  const writeSchema = (number: number, schema: unknown): void => {
    writer.uint32((number << 3) | BYTES);
    const start = writer.open();
    writeMessageValue(writer, jsonSchemaProps(), schema ?? {}, depth + 1);
    writer.close(start);
  };
  if (custom === "JSONSchemaPropsOrBool") {
    writer.uint32(1 << 3);
    writer.bool(value !== undefined && value !== false);
    if (typeof value === "object") writeSchema(2, value);
  } else if (Array.isArray(value)) {
    for (const item of value)
      if (custom === "JSONSchemaPropsOrArray") writeSchema(2, item);
      else tagged(writer, 2, typed<string>(item, "string"));
  } else if (value !== undefined) writeSchema(1, value);
}

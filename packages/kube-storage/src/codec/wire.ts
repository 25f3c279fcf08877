/**
 * Protobuf of built-in kinds, in both directions.
 *
 * What is read has the form in which Go writes the object as JSON; unknown fields are skipped, as
 * Go's generated decoders do. What is written is byte for byte what Go writes: fields by ascending
 * number; strings, numbers, booleans and messages that are no pointers always, also when they are
 * empty; pointers where they are set; maps sorted by the bytes of their keys (source: the
 * generated.pb.go files).
 */
import {
  defined,
  fromUtf8,
  type Reader,
  toBase64,
  toUtf8,
  WireError,
  type Writer,
  writeFromBase64,
} from "@quorate/proto";
import { canonicalQuantity } from "../meta/quantity.ts";
import { type MutableObject, setField, sortedKeys, sortedMap } from "../schema/maps.ts";
import type { CustomName, MessageType, ValueType, WireField } from "../schema/message-type.ts";
import { jsonSchemaProps } from "./custom-json.ts";
import { formatTime, type Instant, parseTime } from "./go-time.ts";
import { fitsDepth, MAX_JSON_DEPTH, MAX_MESSAGE_DEPTH } from "./limits.ts";
import { objectOf, orNull, zeroOf } from "./values.ts";

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

/**
 * Reads fields up to the end of the reader's message.
 * @throws WireError for bytes that are no such message, and for nesting that is too deep
 */
export function readMessage(reader: Reader, type: MessageType): MutableObject {
  const values: unknown[] = [];
  readFields(reader, type, values, 0);
  for (const [slot, { type: of }] of type.fields.entries())
    if (of.shape === "map" && values[slot] !== undefined)
      values[slot] = sortedMap(values[slot] as MutableObject);
  return objectOf(type, values);
}

/** @param offset position in `values` of the type's first field, for inlined messages */
function readFields(reader: Reader, type: MessageType, values: unknown[], offset: number): void {
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    const field = type.wireByNumber.get(tag >>> 3);
    if (field === undefined || (tag & 7) !== wireTypeOf(field.type)) {
      try {
        reader.skip(tag, type.wireNames);
      } catch (error) {
        throw reader.failed(error, type.name, type.wireNames, tag);
      }
      continue;
    }
    const slot = offset + field.slot;
    if (field.inlined) {
      const outer = reader.enterNested();
      readFields(reader, field.type.message(), values, slot);
      reader.leaveNested(outer);
    } else readField(reader, field, values, slot);
  }
}

function wireTypeOf(type: ValueType): number {
  const each = type.shape === "list" ? (type.of as ValueType) : type;
  return each.shape === "scalar" ? (WIRE_TYPES[each.scalar] ?? BYTES) : BYTES;
}

function readField(reader: Reader, { type }: WireField, values: unknown[], slot: number): void {
  if (type.shape === "list") {
    const list = (values[slot] ?? []) as unknown[];
    values[slot] = list;
    list.push(orNull(readValue(reader, type.of as ValueType)));
  } else if (type.shape === "map") {
    values[slot] = readEntry(reader, type.of as ValueType, (values[slot] ?? {}) as MutableObject);
  } else values[slot] = readValue(reader, type);
}

/** Adds an entry to a map. Go writes entries in order, so that sorting costs little. */
function readEntry(reader: Reader, of: ValueType, map: MutableObject): MutableObject {
  const outer = reader.enter();
  let key = "";
  let value: unknown;
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    if (tag === 10) key = reader.string();
    else if (tag >>> 3 === 2 && (tag & 7) === wireTypeOf(of)) value = readValue(reader, of);
    else reader.skip(tag, {});
  }
  reader.leave(outer);
  setField(map, key, orNull(value === undefined ? zeroOf(of) : value));
  return map;
}

function readValue(reader: Reader, type: ValueType): unknown {
  if (type.shape === "scalar") return readScalar(reader, type.scalar);
  const message = type.message();
  const outer = reader.enterNested();
  const value =
    message.custom !== undefined
      ? readCustom(reader, message.custom)
      : message.alias !== undefined
        ? readAlias(reader, message.alias)
        : readMessage(reader, message);
  reader.leaveNested(outer);
  return value;
}

function readAlias(reader: Reader, type: ValueType): unknown {
  const values: unknown[] = [];
  const field = { number: 1, slot: 0, type, inlined: false };
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    if (tag === 10) readField(reader, field, values, 0);
    else reader.skip(tag, {});
  }
  return values[0];
}

const DOUBLE = new DataView(new ArrayBuffer(8));

function readScalar(reader: Reader, scalar: string): unknown {
  switch (scalar) {
    case "string":
      return reader.string();
    case "bool":
      return reader.bool();
    case "int32":
      return reader.int32();
    case "int64":
      return reader.int64();
    case "double":
      return readDouble(reader);
    default:
      return toBase64(reader.view());
  }
}

function readDouble(reader: Reader): number {
  DOUBLE.setBigUint64(0, reader.fixed64());
  return DOUBLE.getFloat64(0);
}

function readCustom(reader: Reader, custom: CustomName): unknown {
  switch (custom) {
    case "Time":
      return readTime(reader, "seconds");
    case "MicroTime":
      return readTime(reader, "micros");
    case "Quantity":
      return readQuantity(reader);
    case "IntOrString":
      return readIntOrString(reader);
    case "RawExtension":
    case "FieldsV1":
    case "JSON":
      return readJson(reader);
    default:
      return readSchemaOr(reader, custom);
  }
}

/** Calls `read` with the number of each field that has the wire type; skips others. */
function eachField(reader: Reader, read: (number: number, wireType: number) => boolean): void {
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    if (!read(tag >>> 3, tag & 7)) reader.skip(tag, {});
  }
}

function readTime(reader: Reader, unit: "seconds" | "micros"): string | undefined {
  if (reader.pos === reader.end) return undefined;
  let seconds = 0;
  let nanos = 0;
  eachField(reader, (number, wireType) => {
    if (wireType !== 0 || number > 2) return false;
    if (number === 1) seconds = reader.int64();
    else nanos = reader.int32();
    return true;
  });
  const micros = unit === "seconds" ? 0 : Math.trunc(nanos / 1000);
  return formatTime({ seconds, micros }, unit) ?? undefined;
}

function readQuantity(reader: Reader): string {
  let text = "0";
  const at = reader.pos;
  eachField(reader, (number, wireType) => {
    if (number !== 1 || wireType !== 2) return false;
    text = reader.string();
    return true;
  });
  try {
    return canonicalQuantity(text);
  } catch (error) {
    throw new WireError((error as SyntaxError).message, at);
  }
}

function readIntOrString(reader: Reader): string | number {
  let isString = false;
  let int = 0;
  let text = "";
  eachField(reader, (number, wireType) => {
    if (number === 1 && wireType === 0) isString = reader.int64() === 1;
    else if (number === 2 && wireType === 0) int = reader.int32();
    else if (number === 3 && wireType === 2) text = reader.string();
    else return false;
    return true;
  });
  return isString ? text : int;
}

function readJson(reader: Reader): unknown {
  let raw: Uint8Array | undefined;
  const at = reader.pos;
  eachField(reader, (number, wireType) => {
    if (number !== 1 || wireType !== 2) return false;
    raw = reader.view();
    return true;
  });
  if (raw === undefined || raw.length === 0) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(toUtf8(raw));
  } catch {
    throw new WireError("not JSON", at);
  }
  // A level has two bytes, so that short texts, the usual ones, need no walk.
  if (raw.length > 2 * MAX_JSON_DEPTH && !fitsDepth(value, MAX_JSON_DEPTH))
    throw new WireError("JSON that exceeds the max depth", at);
  return value;
}

function readSchemaOr(reader: Reader, custom: CustomName): unknown {
  let schema: unknown;
  let allows = false;
  const list: unknown[] = [];
  const readSchema = (): MutableObject => {
    const outer = reader.enterNested();
    const object = readMessage(reader, jsonSchemaProps());
    reader.leaveNested(outer);
    return object;
  };
  const isBool = custom === "JSONSchemaPropsOrBool";
  eachField(reader, (number, wireType) => {
    if (isBool && number === 1 && wireType === 0) allows = reader.bool();
    else if (wireType !== 2 || number > 2) return false;
    else if (number === (isBool ? 2 : 1)) schema = readSchema();
    else if (number !== 2) return false;
    else if (custom === "JSONSchemaPropsOrArray") list.push(readSchema());
    else list.push(reader.string());
    return true;
  });
  if (isBool) return schema ?? allows;
  return list.length > 0 ? list : schema;
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
    const { name } = defined(type.fields[field.slot], "the field");
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

function doubleBits(value: number): bigint {
  DOUBLE.setFloat64(0, value);
  return DOUBLE.getBigUint64(0);
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

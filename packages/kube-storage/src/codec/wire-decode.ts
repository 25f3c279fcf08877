/**
 * Objects of built-in kinds from protobuf. The result has the form in which Go writes the object as
 * JSON. Unknown fields are skipped, as Go's generated decoders do.
 */
import { type Reader, toBase64, toUtf8, WireError } from "@quorate/proto";
import { type MutableObject, put, sortedMap } from "../schema/maps.ts";
import type { CustomName, MessageType, ValueType, WireField } from "../schema/message-type.ts";
import { jsonSchemaProps } from "./custom-json.ts";
import { formatTime } from "./go-time.ts";
import { fitsDepth, MAX_JSON_DEPTH } from "./limits.ts";
import { canonicalQuantity } from "./quantity.ts";
import { objectOf, zeroOf } from "./values.ts";

const WIRE_TYPES: Readonly<Record<string, number>> = {
  string: 2,
  bytes: 2,
  bool: 0,
  int32: 0,
  int64: 0,
  double: 1,
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
  return each.shape === "scalar" ? WIRE_TYPES[each.scalar] : 2;
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

function orNull(value: unknown): unknown {
  return value === undefined ? null : value;
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
  put(map, key, orNull(value === undefined ? zeroOf(of) : value));
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

const DOUBLE = new Float64Array(1);
const DOUBLE_BITS = new BigUint64Array(DOUBLE.buffer);

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
  DOUBLE_BITS[0] = reader.fixed64();
  return DOUBLE[0];
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

/**
 * Messages in protobuf's text format on one line, as Go prints them:
 * `ID:7 put:{key:"foo" value:"bar" lease:1}`.
 */

import { concat, defined, sequenceLength, toUtf8 } from "@quorate/proto";
import { type Field, FieldType, schema } from "./schema.ts";
import { packedVarints, type WireField, wireFields } from "./wire.ts";

/** Fields that are never printed: dumps are shared. */
const SECRET = new Set(["password", "hashedPassword"]);
const REMOVED = '"<value removed>"';
/** Fields that etcd declares first, although their numbers are higher. */
const FIRST: Readonly<Record<string, string>> = { "etcdserverpb.InternalRaftRequest": "header" };

/**
 * The text of an encoded message. Fields are in the order of etcd's declaration; zeros are left out
 * as in Go; unknown fields come last, under their number. Throws WireError if the bytes are not
 * such a message.
 * @param typeName such as "etcdserverpb.InternalRaftRequest"
 * @param maxBytes of a string or bytes; of a longer one the beginning is shown, and its size
 */
export function protoText(
  typeName: string,
  bytes: Uint8Array,
  maxBytes: number = Number.POSITIVE_INFINITY,
): string {
  const declared = schema().messages.get(typeName);
  if (declared === undefined) throw new TypeError(`unknown message ${typeName}`);
  const isFirst = ({ name }: Field): boolean => name === FIRST[typeName];
  const fields = [...declared.filter(isFirst), ...declared.filter((field) => !isFirst(field))];
  const found = Map.groupBy(wireFields(bytes), ({ number }) => number);
  const parts: string[] = [];
  for (const field of fields) {
    const values = (found.get(field.number) ?? []).filter(({ value }) => fits(field, value));
    if (values.length === 0) continue;
    const texts = field.isRepeated
      ? values.flatMap((one) => repeated(field, one, maxBytes))
      : [single(field, values, maxBytes)];
    for (const text of texts) if (text !== undefined) parts.push(`${field.name}:${text}`);
  }
  const known = new Set(fields.map(({ number }) => number));
  for (const [number, values] of found) {
    if (known.has(number)) continue;
    for (const { value } of values)
      parts.push(`${number}:${typeof value === "bigint" ? value : shownBytes(value, maxBytes)}`);
  }
  return parts.join(" ");
}

/** Whether a value has the wire type of the field, or is a packed list of such values. */
function fits({ type, isRepeated }: Field, value: bigint | Uint8Array): boolean {
  const isBytes =
    type === FieldType.string || type === FieldType.bytes || type === FieldType.message;
  return isBytes ? value instanceof Uint8Array : typeof value === "bigint" || isRepeated;
}

function repeated(field: Field, { value }: WireField, maxBytes: number): string[] {
  const isPacked =
    value instanceof Uint8Array &&
    ![FieldType.string, FieldType.bytes, FieldType.message].includes(field.type as never);
  return (isPacked ? packedVarints(value) : [value]).map((one) => textOf(field, one, maxBytes));
}

/** The last value of a repeated occurrence counts; occurrences of a message are merged. */
function single(field: Field, values: readonly WireField[], maxBytes: number): string | undefined {
  if (field.type === FieldType.message)
    return textOf(field, join(values.map(({ value }) => value as Uint8Array)), maxBytes);
  const { value } = defined(values.at(-1), "an element of values");
  const isZero = typeof value === "bigint" ? value === 0n : value.length === 0;
  return isZero && !field.hasPresence ? undefined : textOf(field, value, maxBytes);
}

function join(pieces: readonly Uint8Array[]): Uint8Array {
  const [first, second] = pieces;
  return first !== undefined && second === undefined ? first : concat(pieces);
}

function textOf(
  { name, type, typeName }: Field,
  value: bigint | Uint8Array,
  maxBytes: number,
): string {
  if (typeof value !== "bigint") {
    if (type === FieldType.message) return `{${protoText(typeName, value, maxBytes)}}`;
    return SECRET.has(name) && value.length > 0 ? REMOVED : shownBytes(value, maxBytes);
  }
  switch (type) {
    case FieldType.bool:
      return String(value !== 0n);
    case FieldType.enum: {
      const number = BigInt.asIntN(32, value);
      return schema().enums.get(typeName)?.get(Number(number)) ?? String(number);
    }
    case FieldType.int64:
      return String(BigInt.asIntN(64, value));
    case FieldType.int32:
      return String(BigInt.asIntN(32, value));
    case FieldType.uint32:
      return String(BigInt.asUintN(32, value));
    default:
      return String(value);
  }
}

function shownBytes(bytes: Uint8Array, maxBytes: number): string {
  if (bytes.length <= maxBytes) return quoted(bytes);
  return `${quoted(bytes.subarray(0, maxBytes))}${leftOut(bytes.length, maxBytes)}`;
}

/** What stands behind the beginning of bytes that are not shown whole. */
export function leftOut(sizeBytes: number, maxBytes: number): string {
  return `<${sizeBytes - maxBytes} of ${sizeBytes} bytes not shown; --max-value-bytes=0 shows all>`;
}

/** Characters that Go's text format and etcd-dump-logs escape by a name. */
export const NAMED: Readonly<Record<string, string>> = {
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  '"': '\\"',
  "\\": "\\\\",
};

/**
 * Bytes in quotes as Go's text format writes them: invalid UTF-8 and control characters as \x1f,
 * other characters unchanged.
 */
export function quoted(bytes: Uint8Array): string {
  let out = "";
  for (let at = 0; at < bytes.length; ) {
    const size = sequenceLength(bytes, at, bytes.length);
    const char = size === 0 ? "" : toUtf8(bytes, at, at + size);
    const byte = bytes[at] ?? 0;
    const code = char.codePointAt(0) ?? byte;
    if (NAMED[char] !== undefined) out += NAMED[char];
    else if (size === 0 || code < 0x20 || code === 0x7f)
      out += `\\x${byte.toString(16).padStart(2, "0")}`;
    else out += code >= 0x80 && code <= 0x9f ? `\\u${code.toString(16).padStart(4, "0")}` : char;
    at += Math.max(1, size);
  }
  return `"${out}"`;
}

/**
 * A Form declares how one kind of response looks in every output format. The texts are etcdctl
 * 3.7's, byte for byte, because scripts read them.
 */

import type { JsonValue, Table } from "@quorate/cli";
import {
  concat,
  defined,
  Event,
  type FieldRow,
  fieldRows,
  fromUtf8,
  idToHex,
  isMessage,
  KeyValue,
  type MessageType,
  quoteBytes,
  ResponseHeader,
  toHex,
} from "@quorate/proto";

/** The flags that change how keys, values and ids look. */
export interface FormStyle {
  /** --hex: keys, values and ids in hexadecimal. */
  readonly isHex: boolean;
  /** --print-value-only: values without their keys. */
  readonly valueOnly: boolean;
}

/** A line of the fields format: a name and its value, or a text that is printed as it is. */
export type FieldLine = readonly [name: string, value: FieldValue] | string;

export type FieldValue = string | number | bigint | boolean;

/** A text of the simple format that goes to a stream of its own. */
export interface StreamText {
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

interface FormBase<T> {
  /**
   * Lines of the fields format. The printer puts the header of a response before them; a list
   * of responses has no header of its own. Absent where etcdctl has no fields format.
   */
  fields?(response: T, style: FormStyle): readonly FieldLine[];
  json(response: T, style: FormStyle): JsonValue;
  /** The protobuf format. Absent where etcdctl has none. */
  protobuf?(response: T): Uint8Array;
}

interface WithText<T> {
  /** The simple format, line ends included. */
  simple(response: T, style: FormStyle): string | Uint8Array | readonly StreamText[];
  /** The table format. Absent where etcdctl has none. */
  table?(response: T): Table;
}

/** The simple format of these is the table: comma-separated, or aligned on a terminal. */
interface WithTableOnly<T> {
  readonly simple?: undefined;
  table(response: T): Table;
}

export type Form<T> = FormBase<T> & (WithText<T> | WithTableOnly<T>);

/** The form of a response that JSON and protobuf show as it is, by the table of its fields. */
export function formOf<T>(
  type: MessageType<T>,
  parts: Pick<FormBase<T>, "fields"> & (WithText<T> | WithTableOnly<T>),
): Form<T> {
  return {
    json: (response) => messageJson(type.typeName, response),
    protobuf: (response) => type.encode(response),
    ...parts,
  };
}

/** A response without content of its own: a fixed text, and the header. */
export function doneForm<T>(type: MessageType<T>, text: string): Form<T> {
  return formOf(type, { simple: () => `${text}\n`, fields: () => [] });
}

/** The value, or undefined where Go's omitempty leaves the member out. */
export function present<T extends JsonValue>(value: T): T | undefined {
  if (value === "" || value === 0 || value === 0n || value === false) return undefined;
  if ((value instanceof Uint8Array || Array.isArray(value)) && value.length === 0) return undefined;
  return value;
}

/** Messages that others hold encoded. */
const ENCODED: Readonly<Record<string, MessageType<KeyValue> | MessageType<Event>>> = {
  "mvccpb.KeyValue": KeyValue,
  "mvccpb.Event": Event,
};
const rowsOf = new Map<string, readonly FieldRow[]>();

/**
 * A message as Go's encoding/json writes it: its fields by their names in the .proto file, in their
 * order, without what omitempty leaves out. For messages without a oneof.
 */
export function messageJson(typeName: string, message: unknown): JsonValue {
  const decoded =
    message instanceof Uint8Array ? defined(ENCODED[typeName], typeName).decode(message) : message;
  const values = decoded as Readonly<Record<string, JsonValue | undefined>>;
  const rows = rowsOf.get(typeName) ?? fieldRows(typeName);
  rowsOf.set(typeName, rows);
  return Object.fromEntries(
    rows.map(({ name, property, type, label }) => {
      const value = values[property];
      if (value === undefined) return [name, undefined];
      if (!isMessage(type)) return [name, present(value)];
      if (label !== "repeated") return [name, messageJson(type, value)];
      return [name, present((value as readonly unknown[]).map((one) => messageJson(type, one)))];
    }),
  );
}

/** A header as JSON. */
export function headerJson(header: ResponseHeader | undefined): JsonValue | undefined {
  return header && messageJson(ResponseHeader.typeName, header);
}

/** A header as lines of the fields format. The revision is left out where the response has none. */
export function headerFields(header: ResponseHeader | undefined, style: FormStyle): FieldLine[] {
  return [
    ["ClusterID", idField(header?.clusterId ?? 0n, style)],
    ["MemberID", idField(header?.memberId ?? 0n, style)],
    ...(header !== undefined && header.revision > 0
      ? [["Revision", header.revision] as const]
      : []),
    ["RaftTerm", header?.raftTerm ?? 0],
  ];
}

/** The id of a member or cluster as the fields format shows it. */
export function idField(id: bigint, { isHex }: FormStyle): FieldValue {
  return isHex ? idToHex(id) : id;
}

/** A text as the fields format shows it: in Go's quotes. */
export function textField(name: string, value: string): FieldLine {
  return [name, quoteBytes(fromUtf8(value))];
}

/** An encoded KeyValue as lines of the fields format. */
export function recordFields(
  prefix: string,
  record: Uint8Array,
  { isHex }: FormStyle,
): FieldLine[] {
  const kv = KeyValue.decode(record);
  return [
    [`${prefix}Key`, quoteBytes(kv.key)],
    [`${prefix}CreateRevision`, kv.createRevision],
    [`${prefix}ModRevision`, kv.modRevision],
    [`${prefix}Version`, kv.version],
    [`${prefix}Value`, quoteBytes(kv.value)],
    [`${prefix}Lease`, isHex ? paddedHex(kv.lease) : kv.lease],
  ];
}

const NEWLINE = fromUtf8("\n");

/** Encoded KeyValues in the simple format: keys and values on lines of their own. */
export function recordLines(
  records: readonly Uint8Array[],
  { isHex, valueOnly }: FormStyle,
): Uint8Array {
  const shown = (bytes: Uint8Array): Uint8Array =>
    isHex ? fromUtf8(toHex(bytes).replace(/../g, "\\x$&")) : bytes;
  const pieces: Uint8Array[] = [];
  for (const record of records) {
    const { key, value } = KeyValue.decode(record);
    if (!valueOnly) pieces.push(shown(key), NEWLINE);
    pieces.push(shown(value), NEWLINE);
  }
  return concat(pieces);
}

/** A signed number in Go's %016x, as etcdctl shows leases. */
export function paddedHex(value: bigint): string {
  return value < 0n
    ? `-${(-value).toString(16).padStart(15, "0")}`
    : value.toString(16).padStart(16, "0");
}

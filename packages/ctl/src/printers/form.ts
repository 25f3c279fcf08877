/**
 * A Form declares how one kind of response looks in every output format. The texts are etcdctl
 * 3.7's, byte for byte, because scripts read them.
 */

import type { JsonValue, Table } from "@quorate/cli";
import {
  concat,
  fromUtf8,
  idToHex,
  KeyValue,
  type MessageType,
  quoteBytes,
  type ResponseHeader,
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

/** A response without content of its own: a fixed text, and the header. */
export function doneForm<T extends { readonly header: ResponseHeader | undefined }>(
  type: MessageType<T>,
  text: string,
  options: { readonly hasFields: boolean } = { hasFields: true },
): Form<T> {
  return {
    simple: () => `${text}\n`,
    ...(options.hasFields ? { fields: () => [] } : {}),
    json: ({ header }) => ({ header: headerJson(header) }),
    protobuf: (response) => type.encode(response),
  };
}

/** The value, or undefined where Go's omitempty leaves the member out. */
export function present<T extends JsonValue>(value: T): T | undefined {
  if (value === "" || value === 0 || value === 0n || value === false) return undefined;
  if ((value instanceof Uint8Array || Array.isArray(value)) && value.length === 0) return undefined;
  return value;
}

/** A header as JSON. */
export function headerJson(header: ResponseHeader | undefined): JsonValue | undefined {
  if (header === undefined) return undefined;
  return {
    cluster_id: present(header.clusterId),
    member_id: present(header.memberId),
    revision: present(header.revision),
    raft_term: present(header.raftTerm),
  };
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

/** An encoded KeyValue as JSON. */
export function recordJson(record: Uint8Array): JsonValue {
  const kv = KeyValue.decode(record);
  return {
    key: present(kv.key),
    create_revision: present(kv.createRevision),
    mod_revision: present(kv.modRevision),
    version: present(kv.version),
    value: present(kv.value),
    lease: present(kv.lease),
  };
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

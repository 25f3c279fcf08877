/**
 * One kind of answer in every form of output, declared in one place: the printers take what they
 * need of it. The texts are etcdctl 3.7's, byte for byte, because scripts read them.
 */
import {
  concat,
  fromUtf8,
  KeyValue,
  type MessageType,
  type ResponseHeader,
  toHex,
} from "@quorate/proto";
import { goQuote, type JsonValue } from "../go-format.ts";

/** How people want keys, values and ids to be shown. */
export interface Style {
  /** --hex. */
  readonly isHex: boolean;
  /** Values without their keys. */
  readonly valueOnly: boolean;
}

/** A line of the fields form: the name in its quotes, " : ", the value; or a text as it is. */
export type FieldLine = readonly [name: string, value: string | number | bigint | boolean] | string;

export interface Form<T> {
  /** What the simple form prints, line ends included. */
  simple(answer: T, style: Style): string | Uint8Array;
  /** What the fields form prints after the header; absent where etcdctl has no fields form. */
  fields?(answer: T, style: Style): readonly FieldLine[];
  json(answer: T): JsonValue;
  /** What the protobuf form prints; absent where etcdctl has none. */
  protobuf?(answer: T): Uint8Array;
}

/** Answers that tell nothing but that it is done. */
export function doneForm<T extends { readonly header: ResponseHeader | undefined }>(
  type: MessageType<T>,
  text: string,
  options: { readonly hasFields: boolean } = { hasFields: true },
): Form<T> {
  return {
    simple: () => `${text}\n`,
    ...(options.hasFields ? { fields: () => [] } : {}),
    json: ({ header }) => ({ header: headerJson(header) }),
    protobuf: (answer) => type.encode(answer),
  };
}

/** The value, or undefined for what Go's omitempty leaves out. */
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

/** An encoded KeyValue as lines of the fields form. */
export function recordFields(prefix: string, record: Uint8Array, { isHex }: Style): FieldLine[] {
  const kv = KeyValue.decode(record);
  return [
    [`${prefix}Key`, goQuote(kv.key)],
    [`${prefix}CreateRevision`, kv.createRevision],
    [`${prefix}ModRevision`, kv.modRevision],
    [`${prefix}Version`, kv.version],
    [`${prefix}Value`, goQuote(kv.value)],
    [`${prefix}Lease`, isHex ? paddedHex(kv.lease) : kv.lease],
  ];
}

const NEWLINE = fromUtf8("\n");

/** Encoded KeyValues as the simple form shows them: keys and values on lines of their own. */
export function recordLines(
  records: readonly Uint8Array[],
  { isHex, valueOnly }: Style,
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

/** A signed number in Go's %016x, as leases are shown. */
export function paddedHex(value: bigint): string {
  return value < 0n
    ? `-${(-value).toString(16).padStart(15, "0")}`
    : value.toString(16).padStart(16, "0");
}

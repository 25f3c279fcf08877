/**
 * What the JSON mapping knows of a message type: its fields in the order of the .proto file, with
 * both names of each. etcd's gateway derives the same from its descriptors.
 */

/** The type of a field's value. */
export type JsonKind =
  | "bool"
  | "int32"
  | "uint32"
  | "int64"
  | "uint64"
  | "string"
  | "bytes"
  | "enum"
  | "message";

/** The values of an enum. */
export interface JsonEnum {
  /** Full protobuf name, such as "mvccpb.Event.EventType". */
  readonly typeName: string;
  readonly numbers: ReadonlyMap<string, number>;
  /** The names by number, in quotes, as in responses. */
  readonly quoted: ReadonlyMap<number, Uint8Array>;
}

/** One field of a message. */
export interface JsonField {
  /** Place in the message, from 0. */
  readonly index: number;
  /** Field number. */
  readonly id: number;
  /** Name in the .proto file, which is also the one in responses. */
  readonly name: string;
  /** The lower camel case name, which requests may use too. */
  readonly jsonName: string;
  readonly kind: JsonKind;
  readonly repeated: boolean;
  /** Full name of the oneof that it belongs to, such as "etcdserverpb.Compare.target_union". */
  readonly oneof: string | undefined;
  /** A bit for the oneof within its message, 0 for none. A default value of a member is present. */
  readonly oneofBit: number;
  /** The type of an embedded message. */
  readonly message: JsonMessage | undefined;
  /** The type of an enum. */
  readonly enumType: JsonEnum | undefined;
  /** The field's tag on the wire, as varint: with the wire type of a single value. */
  readonly tag: number;
  /** The name in quotes and a colon, as in responses. */
  readonly label: Uint8Array;
}

/** One message type. */
export interface JsonMessage {
  /** Full protobuf name, such as "etcdserverpb.PutRequest". */
  readonly typeName: string;
  /** In the order of declaration, which is the order of the numbers and of responses. */
  readonly fields: readonly JsonField[];
  /** The field with a number, if there is one. */
  byNumber(id: number): JsonField | undefined;
  /** The field that a request calls by this name, if there is one. */
  byName(name: string): JsonField | undefined;
  /** As byName, for the ASCII bytes [start, end) of `json`, whose hash is `hash`. */
  byNameBytes(json: Uint8Array, start: number, end: number, hash: number): JsonField | undefined;
}

/** One step of the hash of byNameBytes; it begins with 0. */
export function hashStep(hash: number, byte: number): number {
  return (Math.imul(hash, 31) + byte) | 0;
}

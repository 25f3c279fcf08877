/**
 * What the JSON mapping knows of a message type: its fields in the order of the .proto file, with
 * both names of each. The tables are generated (gen/json.ts); etcd's gateway derives the same from
 * its descriptors.
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

/** One field of a message. */
export interface JsonField {
  /** Field number. */
  readonly id: number;
  /** Name in the .proto file, which is also the one in responses. */
  readonly name: string;
  /** The lower camel case name, which requests may use too. */
  readonly jsonName: string;
  readonly kind: JsonKind;
  readonly repeated: boolean;
  /** Full name of the oneof that the field belongs to, such as "etcdserverpb.Compare.target_union". */
  readonly oneof: string | undefined;
  /** Whether a default value counts as present: proto2's optional fields, and members of a oneof. */
  readonly explicit: boolean;
  /** The type of an embedded message. */
  readonly message: JsonMessage | undefined;
  /** An enum's names by number. */
  readonly names: ReadonlyMap<number, string> | undefined;
}

/** One message type. */
export interface JsonMessage {
  /** Full protobuf name, such as "etcdserverpb.PutRequest". */
  readonly typeName: string;
  /** In the order of declaration, which is the order in responses. */
  readonly fields: readonly JsonField[];
}

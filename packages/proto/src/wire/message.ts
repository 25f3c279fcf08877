import type { Reader } from "./reader.ts";
import type { Writer } from "./writer.ts";

/** The generated codec of a message type of proto/. */
export interface MessageType<T> {
  /** Full protobuf name, such as "etcdserverpb.PutRequest". */
  readonly typeName: string;
  /**
   * A message with the fields of init, and defaults (0, 0n, false, "", no bytes, [], undefined) for
   * the others.
   */
  create(init?: Partial<T>): T;
  /**
   * The encoded message, fields in ascending order. Missing fields count as defaults. Throws
   * RangeError for an integer out of range.
   */
  encode(message: Partial<T>): Uint8Array;
  /** Appends the encoded message, without a length, to w. */
  encodeTo(w: Writer, message: Partial<T>): void;
  /** Decodes all of bytes; throws WireError if malformed. `bytes` fields are views of the input. */
  decode(bytes: Uint8Array): T;
  /**
   * Reads fields from r up to r.end; into `into` if given (protobuf merges a repeated embedded
   * message).
   */
  decodeFrom(r: Reader, into?: T): T;
}

/** One method of a service. */
export interface MethodDescriptor {
  /** HTTP/2 path, such as "/etcdserverpb.KV/Range". */
  readonly path: string;
  readonly name: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: the table holds methods of all types
  readonly requestType: MessageType<any>;
  // biome-ignore lint/suspicious/noExplicitAny: the table holds methods of all types
  readonly responseType: MessageType<any>;
}

/** One service. */
export interface ServiceDescriptor {
  /** Full protobuf name, such as "etcdserverpb.KV". */
  readonly typeName: string;
  readonly methods: { readonly [name: string]: MethodDescriptor };
}

/**
 * The interfaces of the JSON mapping: requests to protobuf, responses to JSON, as etcd's gateway
 * does it (grpc-gateway v2 with protojson). Both work in slices, so that a large message never
 * holds the event loop.
 */
import type { MethodDescriptor } from "../wire/message.ts";
import type { JsonMessage } from "./schema.ts";

/** One path of etcd's gateway; the table is derived from the google.api.http annotations. */
export interface HttpRoute {
  /** The HTTP method, "POST" for every path of etcd. */
  readonly httpMethod: "POST";
  /** The exact path, such as "/v3/kv/range". */
  readonly path: string;
  /** The method that it calls; `rpc.path` is the key of a ServiceTable. */
  readonly rpc: MethodDescriptor;
  readonly request: JsonMessage;
  readonly response: JsonMessage;
}

/**
 * One request body, whole in memory, on its way to protobuf. Only the first JSON value counts, as
 * with etcd; a body without one is an empty message.
 */
export interface RequestTranscoding {
  /**
   * Works for about `sliceBytes` bytes of the body (0.3 ms for 64 KiB) and returns the encoded
   * message when it is complete, undefined while there is more to do. Its fields are in the order
   * of the body, without defaults. Throws JsonError with etcd's text, for the caller to send as
   * INVALID_ARGUMENT.
   */
  run(sliceBytes: number): Uint8Array | undefined;
}

/** The source of an encoded message; PieceSource of packages/rpc is one. */
export interface WirePieces {
  /** The next piece, which does not change afterwards; undefined behind the last one. */
  next(): Uint8Array | undefined;
}

/** How a response is framed. */
export type JsonForm =
  /** The message alone: a unary response. */
  | "message"
  /**
   * `{"result":MESSAGE}` and a newline: one message of a stream. Go escapes "<", ">", "&", U+2028
   * and U+2029 in it, and so does this.
   */
  | "chunk";

/** One response on its way to JSON. */
export interface ResponseTranscoding {
  /**
   * The next piece of at most about 64 KiB, made from about as much of the message (under 1 ms);
   * undefined behind the last one. Throws WireError for a message that is malformed.
   */
  next(): Uint8Array | undefined;
}

/**
 * Cuts the body of a stream request into its JSON values, as Go's json.Decoder does: with or
 * without spaces between them.
 */
export interface RequestSplitting {
  /** Adds bytes of the body, which must not change. */
  push(chunk: Uint8Array): void;
  /** The body is complete. */
  end(): void;
  /**
   * The next whole value, or undefined until more is pushed. Throws JsonError with Go's text for
   * broken JSON, also in each later call, and JsonLimitError for a value that is too long.
   */
  next(): Uint8Array | undefined;
  /** Bytes that `next` has not returned yet. */
  readonly bufferedBytes: number;
}

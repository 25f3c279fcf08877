/**
 * The limits of one HTTP/1.1 connection. Every limit has its unit in its name;
 * docs/reference/limits.md lists them.
 */
export interface Http1Limits {
  /** A request's head, from the request line to the empty line; longer ones get 431. */
  readonly maxHeaderListBytes: number;
  /** Header fields of a request; more get 431. */
  readonly maxFields: number;
  /** The trailers of a chunked body; longer ones get 431. */
  readonly maxTrailerBytes: number;
  /** Chunk extensions of one request together; longer ones get 413. */
  readonly maxChunkExtensionBytes: number;
  /** Requests that arrived before the response to an earlier one: beyond, reading stops. */
  readonly maxPipelinedBytes: number;
  /** The rest of a body that is dropped behind the response; beyond, the connection ends. */
  readonly maxDiscardedBytes: number;
  /** Bytes that a request takes by itself, mostly its head; the connection ends beyond. */
  readonly maxHeadBytes: number;
  /** Bytes of requests that are being received or processed; requests beyond are refused. */
  readonly maxHeldBytes: number;
  /** Bytes of responses that wait for the client; the connection is cut off beyond. */
  readonly maxPendingBytes: number;
  /** No further request is begun while more bytes than this wait for the socket. */
  readonly outputTargetBytes: number;
  /** Maximum time of a head from the first byte (of the first: from the connection's start). */
  readonly headTimeoutMs: number;
  /** Maximum time of a request whose response has not begun, from its first byte to its last. */
  readonly requestTimeoutMs: number;
  /** Maximum time between two requests. */
  readonly idleTimeoutMs: number;
  /** Maximum time for the rest of a body behind its response. */
  readonly discardTimeoutMs: number;
  /** Maximum time that responses wait without the socket taking any. */
  readonly sendStallTimeoutMs: number;
}

const KIB = 1024;

/** The limits that do not depend on the server's options. */
export const FIXED_HTTP1_LIMITS = {
  maxFields: 500,
  maxTrailerBytes: 16 * KIB,
  maxChunkExtensionBytes: 4 * KIB,
  maxPipelinedBytes: 64 * KIB,
  maxDiscardedBytes: 256 * KIB,
  requestTimeoutMs: 60_000,
  discardTimeoutMs: 5_000,
} as const;

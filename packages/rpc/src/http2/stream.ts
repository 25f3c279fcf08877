/**
 * One stream of a connection (RFC 9113 section 5), from a request's headers to the end of both
 * sides.
 */
import type { PendingSend } from "./pending.ts";
import type { RequestHead } from "./request-head.ts";

/**
 * Consumes a request's body, and is notified of the end of its stream. Called within the
 * connection's `receive` or `sweep`, never after `aborted`.
 */
export interface StreamConsumer {
  /** Body bytes: bytes[start, end) do not change and may be kept. Never called with none. */
  data(bytes: Uint8Array, start: number, end: number): void;
  /** The body is complete. */
  ended(): void;
  /** The stream ended before its response was complete: reset, in error, or with its connection. */
  aborted(): void;
  /** The bytes waiting to be sent have fallen to stream.drainBytes. */
  drained(): void;
}

export class Http2Stream {
  readonly id: number;
  readonly head: RequestHead;
  /** Set by the acceptor. */
  consumer: StreamConsumer = NO_CONSUMER;

  /** Estimated memory of the stream itself, mostly its header block. */
  headBytes = 0;
  /** The client has ended its side. */
  remoteEnded = false;
  /** Bytes that the client may still send. */
  receiveWindowBytes: number;
  /** Bytes consumed and not yet credited to the client's window. */
  uncreditedBytes = 0;
  /** Body bytes still to come by content-length; -1 if unknown. */
  bodyLeftBytes: number;

  headersSent = false;
  /** The server's side has ended on the wire. */
  localEnded = false;
  /** No longer open: ended on both sides, reset, or aborted. */
  closed = false;
  /** Bytes that the server may still send; below 0 when the client shrank the window. */
  sendWindowBytes: number;
  /** The waiting output; undefined for none. */
  pending: PendingSend | undefined = undefined;
  /** If 0 or more, consumer.drained is called once, as soon as no more bytes than this wait. */
  drainBytes = -1;
  /** In the sender's queue. */
  queued = false;

  constructor(id: number, head: RequestHead, receiveWindowBytes: number, sendWindowBytes: number) {
    this.id = id;
    this.head = head;
    this.receiveWindowBytes = receiveWindowBytes;
    this.sendWindowBytes = sendWindowBytes;
    this.bodyLeftBytes = head.contentLength;
  }

  /** Bytes that wait to be sent. */
  get pendingBytes(): number {
    return this.pending === undefined ? 0 : this.pending.sizeBytes;
  }
}

const NO_CONSUMER: StreamConsumer = {
  data() {},
  ended() {},
  aborted() {},
  drained() {},
};

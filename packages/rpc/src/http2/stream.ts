/**
 * One stream of a connection (RFC 9113 section 5), from a request's headers to the end of both
 * sides.
 */
import type { PendingSend } from "./pending.ts";
import type { RequestHead } from "./request-head.ts";

/**
 * Who takes a request's body and is told how its stream fares. Called within the connection's
 * `receive` or `sweep`, never after `aborted`.
 */
export interface StreamConsumer {
  /** Body bytes: bytes[start, end) may be kept, nobody changes them. Not called for none. */
  data(bytes: Uint8Array, start: number, end: number): void;
  /** The body is complete. */
  ended(): void;
  /**
   * The stream is gone before it was answered to the end: reset, in error, or with its connection.
   */
  aborted(): void;
  /** What waited to be sent has gone below stream.drainBytes. */
  drained(): void;
}

export class Http2Stream {
  readonly id: number;
  readonly head: RequestHead;
  /** Set by whoever accepts the request. */
  consumer: StreamConsumer = NOBODY;

  /** What it takes in memory by itself, about: its header block above all. */
  headBytes = 0;
  /** The client has ended its side. */
  remoteEnded = false;
  /** What the client may still send. */
  receiveWindowBytes: number;
  /** Taken, but not given back to the client's window yet. */
  uncreditedBytes = 0;
  /** What is still to come by content-length; -1 if that is not known. */
  bodyLeftBytes: number;

  headersSent = false;
  /** Our side has ended on the wire. */
  localEnded = false;
  /** Gone from the connection: ended on both sides, reset, or aborted. */
  closed = false;
  /** What we may still send; less than 0 when the client shrank the window. */
  sendWindowBytes: number;
  /** What waits to be sent; undefined for nothing. */
  pending: PendingSend | undefined = undefined;
  /**
   * When this is 0 or more, consumer.drained is called once, as soon as no more than this waits.
   */
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

const NOBODY: StreamConsumer = {
  data() {},
  ended() {},
  aborted() {},
  drained() {},
};

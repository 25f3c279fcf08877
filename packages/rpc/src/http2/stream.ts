/**
 * The streams of a connection (RFC 9113 section 5): one of them from a request's headers to the end
 * of both sides, its output that waits, and the table of all that are open or have just closed.
 */

import { BriefMap } from "@quorate/host";
import { EMPTY } from "@quorate/proto";
import type { FieldList } from "../hpack/hpack.ts";
import type { PieceSource } from "../service.ts";
import { type Output, writeWindowUpdate } from "./output.ts";
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
  #uncreditedBytes = 0;
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

  /**
   * Body bytes were consumed: the other side may send as many more. It hears of it when they are
   * half of its window.
   */
  credit(out: Output, sizeBytes: number, windowBytes: number): void {
    if (this.remoteEnded || this.closed) return;
    this.#uncreditedBytes += sizeBytes;
    if (this.#uncreditedBytes * 2 < windowBytes) return;
    writeWindowUpdate(out, this.id, this.#uncreditedBytes);
    this.receiveWindowBytes += this.#uncreditedBytes;
    this.#uncreditedBytes = 0;
  }
}

const NO_CONSUMER: StreamConsumer = {
  data() {},
  ended() {},
  aborted() {},
  drained() {},
};

/** Sent pieces are dropped once there are this many and they are most of the list. */
const MIN_FORGOTTEN = 64;

/** A piece, or what makes pieces. */
export type SendPiece = Uint8Array | PieceSource;

/** The unsent output of a stream: pieces of the body, then perhaps the end of the server's side. */
export class PendingSend {
  sizeBytes = 0;
  /** How the server's side ends behind the pieces: with these trailers, or plainly. */
  ending: FieldList | "plain" | undefined = undefined;
  #pieces: SendPiece[] = [];
  /** The first of #pieces that was not begun. */
  #next = 0;
  /** The piece that is not taken whole, how much of it is, and what made it. */
  #piece: Uint8Array = EMPTY;
  #offset = 0;
  #source: PieceSource | undefined = undefined;

  /** Adds pieces of so many bytes in total; keeps the list itself if nothing is waiting yet. */
  push(pieces: SendPiece[], sizeBytes: number): void {
    if (this.sizeBytes === 0) {
      this.#pieces = pieces;
      this.#next = 0;
      this.#piece = EMPTY;
      this.#offset = 0;
      this.#source = undefined;
    } else for (let i = 0; i < pieces.length; i++) this.#pieces.push(pieces[i]);
    this.sizeBytes += sizeBytes;
  }

  /** Moves the next n bytes to the output; at least n must be waiting. */
  moveTo(out: Output, n: number): void {
    this.sizeBytes -= n;
    let piece = this.#piece;
    let offset = this.#offset;
    while (n > 0) {
      if (offset === piece.length) {
        piece = this.#take();
        offset = 0;
      }
      const end = Math.min(piece.length, offset + n);
      out.append(piece, offset, end);
      n -= end - offset;
      offset = end;
    }
    this.#piece = offset === piece.length ? EMPTY : piece;
    this.#offset = offset === piece.length ? 0 : offset;
    if (this.#next >= MIN_FORGOTTEN && this.#next * 2 > this.#pieces.length) {
      this.#pieces.copyWithin(0, this.#next);
      this.#pieces.length -= this.#next;
      this.#next = 0;
    }
  }

  /** The next piece, which may be empty. */
  #take(): Uint8Array {
    const made = this.#source?.next();
    if (made !== undefined) return made;
    const piece = this.#pieces[this.#next];
    this.#pieces[this.#next++] = EMPTY;
    if (piece instanceof Uint8Array) {
      this.#source = undefined;
      return piece;
    }
    this.#source = piece;
    return EMPTY;
  }
}

/** Number of streams remembered of each kind; a power of two. */
const REMEMBERED = 128;

/**
 * The latest streams that ended, so that a late frame can be distinguished from a wrong one. Read
 * only for frames of streams that are not open.
 */
class ClosedStreams {
  readonly #ended = new Int32Array(REMEMBERED);
  readonly #cut = new Int32Array(REMEMBERED);
  #endedCount = 0;
  #cutCount = 0;

  /** Remembers a stream that both sides ended, or that the client reset. */
  addEnded(id: number): void {
    this.#ended[this.#endedCount++ & (REMEMBERED - 1)] = id;
  }

  /**
   * Remembers a stream that the server reset; frames that the client sent before it knew may still
   * arrive.
   */
  addCut(id: number): void {
    this.#cut[this.#cutCount++ & (REMEMBERED - 1)] = id;
  }

  wasEnded(id: number): boolean {
    return this.#ended.includes(id);
  }

  wasCut(id: number): boolean {
    return this.#cut.includes(id);
  }
}

/** The streams of one connection: those that are open, and the latest that closed. */
export class StreamTable extends ClosedStreams {
  readonly #open = new BriefMap<number, Http2Stream>();
  /** The highest stream id that the client has used. */
  lastId = 0;

  /** Number of open streams. */
  get size(): number {
    return this.#open.size;
  }

  get(id: number): Http2Stream | undefined {
    return this.#open.get(id);
  }

  values(): Iterable<Http2Stream> {
    return this.#open.values();
  }

  add(stream: Http2Stream): void {
    this.#open.set(stream.id, stream);
  }

  delete(id: number): void {
    this.#open.delete(id);
  }

  /**
   * Whether a stream id is the server's, 0, or one that the client has not used yet ("idle",
   * section 5.1).
   */
  isIdle(id: number): boolean {
    return (id & 1) === 0 || id > this.lastId;
  }
}

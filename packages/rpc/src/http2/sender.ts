/**
 * The sending side of a connection (RFC 9113 section 6.9): headers at once, DATA as far as the
 * client's windows and the socket allow. Waiting streams take turns, one frame each.
 */

import { type FieldList, HpackEncoder } from "../hpack/hpack.ts";
import type { ByteBudget } from "./byte-budget.ts";
import { DEFAULT_MAX_FRAME_BYTES, DEFAULT_WINDOW_BYTES, MAX_WINDOW_BYTES } from "./constants.ts";
import { type Output, writeDataHeader, writeHeaders } from "./output.ts";
import { type Http2Stream, PendingSend, type SendPiece } from "./stream.ts";

/**
 * A frame that the client's window makes shorter than this does not count as progress, or windows
 * opened byte by byte would refill the client's budgets.
 */
const MIN_PROGRESS_BYTES = 1024;

/** The connection, as its sender sees it. */
export interface SenderOwner {
  /** The server's side of the stream has ended on the wire. */
  localEnded(stream: Http2Stream): void;
  /** A frame with content was written. */
  progressed(): void;
}

export class Sender {
  readonly out: Output;
  readonly encoder = new FieldEncoder();
  readonly #outputTargetBytes: number;
  /** Bounds the bytes that wait, of this connection and of all. */
  readonly #budget: ByteBudget;
  readonly #owner: SenderOwner;
  readonly #sendable = new StreamQueue();
  #windowBytes = DEFAULT_WINDOW_BYTES;
  #streamWindowBytes = DEFAULT_WINDOW_BYTES;
  #pumping = false;
  #blocked = false;
  /** Number of streams whose end waits behind pieces, and when one of them last sent something. */
  #finishing = 0;
  #finishProgressMs = 0;
  /** The time of the connection's last `receive` or `sweep`. */
  nowMs = 0;

  constructor(out: Output, outputTargetBytes: number, budget: ByteBudget, owner: SenderOwner) {
    this.out = out;
    this.#outputTargetBytes = outputTargetBytes;
    this.#budget = budget;
    this.#owner = owner;
  }

  /** The initial send window of a stream. */
  get streamWindowBytes(): number {
    return this.#streamWindowBytes;
  }

  /** Sends a header block. @param end ends the server's side */
  headers(stream: Http2Stream, list: FieldList, end: boolean): void {
    if (stream.closed) return;
    writeHeaders(this.out, stream.id, this.encoder.encode(list), end);
    stream.headersSent = true;
    this.#owner.progressed();
    if (end) this.#ended(stream);
  }

  /**
   * Sends body bytes, now or when the windows allow. The pieces must not change any more; the
   * sender keeps the list. False if more would wait than allowed: then nothing was taken, and the
   * caller should end the stream. @param ending ends the server's side behind them
   */
  data(
    stream: Http2Stream,
    pieces: SendPiece[],
    sizeBytes: number,
    ending?: FieldList | "plain",
  ): boolean {
    if (stream.closed) return true;
    if (!this.#budget.take(sizeBytes)) return false;
    if (sizeBytes === 0) {
      if (ending !== undefined) this.finish(stream, ending);
      return true;
    }
    const pending = (stream.pending ??= new PendingSend());
    pending.push(pieces, sizeBytes);
    if (ending !== undefined) this.#endWith(pending, ending);
    this.#offer(stream);
    return true;
  }

  /** Ends the server's side behind the waiting bytes: with trailers, or plainly. */
  finish(stream: Http2Stream, ending: FieldList | "plain"): void {
    if (stream.closed) return;
    if (stream.pending === undefined) {
      this.#writeEnding(stream, ending);
      return;
    }
    this.#endWith(stream.pending, ending);
    this.#offer(stream);
  }

  /**
   * Whether a stream's whole body of so many bytes may be sent at once in one frame, which the
   * caller then writes between the headers and `finished`. Deducts it from the windows.
   */
  takeWindow(stream: Http2Stream, sizeBytes: number): boolean {
    if (
      this.#blocked ||
      stream.pending !== undefined ||
      sizeBytes > DEFAULT_MAX_FRAME_BYTES ||
      sizeBytes > stream.sendWindowBytes ||
      sizeBytes > this.#windowBytes ||
      this.out.sizeBytes >= this.#outputTargetBytes
    ) {
      return false;
    }
    stream.sendWindowBytes -= sizeBytes;
    this.#windowBytes -= sizeBytes;
    return true;
  }

  /** The caller has written the stream's whole response. */
  finished(stream: Http2Stream): void {
    this.#owner.progressed();
    this.#ended(stream);
  }

  /** The stream is gone: drops its waiting bytes. */
  drop(stream: Http2Stream): void {
    const pending = stream.pending;
    if (pending === undefined) return;
    stream.pending = undefined;
    if (pending.ending !== undefined) this.#finishing--;
    this.#budget.give(pending.sizeBytes);
  }

  /** The client opened the connection's window. False if it exceeds the protocol's maximum. */
  openWindow(incrementBytes: number): boolean {
    this.#windowBytes += incrementBytes;
    if (this.#windowBytes > MAX_WINDOW_BYTES) return false;
    this.#pump();
    return true;
  }

  /** The client opened a stream's window. False if it exceeds the protocol's maximum. */
  openStreamWindow(stream: Http2Stream, incrementBytes: number): boolean {
    stream.sendWindowBytes += incrementBytes;
    if (stream.sendWindowBytes > MAX_WINDOW_BYTES) return false;
    if (stream.pending !== undefined) this.#offer(stream);
    return true;
  }

  /**
   * The client changed the windows of all streams (section 6.9.2). False if one exceeds the
   * protocol's maximum.
   */
  setStreamWindow(sizeBytes: number, streams: Iterable<Http2Stream>): boolean {
    const change = sizeBytes - this.#streamWindowBytes;
    this.#streamWindowBytes = sizeBytes;
    if (change === 0) return true;
    for (const stream of streams) {
      stream.sendWindowBytes += change;
      if (stream.sendWindowBytes > MAX_WINDOW_BYTES) return false;
      if (change > 0 && stream.pending !== undefined) this.#sendable.push(stream);
    }
    this.#pump();
    return true;
  }

  /** Blocks or unblocks DATA, for a socket that does not accept more. */
  setBlocked(blocked: boolean): void {
    this.#blocked = blocked;
    this.#pump();
  }

  /** Whether DATA waits only for space in the output. */
  get hasMore(): boolean {
    return this.#sendable.length > 0 && this.#windowBytes > 0 && !this.#blocked;
  }

  /** The output was taken: fills it again. */
  refill(): void {
    this.#pump();
  }

  /** How long finished responses have waited without any of their bytes leaving. */
  stalledMs(nowMs: number): number {
    return this.#finishing === 0 ? 0 : nowMs - this.#finishProgressMs;
  }

  #endWith(pending: PendingSend, ending: FieldList | "plain"): void {
    pending.ending = ending;
    if (this.#finishing++ === 0) this.#finishProgressMs = this.nowMs;
  }

  #offer(stream: Http2Stream): void {
    this.#sendable.push(stream);
    this.#pump();
  }

  #pump(): void {
    if (this.#pumping || this.#blocked) return;
    this.#pumping = true;
    while (this.#windowBytes > 0 && this.out.sizeBytes < this.#outputTargetBytes) {
      const stream = this.#sendable.shift();
      if (stream === undefined) break;
      // A stream without data, or without a window, leaves the queue.
      const pending = stream.pending;
      if (pending === undefined || stream.sendWindowBytes <= 0) continue;
      this.#frame(
        stream,
        pending,
        Math.min(
          pending.sizeBytes,
          DEFAULT_MAX_FRAME_BYTES,
          stream.sendWindowBytes,
          this.#windowBytes,
        ),
      );
    }
    this.#pumping = false;
  }

  /** Sends one frame of a stream's waiting data, and its end if that is next. */
  #frame(stream: Http2Stream, pending: PendingSend, size: number): void {
    const last = size === pending.sizeBytes;
    const ending = last ? pending.ending : undefined;
    if (pending.ending !== undefined) this.#finishProgressMs = this.nowMs;
    writeDataHeader(this.out, stream.id, size, ending === "plain");
    pending.moveTo(this.out, size);
    stream.sendWindowBytes -= size;
    this.#windowBytes -= size;
    this.#budget.give(size);
    if (last || size >= MIN_PROGRESS_BYTES) this.#owner.progressed();
    if (!last) this.#sendable.push(stream);
    else {
      stream.pending = undefined;
      if (ending !== undefined) {
        this.#finishing--;
        if (ending === "plain") this.#ended(stream);
        else this.#writeEnding(stream, ending);
      }
    }
    if (stream.drainBytes >= 0 && stream.pendingBytes <= stream.drainBytes && !stream.closed) {
      stream.drainBytes = -1;
      stream.consumer.drained();
    }
  }

  #writeEnding(stream: Http2Stream, ending: FieldList | "plain"): void {
    if (ending === "plain") writeDataHeader(this.out, stream.id, 0, true);
    else writeHeaders(this.out, stream.id, this.encoder.encode(ending), true);
    this.#owner.progressed();
    this.#ended(stream);
  }

  #ended(stream: Http2Stream): void {
    stream.localEnded = true;
    this.#owner.localEnded(stream);
  }
}

/**
 * Encodes the header blocks of responses. Nearly all of them are one of a few constant lists: such
 * a list is encoded once, and again only when the table its bytes refer to has changed. With the
 * two fields of every gRPC response in the client's table, headers are two bytes and trailers one.
 */
export class FieldEncoder {
  readonly #encoder = new HpackEncoder();
  readonly #blocks = new Map<FieldList, Uint8Array>();
  #version = this.#encoder.tableVersion;

  /** Applies the client's SETTINGS_HEADER_TABLE_SIZE. */
  limitTable(maxTableBytes: number): void {
    this.#encoder.limitTable(maxTableBytes);
    this.#forgetStale();
  }

  /** The block of a list. Blocks must be sent in the order in which they were encoded. */
  encode(list: FieldList): Uint8Array {
    const known = this.#blocks.get(list);
    if (known !== undefined) return known;
    const block = this.#encoder.encode(list.fields);
    // A block that changed the table would have another meaning the next time.
    if (!this.#forgetStale() && list.constant) this.#blocks.set(list, block);
    return block;
  }

  #forgetStale(): boolean {
    if (this.#version === this.#encoder.tableVersion) return false;
    this.#version = this.#encoder.tableVersion;
    this.#blocks.clear();
    return true;
  }
}

const MIN_FORGOTTEN = 64;

/** A queue of streams that take turns. */
class StreamQueue {
  #streams: (Http2Stream | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#streams.length - this.#head;
  }

  /** Appends a stream, if it is not in the queue. */
  push(stream: Http2Stream): void {
    if (stream.queued) return;
    stream.queued = true;
    this.#streams.push(stream);
  }

  shift(): Http2Stream | undefined {
    if (this.#head === this.#streams.length) return undefined;
    const stream = this.#streams[this.#head]!;
    this.#streams[this.#head++] = undefined;
    stream.queued = false;
    if (this.#head === this.#streams.length) {
      this.#streams.length = 0;
      this.#head = 0;
    } else if (this.#head >= MIN_FORGOTTEN && this.#head * 2 > this.#streams.length) {
      this.#streams.splice(0, this.#head);
      this.#head = 0;
    }
    return stream;
  }
}

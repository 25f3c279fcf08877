/**
 * The sending side of a connection: headers at once, DATA as far as the client's windows and the
 * socket allow, the rest in turn, one frame a stream (RFC 9113 section 6.9).
 */
import type { ByteBudget } from "./byte-budget.ts";
import { DEFAULT_MAX_FRAME_BYTES, DEFAULT_WINDOW_BYTES, MAX_WINDOW_BYTES } from "./constants.ts";
import { FieldEncoder, type FieldList } from "./field-encoder.ts";
import { writeDataHeader, writeHeaders } from "./frames.ts";
import type { Output } from "./output.ts";
import { PendingSend } from "./pending.ts";
import type { Http2Stream } from "./stream.ts";
import { StreamQueue } from "./stream-queue.ts";

/**
 * A frame cut shorter than this by the client's window is no progress: windows opened byte by byte
 * would pay for themselves.
 */
const MIN_PROGRESS_BYTES = 1024;

/** What the sender tells its connection. */
export interface SenderOwner {
  /** Our side of the stream has ended on the wire. */
  localEnded(stream: Http2Stream): void;
  /** A frame that moves something was written. */
  progressed(): void;
}

export class Sender {
  readonly out: Output;
  readonly encoder = new FieldEncoder();
  readonly #outputTargetBytes: number;
  /** What may wait, for this connection and for all. */
  readonly #budget: ByteBudget;
  readonly #owner: SenderOwner;
  readonly #sendable = new StreamQueue();
  #windowBytes = DEFAULT_WINDOW_BYTES;
  #streamWindowBytes = DEFAULT_WINDOW_BYTES;
  #pumping = false;
  #blocked = false;
  /** Streams whose end waits behind pieces, and when one of them last sent something. */
  #finishing = 0;
  #finishProgressMs = 0;
  /** The present time, as far as the connection knows it. */
  nowMs = 0;

  constructor(out: Output, outputTargetBytes: number, budget: ByteBudget, owner: SenderOwner) {
    this.out = out;
    this.#outputTargetBytes = outputTargetBytes;
    this.#budget = budget;
    this.#owner = owner;
  }

  /** The window that a new stream begins with. */
  get streamWindowBytes(): number {
    return this.#streamWindowBytes;
  }

  /** Sends a header block. @param end ends our side. */
  headers(stream: Http2Stream, list: FieldList, end: boolean): void {
    if (stream.closed) return;
    writeHeaders(this.out, stream.id, this.encoder.encode(list), end);
    stream.headersSent = true;
    this.#owner.progressed();
    if (end) this.#ended(stream);
  }

  /**
   * Sends body bytes, now or when they can leave. Pieces must not change any more, and the list is
   * the sender's. False if that would be more than may wait: then nothing was taken, and the stream
   * is best ended. @param ending ends our side behind them.
   */
  data(
    stream: Http2Stream,
    pieces: Uint8Array[],
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

  /** Ends our side behind what waits: with trailers, or plainly. */
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
   * Whether a stream's whole body of so many bytes may leave at once in one frame, which the caller
   * then writes between the headers and `finished`. Takes it off the windows.
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

  /** The caller has written the stream's whole answer. */
  finished(stream: Http2Stream): void {
    this.#owner.progressed();
    this.#ended(stream);
  }

  /** The stream is gone: forgets what waits. */
  drop(stream: Http2Stream): void {
    const pending = stream.pending;
    if (pending === undefined) return;
    stream.pending = undefined;
    if (pending.ending !== undefined) this.#finishing--;
    this.#budget.give(pending.sizeBytes);
  }

  /** The client opened the connection's window. False if it is larger than there are. */
  openWindow(incrementBytes: number): boolean {
    this.#windowBytes += incrementBytes;
    if (this.#windowBytes > MAX_WINDOW_BYTES) return false;
    this.#pump();
    return true;
  }

  /** The client opened a stream's window. False if it is larger than there are. */
  openStreamWindow(stream: Http2Stream, incrementBytes: number): boolean {
    stream.sendWindowBytes += incrementBytes;
    if (stream.sendWindowBytes > MAX_WINDOW_BYTES) return false;
    if (stream.pending !== undefined) this.#offer(stream);
    return true;
  }

  /**
   * The client changed the windows of all streams (section 6.9.2). False if one is larger than
   * there are.
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

  /** Holds DATA back while the socket does not take what it has been given. */
  setBlocked(blocked: boolean): void {
    this.#blocked = blocked;
    this.#pump();
  }

  /** Whether DATA waits for nothing but room in the output. */
  get hasMore(): boolean {
    return this.#sendable.length > 0 && this.#windowBytes > 0 && !this.#blocked;
  }

  /** The output was taken: fills it again. */
  refill(): void {
    this.#pump();
  }

  /** How long finished answers have waited without any of their bytes leaving. */
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
      // One that has nothing left, or waits for its own window, leaves the queue.
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

  /** Sends one frame of what waits on a stream, and its end if that is next. */
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

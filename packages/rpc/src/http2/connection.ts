/**
 * The server's side of one HTTP/2 connection (RFC 9113), without its socket: bytes come in by
 * `receive` and go out by `takeOutput`, requests go to an acceptor, and the time is an argument.
 *
 *   receive -> FrameSplitter -> frame handlers -> RequestAcceptor, StreamConsumer
 *   sweep (every second or so) -> timeouts                           |
 *   takeOutput <- Output <- Sender <---------------------------------+
 *
 * The frames that carry requests are taken here: HEADERS, and DATA with the flow control of the
 * receiving side (section 6.9). The handlers of other frames are in control-frames.ts; both work on
 * the base, connection-state.ts.
 * A rule that the client breaks ends its stream (RST_STREAM) or the connection (GOAWAY; then
 * `ending` is true, and the owner closes the socket when the output has been sent).
 */
import { concat, http2, readU32BE } from "@quorate/proto";
import { MAX_FIELD_BYTES } from "../field-limits.ts";
import { HpackError } from "../hpack/errors.ts";
import type { HeaderField } from "../hpack/header-field.ts";
import { DEFAULT_TABLE_BYTES, HpackDecoder } from "../hpack/hpack.ts";
import { type ConnectionOwner, ConnectionState } from "./connection-state.ts";
import {
  DEFAULT_MAX_FRAME_BYTES,
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  Flag,
  FrameType,
  MAX_STREAM_ID,
  PREFACE,
  Setting,
} from "./constants.ts";
import {
  DRAIN_PING,
  onGoAway,
  onPing,
  onPriority,
  onRstStream,
  onSettings,
  onWindowUpdate,
} from "./control-frames.ts";
import { HeaderBlock } from "./header-block.ts";
import {
  writeGoAway,
  writePing,
  writeRstStream,
  writeSettings,
  writeWindowUpdate,
} from "./output.ts";
import type { Peer } from "./peer.ts";
import { malformedTrailers, parseRequestHead, type RequestHead } from "./request-head.ts";
import type { Http2Shared } from "./shared.ts";
import { Http2Stream } from "./stream.ts";

export type { ConnectionOwner } from "./connection-state.ts";

/** Takes requests. */
export interface RequestAcceptor {
  /**
   * A request's headers are complete: sets stream.consumer, or responds at once.
   * @param ended the request has no body; the consumer's `ended` is not called then.
   */
  accept(connection: Http2Connection, stream: Http2Stream, ended: boolean): void;
  /**
   * The header list is over its limit, and `stream.head` has only its first fields. Responds at
   * once.
   */
  refuseTooLarge(connection: Http2Connection, stream: Http2Stream): void;
}

/** The payload of a keep-alive PING. */
const ALIVE_PING = new Uint8Array(8);

/**
 * Requests that a connection begins in one turn, some milliseconds of work: a client can write
 * thousands into one segment. So many bytes of their headers count as one more.
 */
export const MAX_TURN_WORK = 128;
export const HEADER_BYTES_A_WORK = 256;

/** Estimates of memory: an open stream besides its header block, and a field besides its bytes. */
const STREAM_BYTES = 512;
const FIELD_BYTES = 32;

export class Http2Connection extends ConnectionState implements http2.FrameHandler {
  readonly #headers: HeaderFrames;
  readonly #splitter = new http2.FrameSplitter(this);
  readonly #openedMs: number;
  /** How much of the preface has arrived, and whether the SETTINGS behind it have. */
  #prefaceBytes = 0;
  #settled = false;
  /** When the latest frame that did not arrive in one chunk began. */
  #partSinceMs = 0;
  #partsBegun = 0;
  /**
   * Of the request bytes that are held, those that services process: they become free without the
   * client's doing.
   */
  #workingBytes = 0;
  /** What the client may still send on the connection. */
  #windowBytes: number;
  /** What was received and not yet credited to the client. */
  #uncreditedBytes = 0;
  /** What it has been sent and left for the next turn. */
  #rest: Uint8Array | undefined;

  /** @param nowMs the clock's monotonic milliseconds. */
  constructor(
    shared: Http2Shared,
    acceptor: RequestAcceptor,
    owner: ConnectionOwner,
    peer: Peer,
    nowMs: number,
  ) {
    super(shared, owner, peer, nowMs);
    const { limits } = this;
    this.#openedMs = nowMs;
    writeSettings(this.out, [
      [Setting.MaxConcurrentStreams, limits.maxConcurrentStreams],
      [Setting.InitialWindowSize, limits.streamWindowBytes],
      [Setting.MaxHeaderListSize, limits.maxHeaderListBytes],
    ]);
    this.#headers = new HeaderFrames(this, acceptor);
    this.#windowBytes = Math.max(limits.connectionWindowBytes, DEFAULT_WINDOW_BYTES);
    const more = this.#windowBytes - DEFAULT_WINDOW_BYTES;
    if (more > 0) writeWindowUpdate(this.out, 0, more);
    this.touched();
  }

  /** Takes bytes from the client; the chunk must not change any more. */
  receive(chunk: Uint8Array, nowMs: number): void {
    if (this.ending) return;
    this.setNow(nowMs);
    this.keepAlive.read(nowMs);
    let at = 0;
    while (this.#prefaceBytes < PREFACE.length) {
      if (at === chunk.length) return;
      if (chunk[at++] !== PREFACE.charCodeAt(this.#prefaceBytes++)) {
        this.fail(ErrorCode.ProtocolError, "bad preface");
        return;
      }
    }
    // Only where the owner gives it more while it is held back.
    if (this.#rest !== undefined) this.#rest = concat([this.#rest, chunk.subarray(at)]);
    else this.#take(chunk, at);
  }

  /** Goes on with what it was sent before, in a turn after the one in which it was held back. */
  goOn(nowMs: number): void {
    const rest = this.#rest;
    if (rest === undefined || this.ending) return;
    this.#rest = undefined;
    this.setNow(nowMs);
    this.#take(rest, 0);
  }

  #take(chunk: Uint8Array, at: number): void {
    const { nowMs } = this;
    this.#headers.work = 0;
    const end = this.#splitter.push(chunk, at);
    if (end < chunk.length && !this.ending) {
      this.#rest = chunk.subarray(end);
      this.owner.heldBack();
    }
    if (this.#splitter.partsBegun !== this.#partsBegun) {
      this.#partsBegun = this.#splitter.partsBegun;
      this.#partSinceMs = nowMs;
    }
    this.touched();
  }

  /** Enforces timeouts; to be called about once a second. */
  sweep(nowMs: number): void {
    if (this.ending) return;
    this.setNow(nowMs);
    const { limits, counters } = this;
    if (!this.#settled && nowMs - this.#openedMs >= limits.prefaceTimeoutMs) {
      counters.prefaceTimeouts++;
      this.end(ErrorCode.ProtocolError, "no preface in time");
    } else if (nowMs - this.#incompleteSinceMs() >= limits.frameTimeoutMs) {
      counters.frameTimeouts++;
      this.end(ErrorCode.ProtocolError, "a frame did not end in time");
    } else if (this.sender.stalledMs(nowMs) >= limits.sendStallTimeoutMs) {
      counters.sendStalls++;
      this.end(ErrorCode.EnhanceYourCalm, "responses are not read");
    } else if (
      this.drainingMs !== undefined &&
      !this.drained &&
      nowMs - this.drainingMs >= limits.drainTimeoutMs
    ) {
      this.finishDrain();
    } else this.#sweepPings(nowMs);
    if (this.streams.size === 0) this.out.shrink();
    this.touched();
  }

  /**
   * Takes no more requests, and ends when the open ones have. No request in flight is lost (section
   * 6.8).
   */
  drain(nowMs: number): void {
    if (this.ending || this.drainingMs !== undefined) return;
    this.setNow(nowMs);
    this.drainingMs = nowMs;
    writeGoAway(this.out, MAX_STREAM_ID, ErrorCode.NoError, "");
    writePing(this.out, DRAIN_PING, 0, false);
    this.touched();
  }

  /** Ends the connection because another client needs its slot. */
  shed(nowMs: number): void {
    if (this.ending) return;
    this.setNow(nowMs);
    this.counters.shedConnections++;
    if (this.streams.size === 0)
      this.end(ErrorCode.NoError, "too many connections, and this one is idle");
    else this.end(ErrorCode.EnhanceYourCalm, "too many connections of this client");
  }

  /** @internal Called by the splitter. */
  frame(
    bytes: Uint8Array,
    start: number,
    length: number,
    type: number,
    flags: number,
    streamId: number,
  ): boolean {
    if (this.block !== undefined && type !== FrameType.Continuation) {
      return this.fail(ErrorCode.ProtocolError, "a header block is interrupted");
    }
    if (!this.#settled) {
      if (type !== FrameType.Settings || (flags & Flag.Ack) !== 0)
        return this.fail(ErrorCode.ProtocolError, "no SETTINGS behind the preface");
      this.#settled = true;
      this.owner.settled();
      if (this.ending) return false;
    }
    switch (type) {
      case FrameType.Data:
        return this.#data(bytes, start, length, flags, streamId);
      case FrameType.Headers:
        return (
          this.#headers.headers(bytes, start, length, flags, streamId) && this.#headers.hasTurn
        );
      case FrameType.Priority:
        return onPriority(this, bytes, start, length, streamId);
      case FrameType.RstStream:
        return onRstStream(this, length, streamId);
      case FrameType.Settings:
        return onSettings(this, bytes, start, length, flags, streamId);
      case FrameType.PushPromise:
        return this.fail(ErrorCode.ProtocolError, "clients do not push");
      case FrameType.Ping:
        return onPing(this, bytes, start, length, flags, streamId);
      case FrameType.GoAway:
        return onGoAway(this, length, streamId);
      case FrameType.WindowUpdate:
        return onWindowUpdate(this, bytes, start, length, streamId);
      case FrameType.Continuation:
        return (
          this.#headers.continuation(bytes, start, length, flags, streamId) && this.#headers.hasTurn
        );
      default:
        // Section 5.5: unknown types are ignored.
        return this.idle(1);
    }
  }

  /** @internal Called by the splitter. */
  frameTooLong(_length: number, _type: number, _streamId: number): void {
    this.fail(ErrorCode.FrameSizeError, `a frame is longer than ${DEFAULT_MAX_FRAME_BYTES}`);
  }

  /** DATA (section 6.1). */
  #data(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    if (this.streams.isIdle(streamId))
      return this.fail(ErrorCode.ProtocolError, "DATA on an idle stream");
    // All of the payload counts, padding too (section 6.9.1).
    this.#windowBytes -= length;
    if (this.#windowBytes < 0)
      return this.fail(ErrorCode.FlowControlError, "more DATA than the connection's window allows");
    this.#creditConnection(length);
    let from = start;
    let to = start + length;
    if ((flags & Flag.Padded) !== 0) {
      if (length === 0) return this.fail(ErrorCode.FrameSizeError, "padded DATA is empty");
      from++;
      to -= bytes[start];
      if (to < from) return this.fail(ErrorCode.ProtocolError, "padding is longer than its frame");
    }
    const stream = this.streams.get(streamId);
    if (stream === undefined) {
      if (!this.streams.wasCut(streamId))
        writeRstStream(this.out, streamId, ErrorCode.StreamClosed);
      // DATA that was in flight when the server reset the stream is not the client's fault.
      return this.idle(1);
    }
    return this.#body(stream, bytes, from, to, length, (flags & Flag.EndStream) !== 0);
  }

  /** Body bytes[from, to) of an open stream. @param length the whole payload, with padding */
  #body(
    stream: Http2Stream,
    bytes: Uint8Array,
    from: number,
    to: number,
    length: number,
    end: boolean,
  ): boolean {
    if (stream.remoteEnded) return this.streamError(stream, ErrorCode.StreamClosed);
    stream.receiveWindowBytes -= length;
    if (stream.receiveWindowBytes < 0) return this.streamError(stream, ErrorCode.FlowControlError);
    const size = to - from;
    if (stream.bodyLeftBytes >= 0) {
      stream.bodyLeftBytes -= size;
      if (stream.bodyLeftBytes < 0 || (end && stream.bodyLeftBytes > 0)) {
        return this.streamError(stream, ErrorCode.ProtocolError);
      }
    }
    if (end) stream.remoteEnded = true;
    else {
      if (size === 0 && !this.idle(1)) return false;
      if (size < length) this.credit(stream, length - size);
    }
    if (size > 0) stream.consumer.data(bytes, from, to);
    if (end && !stream.closed) stream.consumer.ended();
    return !this.ending;
  }

  /** Body bytes of the stream were consumed: the client may send as many more. */
  credit(stream: Http2Stream, sizeBytes: number): void {
    stream.credit(this.out, sizeBytes, this.limits.streamWindowBytes);
  }

  /**
   * A service began, or with a negative size ended, to process a request that holds so many bytes.
   */
  working(sizeBytes: number): void {
    this.#workingBytes += sizeBytes;
    if (sizeBytes < 0 && !this.ending) this.#creditConnection(0);
  }

  /**
   * Credits the connection's window as soon as bytes arrive, so that no stream blocks another; the
   * budget `held` bounds the memory. The client waits only while that budget is more than half used
   * and a service is processing a request: then there is something to wait for. Requests that are
   * still arriving must not wait for each other.
   */
  #creditConnection(sizeBytes: number): void {
    this.#uncreditedBytes += sizeBytes;
    if (this.#uncreditedBytes * 2 < this.limits.connectionWindowBytes) return;
    if (this.#workingBytes > 0 && this.held.isHigh) return;
    writeWindowUpdate(this.out, 0, this.#uncreditedBytes);
    this.#windowBytes += this.#uncreditedBytes;
    this.#uncreditedBytes = 0;
  }

  #sweepPings(nowMs: number): void {
    const due = this.keepAlive.due(nowMs);
    if (due === "ping") writePing(this.out, ALIVE_PING, 0, false);
    else if (due === "lost") {
      this.counters.keepAliveTimeouts++;
      this.end(ErrorCode.NoError, "no acknowledgement of a ping");
    }
  }

  /** When the frame or header block began that is not complete yet; infinity if there is none. */
  #incompleteSinceMs(): number {
    if (this.block !== undefined) return this.block.begunMs;
    return this.#splitter.midFrame ? this.#partSinceMs : Number.POSITIVE_INFINITY;
  }
}

/**
 * HEADERS and CONTINUATION (sections 6.2 and 6.10): collects a header block, decodes it, and opens
 * a stream or ends one with trailers.
 */
class HeaderFrames {
  readonly #connection: Http2Connection;
  readonly #acceptor: RequestAcceptor;
  readonly #decoder: HpackDecoder;
  readonly #heads = new HeadCache();
  /** What was done for requests in this turn. */
  work = 0;

  constructor(connection: Http2Connection, acceptor: RequestAcceptor) {
    this.#connection = connection;
    this.#acceptor = acceptor;
    this.#decoder = new HpackDecoder(DEFAULT_TABLE_BYTES, connection.limits.maxHeaderListBytes);
  }

  /** Whether more requests may come in this turn. */
  get hasTurn(): boolean {
    return this.work < MAX_TURN_WORK;
  }

  headers(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    const connection = this.#connection;
    if ((streamId & 1) === 0)
      return connection.fail(ErrorCode.ProtocolError, "HEADERS on a stream that is not a client's");
    let from = start;
    let to = start + length;
    if ((flags & Flag.Padded) !== 0) {
      if (length === 0)
        return connection.fail(ErrorCode.FrameSizeError, "padded HEADERS are empty");
      to -= bytes[from++];
    }
    let dependsOnItself = false;
    if ((flags & Flag.Priority) !== 0) {
      if (from + 5 > start + length)
        return connection.fail(
          ErrorCode.FrameSizeError,
          "HEADERS are too short for their priority",
        );
      dependsOnItself = (readU32BE(bytes, from) & MAX_STREAM_ID) === streamId;
      from += 5;
    }
    if (to < from)
      return connection.fail(ErrorCode.ProtocolError, "padding is longer than its frame");
    const endStream = (flags & Flag.EndStream) !== 0;
    if ((flags & Flag.EndHeaders) !== 0)
      return this.#complete(streamId, bytes, from, to, endStream, dependsOnItself);
    connection.block = new HeaderBlock(streamId, endStream, dependsOnItself, connection.nowMs);
    connection.block.append(bytes, from, to);
    return true;
  }

  continuation(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    const connection = this.#connection;
    const block = connection.block;
    if (block === undefined || block.streamId !== streamId) {
      return connection.fail(ErrorCode.ProtocolError, "CONTINUATION without an open header block");
    }
    block.append(bytes, start, start + length);
    const { maxContinuationFrames, maxHeaderBlockBytes } = connection.limits;
    if (block.frames > maxContinuationFrames + 1 || block.sizeBytes > maxHeaderBlockBytes) {
      connection.counters.headerBlockFloods++;
      return connection.end(ErrorCode.EnhanceYourCalm, "a header block is too long");
    }
    if ((flags & Flag.EndHeaders) === 0) return true;
    connection.block = undefined;
    const whole = block.join();
    return this.#complete(streamId, whole, 0, whole.length, block.endStream, block.dependsOnItself);
  }

  /** A whole header block: a request, or the trailers of one. */
  #complete(
    streamId: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    endStream: boolean,
    dependsOnItself: boolean,
  ): boolean {
    const connection = this.#connection;
    this.work += 1 + (end - start) / HEADER_BYTES_A_WORK;
    if (streamId <= connection.streams.lastId)
      return this.#trailers(streamId, bytes, start, end, endStream);
    connection.streams.lastId = streamId;
    const decoder = this.#decoder;
    const version = decoder.tableVersion;
    let head: RequestHead | string | undefined = this.#heads.find(bytes, start, end, version);
    let truncated = false;
    if (head === undefined) {
      const fields = this.#decode(bytes, start, end);
      if (fields === undefined) return false;
      head = parseRequestHead(fields);
      truncated = decoder.truncated || fields.some(isTooLong);
      const isRepeatable =
        decoder.tableVersion === version && !truncated && typeof head !== "string";
      if (isRepeatable) this.#heads.add(bytes, start, end, version, head as RequestHead);
    }
    if (typeof head === "string" || dependsOnItself)
      return connection.rejectFrame(streamId, ErrorCode.ProtocolError);
    if (
      connection.drained ||
      connection.streams.size + connection.lingeringCalls >= connection.limits.maxConcurrentStreams
    ) {
      connection.counters.refusedStreams++;
      return connection.refuseStream(streamId);
    }
    if (endStream && head.contentLength > 0)
      return connection.rejectFrame(streamId, ErrorCode.ProtocolError);
    return this.#open(streamId, head, end - start, endStream, truncated);
  }

  #open(
    streamId: number,
    head: RequestHead,
    blockBytes: number,
    ended: boolean,
    truncated: boolean,
  ): boolean {
    const connection = this.#connection;
    const headBytes = STREAM_BYTES + blockBytes + head.fields.length * FIELD_BYTES;
    if (!connection.headBudget.take(headBytes)) {
      connection.counters.headBytesRefusals++;
      return connection.refuseStream(streamId);
    }
    const stream = new Http2Stream(
      streamId,
      head,
      connection.limits.streamWindowBytes,
      connection.sender.streamWindowBytes,
    );
    stream.remoteEnded = ended;
    stream.headBytes = headBytes;
    connection.streams.add(stream);
    connection.counters.streams++;
    connection.counters.openStreams++;
    if (truncated) {
      connection.counters.headerListsTooLarge++;
      this.#acceptor.refuseTooLarge(connection, stream);
    } else this.#acceptor.accept(connection, stream, ended);
    return !connection.ending;
  }

  #trailers(
    streamId: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    endStream: boolean,
  ): boolean {
    const connection = this.#connection;
    const fields = this.#decode(bytes, start, end);
    if (fields === undefined) return false;
    const stream = connection.streams.get(streamId);
    if (stream === undefined) {
      if (connection.streams.wasCut(streamId)) return connection.idle(1);
      // Streams open in rising order, so one that was passed over can never be opened (section
      // 5.1.1).
      const known = connection.streams.wasEnded(streamId);
      return connection.fail(
        known ? ErrorCode.StreamClosed : ErrorCode.ProtocolError,
        "HEADERS on a closed stream",
      );
    }
    if (stream.remoteEnded) return connection.streamError(stream, ErrorCode.StreamClosed);
    if (!endStream || malformedTrailers(fields) !== undefined || stream.bodyLeftBytes > 0) {
      return connection.streamError(stream, ErrorCode.ProtocolError);
    }
    stream.remoteEnded = true;
    stream.consumer.ended();
    return !connection.ending;
  }

  #decode(bytes: Uint8Array, start: number, end: number): HeaderField[] | undefined {
    try {
      return this.#decoder.decode(bytes, start, end);
    } catch (error) {
      if (!(error instanceof HpackError)) throw error;
      this.#connection.counters.compressionErrors++;
      this.#connection.fail(ErrorCode.CompressionError, error.message);
      return undefined;
    }
  }
}

function isTooLong({ name, value }: HeaderField): boolean {
  return name.length + value.length > MAX_FIELD_BYTES;
}

/** Number of cached heads. */
const ENTRIES = 4;
/** Larger blocks are not cached. */
const MAX_BLOCK_BYTES = 96;

interface Entry {
  readonly block: Uint8Array;
  readonly length: number;
  readonly tableVersion: number;
  readonly head: RequestHead;
}

/**
 * Caches the heads of a connection's latest requests by their header blocks. A client that repeats
 * one kind of call sends the same few bytes each time, once its fields are in the dynamic table.
 * The block decodes to the same head as long as the table does not change.
 */
class HeadCache {
  readonly #entries: Entry[] = [];
  #next = 0;

  /** The head of the block bytes[start, end) with the current table, if it is cached. */
  find(
    bytes: Uint8Array,
    start: number,
    end: number,
    tableVersion: number,
  ): RequestHead | undefined {
    const length = end - start;
    for (let i = 0; i < this.#entries.length; i++) {
      const entry = this.#entries[i];
      if (entry.length !== length || entry.tableVersion !== tableVersion) continue;
      const block = entry.block;
      let at = 0;
      while (at < length && block[at] === bytes[start + at]) at++;
      if (at === length) return entry.head;
    }
    return undefined;
  }

  /** Caches the head of a block that did not change the table. */
  add(
    bytes: Uint8Array,
    start: number,
    end: number,
    tableVersion: number,
    head: RequestHead,
  ): void {
    const length = end - start;
    if (length > MAX_BLOCK_BYTES) return;
    this.#entries[this.#next] = {
      block: new Uint8Array(bytes.subarray(start, end)),
      length,
      tableVersion,
      head,
    };
    this.#next = (this.#next + 1) % ENTRIES;
  }
}

/**
 * The server's side of one HTTP/2 connection (RFC 9113), without its socket: bytes in by `receive`,
 * bytes out by `takeOutput`, requests to an acceptor, time as an argument.
 *
 *   receive -> FrameSplitter -> frame handlers -> RequestAcceptor, StreamConsumer
 *   sweep (now and then) -> timeouts                                 |
 *   takeOutput <- Output <- Sender <---------------------------------+
 *
 * A rule that the client breaks ends its stream (RST_STREAM) or the connection (GOAWAY, then
 * `ending` is true and the owner closes the socket when the output has left).
 */
import { HpackDecoder } from "../hpack/decoder.ts";
import { DEFAULT_TABLE_BYTES } from "../hpack/encoder.ts";
import { HpackError } from "../hpack/errors.ts";
import type { HeaderField } from "../hpack/header-field.ts";
import type { ByteBudget } from "./byte-budget.ts";
import { ClosedStreams } from "./closed-streams.ts";
import {
  DEFAULT_MAX_FRAME_BYTES,
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  Flag,
  FrameType,
  LARGEST_MAX_FRAME_BYTES,
  MAX_STREAM_ID,
  MAX_WINDOW_BYTES,
  PREFACE,
  Setting,
} from "./constants.ts";
import type { EngineCounters } from "./counters.ts";
import { type FrameHandler, FrameSplitter } from "./frame-splitter.ts";
import {
  writeGoAway,
  writePing,
  writeRstStream,
  writeSettings,
  writeSettingsAck,
  writeWindowUpdate,
} from "./frames.ts";
import { HeadCache } from "./head-cache.ts";
import { HeaderBlock } from "./header-block.ts";
import { KeepAlive } from "./keep-alive.ts";
import type { Http2Limits } from "./limits.ts";
import { Output } from "./output.ts";
import { clientOf, type Peer } from "./peer.ts";
import { malformedTrailers, parseRequestHead, type RequestHead } from "./request-head.ts";
import { Sender, type SenderOwner } from "./sender.ts";
import type { Http2Shared } from "./shared.ts";
import { Http2Stream } from "./stream.ts";
import { TokenBucket } from "./token-bucket.ts";

/** Takes requests. */
export interface RequestAcceptor {
  /**
   * A request's headers have come; sets stream.consumer, or answers right away.
   * @param ended whether there is no body. The consumer is not told of the end again.
   */
  accept(connection: Http2Connection, stream: Http2Stream, ended: boolean): void;
  /**
   * The request's fields are longer than they may be, and `stream.head` has only the first of them.
   * Answers right away.
   */
  refuseTooLarge(connection: Http2Connection, stream: Http2Stream): void;
}

/** What a connection tells whoever moves its bytes. */
export interface ConnectionOwner {
  /**
   * There is output where there was none, or the connection began to end. Called again only after
   * takeOutput.
   */
  wake(): void;
  /** The client's preface and first SETTINGS are complete. Called once. */
  settled(): void;
}

/**
 * What an open stream takes in memory, about, besides its header block; and what each of its fields
 * takes besides its bytes.
 */
const STREAM_BYTES = 512;
const FIELD_BYTES = 32;
/** What we ping with: to see whether the client is alive, and whether it has received a GOAWAY. */
const ALIVE_PING = new Uint8Array(8);
const DRAIN_PING = Uint8Array.of(0x64, 0x72, 0x61, 0x69, 0x6e, 0, 0, 1);

export class Http2Connection implements FrameHandler, SenderOwner {
  readonly peer: Peer;
  /** The server's, for all connections. */
  readonly counters: EngineCounters;
  readonly out: Output;
  readonly sender: Sender;
  /** Bytes of requests that are being received or worked on. */
  readonly held: ByteBudget;
  readonly #headBudget: ByteBudget;
  readonly #pendingBudget: ByteBudget;
  /**
   * Those of them that services are working on: they will be free again without the client's doing.
   */
  #workingBytes = 0;
  /**
   * Calls that are worked on although their stream is gone. They count as streams, or a reset would
   * be a way around their bound.
   */
  lingeringCalls = 0;
  /**
   * True once nothing more will be read or begun: the output that is left should be sent, and the
   * socket closed.
   */
  ending = false;
  /** Monotonic milliseconds, as of the last `receive` or `sweep`. */
  nowMs: number;
  readonly #limits: Http2Limits;
  readonly #acceptor: RequestAcceptor;
  readonly #owner: ConnectionOwner;
  readonly #splitter = new FrameSplitter(this);
  readonly #decoder: HpackDecoder;
  readonly #heads = new HeadCache();
  readonly #streams = new Map<number, Http2Stream>();
  readonly #closed = new ClosedStreams();
  readonly #keepAlive: KeepAlive;
  readonly #idleFrames: TokenBucket;
  readonly #resets: TokenBucket;
  readonly #openedMs: number;
  /** The header block that CONTINUATION frames are to complete. */
  #block: HeaderBlock | undefined;
  /** How much of the preface has come, and whether the SETTINGS behind it have. */
  #prefaceBytes = 0;
  #settled = false;
  #lastStreamId = 0;
  #idleSinceMs: number;
  #uncreditedBytes = 0;
  #receiveWindowBytes: number;
  /** When the latest frame that did not come in one piece began. */
  #partSinceMs = 0;
  #partsBegun = 0;
  /** When we said that we are going, and whether the client has heard it. */
  #drainingMs: number | undefined;
  #drained = false;
  #awake = false;
  #lost = false;

  /** @param nowMs the clock's monotonic milliseconds. */
  constructor(
    shared: Http2Shared,
    acceptor: RequestAcceptor,
    owner: ConnectionOwner,
    peer: Peer,
    nowMs: number,
  ) {
    const limits = shared.limits;
    this.#limits = limits;
    this.counters = shared.counters;
    this.out = new Output(shared.buffers);
    this.#acceptor = acceptor;
    this.#owner = owner;
    this.peer = peer;
    this.nowMs = nowMs;
    this.#openedMs = nowMs;
    const identity = clientOf(peer);
    const cut = () => this.#makeRoom();
    this.held = shared.held.join(limits.maxHeldBytes, identity, cut);
    this.#headBudget = shared.heads.join(limits.maxHeadBytes, identity, cut);
    this.#pendingBudget = shared.pending.join(limits.maxPendingBytes, identity, cut);
    this.sender = new Sender(this.out, limits.outputTargetBytes, this.#pendingBudget, this);
    this.#idleSinceMs = nowMs;
    this.#decoder = new HpackDecoder(DEFAULT_TABLE_BYTES, limits.maxHeaderListBytes);
    this.#keepAlive = new KeepAlive(limits, nowMs);
    this.#idleFrames = new TokenBucket(
      limits.maxIdleFramesBurst,
      limits.maxIdleFramesPerSecond,
      nowMs,
    );
    this.#resets = new TokenBucket(limits.maxResetsBurst, limits.maxResetsPerSecond, nowMs);
    this.counters.connections++;
    this.counters.openConnections++;
    writeSettings(this.out, [
      [Setting.MaxConcurrentStreams, limits.maxConcurrentStreams],
      [Setting.InitialWindowSize, limits.streamWindowBytes],
      [Setting.MaxHeaderListSize, limits.maxHeaderListBytes],
    ]);
    this.#receiveWindowBytes = Math.max(limits.connectionWindowBytes, DEFAULT_WINDOW_BYTES);
    const more = this.#receiveWindowBytes - DEFAULT_WINDOW_BYTES;
    if (more > 0) writeWindowUpdate(this.out, 0, more);
    this.touched();
  }

  get openStreams(): number {
    return this.#streams.size;
  }

  /** Since when no call is open or worked on; undefined while one is. */
  get idleSinceMs(): number | undefined {
    return this.#streams.size + this.lingeringCalls === 0 ? this.#idleSinceMs : undefined;
  }

  /** Takes bytes from the client; the chunk must not change any more. */
  receive(chunk: Uint8Array, nowMs: number): void {
    if (this.ending) return;
    this.#setNow(nowMs);
    this.#keepAlive.read(nowMs);
    let at = 0;
    while (this.#prefaceBytes < PREFACE.length) {
      if (at === chunk.length) return;
      if (chunk[at++] !== PREFACE.charCodeAt(this.#prefaceBytes++)) {
        this.#fail(ErrorCode.ProtocolError, "bad preface");
        return;
      }
    }
    this.#splitter.push(chunk, at);
    if (this.#splitter.partsBegun !== this.#partsBegun) {
      this.#partsBegun = this.#splitter.partsBegun;
      this.#partSinceMs = nowMs;
    }
    this.touched();
  }

  /** Looks after timeouts; to be called about once a second. */
  sweep(nowMs: number): void {
    if (this.ending) return;
    this.#setNow(nowMs);
    const limits = this.#limits;
    if (!this.#settled && nowMs - this.#openedMs >= limits.prefaceTimeoutMs) {
      this.counters.prefaceTimeouts++;
      this.#end(ErrorCode.ProtocolError, "no preface in time");
    } else if (nowMs - this.#incompleteSinceMs() >= limits.frameTimeoutMs) {
      this.counters.frameTimeouts++;
      this.#end(ErrorCode.ProtocolError, "a frame did not end in time");
    } else if (this.sender.stalledMs(nowMs) >= limits.sendStallTimeoutMs) {
      this.counters.sendStalls++;
      this.#end(ErrorCode.EnhanceYourCalm, "answers are not taken");
    } else if (
      this.#drainingMs !== undefined &&
      !this.#drained &&
      nowMs - this.#drainingMs >= limits.drainTimeoutMs
    ) {
      this.#finishDrain();
    } else this.#sweepPings(nowMs);
    if (this.#streams.size === 0) this.out.shrink();
    this.touched();
  }

  /** What is to be sent, in order; `wake` is called when there is more. */
  takeOutput(): Uint8Array[] {
    this.#awake = false;
    return this.out.take();
  }

  /**
   * Tells the owner of new output, once. To be called after anything was done with `sender` or
   * `reset` from outside of `receive`.
   */
  touched(): void {
    if (this.#awake || (this.out.sizeBytes === 0 && !this.ending)) return;
    this.#awake = true;
    this.#owner.wake();
  }

  /**
   * Takes no more requests and ends when those that are open have ended. No request that is on its
   * way is lost: see section 6.8.
   */
  drain(nowMs: number): void {
    if (this.ending || this.#drainingMs !== undefined) return;
    this.#setNow(nowMs);
    this.#drainingMs = nowMs;
    writeGoAway(this.out, MAX_STREAM_ID, ErrorCode.NoError, "");
    writePing(this.out, DRAIN_PING, 0, false);
    this.touched();
  }

  /** Ends the connection, whose slot another client needs. */
  shed(nowMs: number): void {
    if (this.ending) return;
    this.#setNow(nowMs);
    this.counters.shedConnections++;
    if (this.#streams.size === 0)
      this.#end(ErrorCode.NoError, "too many connections, and this one is idle");
    else this.#end(ErrorCode.EnhanceYourCalm, "too many connections of this client");
  }

  /** Ends the connection, which holds more than any other while all together hold too much. */
  #makeRoom(): void {
    this.counters.largestHolderCuts++;
    this.#end(
      ErrorCode.EnhanceYourCalm,
      "this connection holds the most memory of all, and there is no more",
    );
  }

  /** The socket is gone. */
  lost(): void {
    if (this.#lost) return;
    this.#lost = true;
    this.held.leave();
    this.#headBudget.leave();
    this.#pendingBudget.leave();
    this.ending = true;
    this.counters.openConnections--;
    this.#abortAll();
  }

  /** Ends a stream with an error code, unless it has ended. The consumer is not told. */
  reset(stream: Http2Stream, code: number): void {
    if (stream.closed) return;
    writeRstStream(this.out, stream.id, code);
    this.#remove(stream);
    this.#closed.addCut(stream.id);
  }

  /** Body bytes of the stream have been taken, so the client may send as many more. */
  credit(stream: Http2Stream, sizeBytes: number): void {
    if (stream.remoteEnded || stream.closed) return;
    stream.uncreditedBytes += sizeBytes;
    if (stream.uncreditedBytes * 2 < this.#limits.streamWindowBytes) return;
    writeWindowUpdate(this.out, stream.id, stream.uncreditedBytes);
    stream.receiveWindowBytes += stream.uncreditedBytes;
    stream.uncreditedBytes = 0;
  }

  /**
   * A service has begun, or with a negative count ended, to work on a request that holds so many
   * bytes.
   */
  working(sizeBytes: number): void {
    this.#workingBytes += sizeBytes;
    if (sizeBytes < 0 && !this.ending) this.#creditConnection(0);
  }

  // What the sender tells.

  localEnded(stream: Http2Stream): void {
    if (stream.closed) return;
    this.#resets.give(1);
    if (!stream.remoteEnded) {
      // The answer is complete, so the rest of the request is of no use (section 8.1).
      writeRstStream(this.out, stream.id, ErrorCode.NoError);
      this.#closed.addCut(stream.id);
    } else this.#closed.addEnded(stream.id);
    this.#remove(stream);
  }

  progressed(): void {
    this.#keepAlive.sent = true;
    this.#idleFrames.give(2);
  }

  // What the splitter tells.

  frame(
    bytes: Uint8Array,
    start: number,
    length: number,
    type: number,
    flags: number,
    streamId: number,
  ): boolean {
    if (this.#block !== undefined && type !== FrameType.Continuation) {
      return this.#fail(ErrorCode.ProtocolError, "a header block is interrupted");
    }
    if (!this.#settled) {
      if (type !== FrameType.Settings || (flags & Flag.Ack) !== 0)
        return this.#fail(ErrorCode.ProtocolError, "no SETTINGS behind the preface");
      this.#settled = true;
      this.#owner.settled();
      if (this.ending) return false;
    }
    switch (type) {
      case FrameType.Data:
        return this.#data(bytes, start, length, flags, streamId);
      case FrameType.Headers:
        return this.#headers(bytes, start, length, flags, streamId);
      case FrameType.Priority:
        return this.#priority(bytes, start, length, streamId);
      case FrameType.RstStream:
        return this.#rstStream(length, streamId);
      case FrameType.Settings:
        return this.#settings(bytes, start, length, flags, streamId);
      case FrameType.PushPromise:
        return this.#fail(ErrorCode.ProtocolError, "clients do not push");
      case FrameType.Ping:
        return this.#ping(bytes, start, length, flags, streamId);
      case FrameType.GoAway:
        if (streamId !== 0) return this.#fail(ErrorCode.ProtocolError, "GOAWAY on a stream");
        if (length < 8) return this.#fail(ErrorCode.FrameSizeError, "GOAWAY is too short");
        return this.#idle(1);
      case FrameType.WindowUpdate:
        return this.#windowUpdate(bytes, start, length, streamId);
      case FrameType.Continuation:
        return this.#continuation(bytes, start, length, flags, streamId);
      default:
        // Section 5.5: unknown types are ignored.
        return this.#idle(1);
    }
  }

  frameTooLong(_length: number, _type: number, _streamId: number): void {
    this.#fail(ErrorCode.FrameSizeError, `a frame is longer than ${DEFAULT_MAX_FRAME_BYTES}`);
  }

  // Frames.

  #data(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    if ((streamId & 1) === 0 || streamId > this.#lastStreamId)
      return this.#fail(ErrorCode.ProtocolError, "DATA on an idle stream");
    // All of the payload counts, padding too (section 6.9.1).
    this.#receiveWindowBytes -= length;
    if (this.#receiveWindowBytes < 0)
      return this.#fail(
        ErrorCode.FlowControlError,
        "more DATA than the connection's window allows",
      );
    this.#creditConnection(length);
    let from = start;
    let to = start + length;
    if ((flags & Flag.Padded) !== 0) {
      if (length === 0) return this.#fail(ErrorCode.FrameSizeError, "padded DATA is empty");
      from++;
      to -= bytes[start];
      if (to < from) return this.#fail(ErrorCode.ProtocolError, "padding is longer than its frame");
    }
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      if (!this.#closed.wasCut(streamId))
        writeRstStream(this.out, streamId, ErrorCode.StreamClosed);
      // What was on its way when we cut the stream off is no fault of the client's, as long as it
      // moves something.
      return this.#idle(1);
    }
    if (stream.remoteEnded) return this.#streamError(stream, ErrorCode.StreamClosed);
    stream.receiveWindowBytes -= length;
    if (stream.receiveWindowBytes < 0) return this.#streamError(stream, ErrorCode.FlowControlError);
    const size = to - from;
    const end = (flags & Flag.EndStream) !== 0;
    if (stream.bodyLeftBytes >= 0) {
      stream.bodyLeftBytes -= size;
      if (stream.bodyLeftBytes < 0 || (end && stream.bodyLeftBytes > 0))
        return this.#streamError(stream, ErrorCode.ProtocolError);
    }
    if (end) stream.remoteEnded = true;
    else {
      if (size === 0 && !this.#idle(1)) return false;
      if (size < length) this.credit(stream, length - size);
    }
    if (size > 0) stream.consumer.data(bytes, from, to);
    if (end && !stream.closed) stream.consumer.ended();
    return !this.ending;
  }

  #headers(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    if ((streamId & 1) === 0)
      return this.#fail(ErrorCode.ProtocolError, "HEADERS on a stream that is not a client's");
    let from = start;
    let to = start + length;
    if ((flags & Flag.Padded) !== 0) {
      if (length === 0) return this.#fail(ErrorCode.FrameSizeError, "padded HEADERS are empty");
      to -= bytes[from++];
    }
    let dependsOnItself = false;
    if ((flags & Flag.Priority) !== 0) {
      if (from + 5 > start + length)
        return this.#fail(ErrorCode.FrameSizeError, "HEADERS are too short for their priority");
      dependsOnItself = (readU32(bytes, from) & MAX_STREAM_ID) === streamId;
      from += 5;
    }
    if (to < from) return this.#fail(ErrorCode.ProtocolError, "padding is longer than its frame");
    const endStream = (flags & Flag.EndStream) !== 0;
    if ((flags & Flag.EndHeaders) !== 0)
      return this.#headerBlock(streamId, bytes, from, to, endStream, dependsOnItself);
    this.#block = new HeaderBlock(streamId, endStream, dependsOnItself, this.nowMs);
    this.#block.append(bytes, from, to);
    return true;
  }

  #continuation(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    const block = this.#block;
    if (block === undefined || block.streamId !== streamId)
      return this.#fail(ErrorCode.ProtocolError, "CONTINUATION of nothing");
    block.append(bytes, start, start + length);
    if (
      block.frames > this.#limits.maxContinuationFrames + 1 ||
      block.sizeBytes > this.#limits.maxHeaderBlockBytes
    ) {
      this.counters.headerBlockFloods++;
      return this.#end(ErrorCode.EnhanceYourCalm, "a header block is too long");
    }
    if ((flags & Flag.EndHeaders) === 0) return true;
    this.#block = undefined;
    const whole = block.join();
    return this.#headerBlock(
      streamId,
      whole,
      0,
      whole.length,
      block.endStream,
      block.dependsOnItself,
    );
  }

  /** A whole header block: a request, or the trailers of one. */
  #headerBlock(
    streamId: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    endStream: boolean,
    dependsOnItself: boolean,
  ): boolean {
    if (streamId <= this.#lastStreamId)
      return this.#trailers(streamId, bytes, start, end, endStream);
    this.#lastStreamId = streamId;
    const decoder = this.#decoder;
    const version = decoder.tableVersion;
    let head: RequestHead | string | undefined = this.#heads.find(bytes, start, end, version);
    let truncated = false;
    if (head === undefined) {
      const fields = this.#decode(bytes, start, end);
      if (fields === undefined) return false;
      head = parseRequestHead(fields);
      truncated = decoder.truncated;
      if (decoder.tableVersion === version && !truncated && typeof head !== "string")
        this.#heads.add(bytes, start, end, version, head);
    }
    if (typeof head === "string" || dependsOnItself)
      return this.#refuse(streamId, ErrorCode.ProtocolError);
    if (
      this.#drained ||
      this.#streams.size + this.lingeringCalls >= this.#limits.maxConcurrentStreams
    ) {
      this.counters.refusedStreams++;
      writeRstStream(this.out, streamId, ErrorCode.RefusedStream);
      this.#closed.addCut(streamId);
      return this.#idle(1);
    }
    if (endStream && head.contentLength > 0) return this.#refuse(streamId, ErrorCode.ProtocolError);
    const headBytes = STREAM_BYTES + end - start + head.fields.length * FIELD_BYTES;
    if (!this.#headBudget.take(headBytes)) {
      this.counters.headBytesRefusals++;
      writeRstStream(this.out, streamId, ErrorCode.RefusedStream);
      this.#closed.addCut(streamId);
      return this.#idle(1);
    }
    const stream = new Http2Stream(
      streamId,
      head,
      this.#limits.streamWindowBytes,
      this.sender.streamWindowBytes,
    );
    stream.remoteEnded = endStream;
    stream.headBytes = headBytes;
    this.#streams.set(streamId, stream);
    this.counters.streams++;
    this.counters.openStreams++;
    if (truncated) {
      this.counters.headerListsTooLarge++;
      this.#acceptor.refuseTooLarge(this, stream);
    } else this.#acceptor.accept(this, stream, endStream);
    return !this.ending;
  }

  #trailers(
    streamId: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    endStream: boolean,
  ): boolean {
    const fields = this.#decode(bytes, start, end);
    if (fields === undefined) return false;
    const stream = this.#streams.get(streamId);
    if (stream === undefined) {
      if (this.#closed.wasCut(streamId)) return this.#idle(1);
      // Streams open in rising order, so one that was passed over can never be opened (section
      // 5.1.1).
      const known = this.#closed.wasEnded(streamId);
      return this.#fail(
        known ? ErrorCode.StreamClosed : ErrorCode.ProtocolError,
        "HEADERS on a closed stream",
      );
    }
    if (stream.remoteEnded) return this.#streamError(stream, ErrorCode.StreamClosed);
    if (!endStream || malformedTrailers(fields) !== undefined || stream.bodyLeftBytes > 0) {
      return this.#streamError(stream, ErrorCode.ProtocolError);
    }
    stream.remoteEnded = true;
    stream.consumer.ended();
    return !this.ending;
  }

  #decode(bytes: Uint8Array, start: number, end: number): HeaderField[] | undefined {
    try {
      return this.#decoder.decode(bytes, start, end);
    } catch (error) {
      if (!(error instanceof HpackError)) throw error;
      this.counters.compressionErrors++;
      this.#fail(ErrorCode.CompressionError, error.message);
      return undefined;
    }
  }

  #priority(bytes: Uint8Array, start: number, length: number, streamId: number): boolean {
    if (streamId === 0) return this.#fail(ErrorCode.ProtocolError, "PRIORITY of the connection");
    if (length !== 5) return this.#refuse(streamId, ErrorCode.FrameSizeError);
    if ((readU32(bytes, start) & MAX_STREAM_ID) === streamId)
      return this.#refuse(streamId, ErrorCode.ProtocolError);
    return this.#idle(1);
  }

  #rstStream(length: number, streamId: number): boolean {
    if (streamId === 0) return this.#fail(ErrorCode.ProtocolError, "RST_STREAM of the connection");
    if (length !== 4) return this.#fail(ErrorCode.FrameSizeError, "RST_STREAM has not four bytes");
    if ((streamId & 1) === 0 || streamId > this.#lastStreamId)
      return this.#fail(ErrorCode.ProtocolError, "RST_STREAM on an idle stream");
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return this.#idle(1);
    this.counters.resetsReceived++;
    this.#remove(stream);
    this.#closed.addEnded(streamId);
    stream.consumer.aborted();
    return this.#spendReset();
  }

  #settings(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    if (streamId !== 0) return this.#fail(ErrorCode.ProtocolError, "SETTINGS on a stream");
    if ((flags & Flag.Ack) !== 0) {
      return length === 0
        ? this.#idle(1)
        : this.#fail(ErrorCode.FrameSizeError, "an acknowledgement of SETTINGS has a payload");
    }
    if (length % 6 !== 0)
      return this.#fail(ErrorCode.FrameSizeError, "SETTINGS are not of six bytes each");
    let windowBytes = this.sender.streamWindowBytes;
    for (let at = start; at < start + length; at += 6) {
      const id = (bytes[at] << 8) | bytes[at + 1];
      const value = readU32(bytes, at + 2);
      if (id === Setting.InitialWindowSize) windowBytes = value;
      if (!this.#setting(id, value)) return false;
    }
    // What the new windows let out comes behind the acknowledgement.
    writeSettingsAck(this.out);
    // Looks at every stream, so only for the last of several sizes.
    if (!this.sender.setStreamWindow(windowBytes, this.#streams.values())) {
      return this.#fail(ErrorCode.FlowControlError, "a window is too large");
    }
    return this.#idle(1 + Math.floor(length / 60) + Math.floor(this.#streams.size / 100));
  }

  #setting(id: number, value: number): boolean {
    switch (id) {
      case Setting.HeaderTableSize:
        this.sender.encoder.limitTable(value);
        return true;
      case Setting.EnablePush:
        return value <= 1 || this.#fail(ErrorCode.ProtocolError, "ENABLE_PUSH is neither 0 nor 1");
      case Setting.InitialWindowSize:
        return (
          value <= MAX_WINDOW_BYTES ||
          this.#fail(ErrorCode.FlowControlError, "a window is too large")
        );
      case Setting.MaxFrameSize:
        return (
          (value >= DEFAULT_MAX_FRAME_BYTES && value <= LARGEST_MAX_FRAME_BYTES) ||
          this.#fail(ErrorCode.ProtocolError, "MAX_FRAME_SIZE is out of range")
        );
      default:
        return true;
    }
  }

  #ping(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    if (streamId !== 0) return this.#fail(ErrorCode.ProtocolError, "PING on a stream");
    if (length !== 8) return this.#fail(ErrorCode.FrameSizeError, "PING has not eight bytes");
    if ((flags & Flag.Ack) !== 0) {
      if (
        this.#drainingMs !== undefined &&
        DRAIN_PING.every((byte, i) => byte === bytes[start + i])
      )
        this.#finishDrain();
      return !this.ending && this.#idle(1);
    }
    writePing(this.out, bytes, start, true);
    if (!this.#keepAlive.pinged(this.nowMs, this.#streams.size)) {
      this.counters.pingFloods++;
      return this.#end(ErrorCode.EnhanceYourCalm, "too_many_pings");
    }
    return this.#idle(1);
  }

  #windowUpdate(bytes: Uint8Array, start: number, length: number, streamId: number): boolean {
    if (length !== 4)
      return this.#fail(ErrorCode.FrameSizeError, "WINDOW_UPDATE has not four bytes");
    const increment = readU32(bytes, start) & MAX_WINDOW_BYTES;
    if (streamId === 0) {
      if (increment === 0) return this.#fail(ErrorCode.ProtocolError, "WINDOW_UPDATE of nothing");
      if (!this.sender.openWindow(increment))
        return this.#fail(ErrorCode.FlowControlError, "a window is too large");
      return this.#idle(1);
    }
    if ((streamId & 1) === 0 || streamId > this.#lastStreamId) {
      return this.#fail(ErrorCode.ProtocolError, "WINDOW_UPDATE on an idle stream");
    }
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return this.#idle(1);
    if (increment === 0) return this.#streamError(stream, ErrorCode.ProtocolError);
    if (!this.sender.openStreamWindow(stream, increment))
      return this.#streamError(stream, ErrorCode.FlowControlError);
    return this.#idle(1);
  }

  // The end of streams and of the connection. All give false if the connection is ending.

  /**
   * Answers a header block or priority that breaks a rule on a stream that may not even be open.
   */
  #refuse(streamId: number, code: number): boolean {
    const stream = this.#streams.get(streamId);
    if (stream !== undefined) return this.#streamError(stream, code);
    this.counters.streamErrors++;
    writeRstStream(this.out, streamId, code);
    this.#closed.addCut(streamId);
    return this.#spendReset();
  }

  #streamError(stream: Http2Stream, code: number): boolean {
    this.counters.streamErrors++;
    this.reset(stream, code);
    stream.consumer.aborted();
    return this.#spendReset();
  }

  /**
   * A stream was reset by the client, or because of it, which is as cheap a way to have us work in
   * vain.
   */
  #spendReset(): boolean {
    if (this.ending || this.#resets.take(1, this.nowMs)) return !this.ending;
    this.counters.resetFloods++;
    return this.#end(ErrorCode.EnhanceYourCalm, "too many resets");
  }

  /** A frame moved nothing. */
  #idle(count: number): boolean {
    if (this.ending || this.#idleFrames.take(count, this.nowMs)) return !this.ending;
    this.counters.frameFloods++;
    return this.#end(ErrorCode.EnhanceYourCalm, "too many idle frames");
  }

  /** The client broke a rule. */
  #fail(code: number, reason: string): false {
    if (this.ending) return false;
    this.counters.connectionErrors++;
    return this.#end(code, reason);
  }

  #end(code: number, reason: string): false {
    if (this.ending) return false;
    writeGoAway(this.out, this.#lastStreamId, code, reason);
    this.ending = true;
    this.#abortAll();
    this.touched();
    return false;
  }

  #abortAll(): void {
    const streams = [...this.#streams.values()];
    this.#block = undefined;
    for (const stream of streams) this.#remove(stream);
    for (const stream of streams) stream.consumer.aborted();
  }

  #remove(stream: Http2Stream): void {
    stream.closed = true;
    this.#streams.delete(stream.id);
    this.counters.openStreams--;
    this.#headBudget.give(stream.headBytes);
    this.sender.drop(stream);
    this.#idleSinceMs = this.nowMs;
    if (this.#drained && this.#streams.size === 0) this.ending = true;
  }

  #finishDrain(): void {
    if (this.#drained) return;
    this.#drained = true;
    writeGoAway(this.out, this.#lastStreamId, ErrorCode.NoError, "");
    if (this.#streams.size === 0) this.ending = true;
  }

  #sweepPings(nowMs: number): void {
    const due = this.#keepAlive.due(nowMs);
    if (due === "ping") writePing(this.out, ALIVE_PING, 0, false);
    else if (due === "lost") {
      this.counters.keepAliveTimeouts++;
      this.#end(ErrorCode.NoError, "no answer to a ping");
    }
  }

  /** When the frame or header block began that is not whole yet; infinity if there is none. */
  #incompleteSinceMs(): number {
    if (this.#block !== undefined) return this.#block.begunMs;
    return this.#splitter.midFrame ? this.#partSinceMs : Number.POSITIVE_INFINITY;
  }

  /**
   * Opens the connection's window again, whatever becomes of the bytes, so that no stream holds up
   * another; `held` bounds what they cost. Only when much is held does the client have to wait, as
   * long as there is something to wait for: services at work. Requests that are still coming in
   * must not wait for each other.
   */
  #creditConnection(sizeBytes: number): void {
    this.#uncreditedBytes += sizeBytes;
    if (this.#uncreditedBytes * 2 < this.#limits.connectionWindowBytes) return;
    if (this.#workingBytes > 0 && this.held.isHigh) return;
    writeWindowUpdate(this.out, 0, this.#uncreditedBytes);
    this.#receiveWindowBytes += this.#uncreditedBytes;
    this.#uncreditedBytes = 0;
  }

  #setNow(nowMs: number): void {
    this.nowMs = nowMs;
    this.sender.nowMs = nowMs;
  }
}

function readU32(bytes: Uint8Array, at: number): number {
  return ((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]) >>> 0;
}

/**
 * The server's side of one HTTP/2 connection (RFC 9113), without its socket: bytes come in by
 * `receive` and go out by `takeOutput`, requests go to an acceptor, and the time is an argument.
 *
 *   receive -> FrameSplitter -> frame handlers -> RequestAcceptor, StreamConsumer
 *   sweep (every second or so) -> timeouts                           |
 *   takeOutput <- Output <- Sender <---------------------------------+
 *
 * DATA is taken here, with the flow control of the receiving side (section 6.9); the handlers of
 * other frames are header-frames.ts and control-frames.ts. They work on the connection's streams,
 * budgets and sender, and end a stream or the whole connection by its methods. Those that return a
 * boolean return false once the connection is ending, so that a handler can return their result.
 * A rule that the client breaks ends its stream (RST_STREAM) or the connection (GOAWAY; then
 * `ending` is true, and the owner closes the socket when the output has been sent).
 */
import { http2 } from "@quorate/proto";
import type { ByteBudget } from "./byte-budget.ts";
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
import type { HeaderBlock } from "./header-block.ts";
import { HeaderFrames } from "./header-frames.ts";
import type { Http2Limits } from "./limits.ts";
import {
  Output,
  writeGoAway,
  writePing,
  writeRstStream,
  writeSettings,
  writeWindowUpdate,
} from "./output.ts";
import { clientOf, type Peer } from "./peer.ts";
import { Sender, type SenderOwner } from "./sender.ts";
import type { EngineCounters, Http2Shared } from "./shared.ts";
import { type Http2Stream, StreamTable } from "./stream.ts";

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

/** The owner of the socket, as its connection sees it. */
export interface ConnectionOwner {
  /**
   * There is output where there was none, or the connection began to end. Called again only after
   * takeOutput.
   */
  wake(): void;
  /** The client's preface and first SETTINGS are complete. Called once. */
  settled(): void;
}

export class Http2Connection implements http2.FrameHandler, SenderOwner {
  readonly peer: Peer;
  readonly limits: Http2Limits;
  /** The server's, for all connections. */
  readonly counters: EngineCounters;
  readonly out: Output;
  readonly sender: Sender;
  readonly streams = new StreamTable();
  readonly keepAlive: KeepAlive;
  readonly owner: ConnectionOwner;
  /** Bytes of requests that are being received or processed. */
  readonly held: ByteBudget;
  /** Bytes that open streams take by themselves, mostly their headers. */
  readonly headBudget: ByteBudget;
  /** Bytes of responses that wait to be sent. */
  readonly #pendingBudget: ByteBudget;
  readonly #abuse: AbuseBudgets;
  /** The header block that CONTINUATION frames are to complete. */
  block: HeaderBlock | undefined;
  /**
   * Calls that are still running although their stream was reset. They count as streams, or a reset
   * would evade that bound.
   */
  lingeringCalls = 0;
  /**
   * True once nothing more is read or begun: the owner sends the remaining output and closes the
   * socket.
   */
  ending = false;
  /** Monotonic milliseconds, as of the last `receive` or `sweep`. */
  nowMs: number;
  /** When the first GOAWAY was sent; undefined while the connection takes requests. */
  drainingMs: number | undefined;
  /** The client has received the first GOAWAY: no more requests are taken. */
  drained = false;
  #idleSinceMs: number;
  #awake = false;
  #lost = false;
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

  /** @param nowMs the clock's monotonic milliseconds. */
  constructor(
    shared: Http2Shared,
    acceptor: RequestAcceptor,
    owner: ConnectionOwner,
    peer: Peer,
    nowMs: number,
  ) {
    const { limits } = shared;
    this.limits = limits;
    this.counters = shared.counters;
    this.owner = owner;
    this.peer = peer;
    this.nowMs = nowMs;
    this.#openedMs = nowMs;
    this.#idleSinceMs = nowMs;
    this.out = new Output(shared.buffers);
    const identity = clientOf(peer);
    const cut = () => this.#cutAsLargestHolder();
    this.held = shared.held.join(limits.maxHeldBytes, identity, cut);
    this.headBudget = shared.heads.join(limits.maxHeadBytes, identity, cut);
    this.#pendingBudget = shared.pending.join(limits.maxPendingBytes, identity, cut);
    this.sender = new Sender(this.out, limits.outputTargetBytes, this.#pendingBudget, this);
    this.keepAlive = new KeepAlive(limits, nowMs);
    this.#abuse = new AbuseBudgets(limits, nowMs);
    this.#headers = new HeaderFrames(this, acceptor);
    this.counters.connections++;
    this.counters.openConnections++;
    writeSettings(this.out, [
      [Setting.MaxConcurrentStreams, limits.maxConcurrentStreams],
      [Setting.InitialWindowSize, limits.streamWindowBytes],
      [Setting.MaxHeaderListSize, limits.maxHeaderListBytes],
    ]);
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
    this.#splitter.push(chunk, at);
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
        return this.#headers.headers(bytes, start, length, flags, streamId);
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
        return this.#headers.continuation(bytes, start, length, flags, streamId);
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
    if (stream.remoteEnded || stream.closed) return;
    stream.uncreditedBytes += sizeBytes;
    if (stream.uncreditedBytes * 2 < this.limits.streamWindowBytes) return;
    writeWindowUpdate(this.out, stream.id, stream.uncreditedBytes);
    stream.receiveWindowBytes += stream.uncreditedBytes;
    stream.uncreditedBytes = 0;
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

  /** Since when no call has been open or running; undefined while one is. */
  get idleSinceMs(): number | undefined {
    return this.streams.size + this.lingeringCalls === 0 ? this.#idleSinceMs : undefined;
  }

  setNow(nowMs: number): void {
    this.nowMs = nowMs;
    this.sender.nowMs = nowMs;
  }

  /**
   * Notifies the owner of new output, once. To be called after using `sender` or `reset` outside of
   * `receive`.
   */
  touched(): void {
    if (this.#awake || (this.out.sizeBytes === 0 && !this.ending)) return;
    this.#awake = true;
    this.owner.wake();
  }

  /** The bytes to send, in order; the owner's `wake` is called when there are more. */
  takeOutput(): Uint8Array[] {
    this.#awake = false;
    return this.out.take();
  }

  /** Called by the sender: the server's side of the stream has ended on the wire. */
  localEnded(stream: Http2Stream): void {
    if (stream.closed) return;
    this.#abuse.responded();
    if (!stream.remoteEnded) {
      // The response is complete, so the rest of the request is of no use (section 8.1).
      writeRstStream(this.out, stream.id, ErrorCode.NoError);
      this.streams.addCut(stream.id);
    } else this.streams.addEnded(stream.id);
    this.remove(stream);
  }

  /** A frame with content was written, or the client consumed part of a request. */
  progressed(): void {
    this.keepAlive.sent = true;
    this.#abuse.progressed();
  }

  /** Resets a stream unless it has ended. Does not call its consumer. */
  reset(stream: Http2Stream, code: number): void {
    if (stream.closed) return;
    writeRstStream(this.out, stream.id, code);
    this.remove(stream);
    this.streams.addCut(stream.id);
  }

  /** Refuses a stream before it opens, as an idle frame: the client may retry it (section 8.7). */
  refuseStream(streamId: number): boolean {
    writeRstStream(this.out, streamId, ErrorCode.RefusedStream);
    this.streams.addCut(streamId);
    return this.idle(1);
  }

  /** Resets a stream that may not be open: a header block or PRIORITY on it breaks a rule. */
  rejectFrame(streamId: number, code: number): boolean {
    const stream = this.streams.get(streamId);
    if (stream !== undefined) return this.streamError(stream, code);
    this.counters.streamErrors++;
    writeRstStream(this.out, streamId, code);
    this.streams.addCut(streamId);
    return this.chargeReset();
  }

  /** The client broke a rule on an open stream: resets it and aborts its call. */
  streamError(stream: Http2Stream, code: number): boolean {
    this.counters.streamErrors++;
    this.reset(stream, code);
    stream.consumer.aborted();
    return this.chargeReset();
  }

  /** A stream was reset, by the client or because of it. */
  chargeReset(): boolean {
    if (this.ending || this.#abuse.chargeReset(this.nowMs)) return !this.ending;
    this.counters.resetFloods++;
    return this.end(ErrorCode.EnhanceYourCalm, "too many resets");
  }

  /** Charges frames that moved nothing. */
  idle(count: number): boolean {
    if (this.ending || this.#abuse.chargeIdle(count, this.nowMs)) return !this.ending;
    this.counters.frameFloods++;
    return this.end(ErrorCode.EnhanceYourCalm, "too many idle frames");
  }

  /** Ends the connection because the client broke a rule. */
  fail(code: number, reason: string): false {
    if (this.ending) return false;
    this.counters.connectionErrors++;
    return this.end(code, reason);
  }

  /** Ends the connection. @param reason is sent in GOAWAY */
  end(code: number, reason: string): false {
    if (this.ending) return false;
    writeGoAway(this.out, this.streams.lastId, code, reason);
    this.ending = true;
    this.#abortAll();
    this.touched();
    return false;
  }

  /**
   * The client has received the first GOAWAY: sends the second, with the last stream that is served
   * (section 6.8).
   */
  finishDrain(): void {
    if (this.drained) return;
    this.drained = true;
    writeGoAway(this.out, this.streams.lastId, ErrorCode.NoError, "");
    if (this.streams.size === 0) this.ending = true;
  }

  /** The socket is gone. */
  lost(): void {
    if (this.#lost) return;
    this.#lost = true;
    this.held.leave();
    this.headBudget.leave();
    this.#pendingBudget.leave();
    this.ending = true;
    this.counters.openConnections--;
    this.#abortAll();
  }

  /** Takes a stream out of the table and releases what it holds. */
  remove(stream: Http2Stream): void {
    stream.closed = true;
    this.streams.delete(stream.id);
    this.counters.openStreams--;
    this.headBudget.give(stream.headBytes);
    this.sender.drop(stream);
    this.#idleSinceMs = this.nowMs;
    if (this.drained && this.streams.size === 0) this.ending = true;
  }

  #abortAll(): void {
    const streams = [...this.streams.values()];
    this.block = undefined;
    for (const stream of streams) this.remove(stream);
    for (const stream of streams) stream.consumer.aborted();
  }

  /** Ends the connection: it holds more than any other while all together hold too much. */
  #cutAsLargestHolder(): void {
    this.counters.largestHolderCuts++;
    const reason = "the server is out of buffer memory, and this connection holds the most";
    this.end(ErrorCode.EnhanceYourCalm, reason);
  }
}

/** Idle frames that one frame with content makes good. */
const REFILL_PER_PROGRESS = 2;

/**
 * Budgets for what costs a client less than it costs the server: frames that move nothing (empty
 * DATA, SETTINGS, PING, PRIORITY and so on; CVE-2019-9512, -9515 and -9518) and streams that end in
 * a reset (CVE-2023-44487). Each is a token bucket. Work that gets done refills them, so a client
 * that receives responses does not run out.
 */
class AbuseBudgets {
  readonly #idleFrames: TokenBucket;
  readonly #resets: TokenBucket;

  constructor(limits: Http2Limits, nowMs: number) {
    const { maxIdleFramesBurst, maxIdleFramesPerSecond, maxResetsBurst, maxResetsPerSecond } =
      limits;
    this.#idleFrames = new TokenBucket(maxIdleFramesBurst, maxIdleFramesPerSecond, nowMs);
    this.#resets = new TokenBucket(maxResetsBurst, maxResetsPerSecond, nowMs);
  }

  /** Charges `count` idle frames; false when the budget is used up. */
  chargeIdle(count: number, nowMs: number): boolean {
    return this.#idleFrames.take(count, nowMs);
  }

  /** Charges a reset stream; false when the budget is used up. */
  chargeReset(nowMs: number): boolean {
    return this.#resets.take(1, nowMs);
  }

  /** A frame with content was sent. */
  progressed(): void {
    this.#idleFrames.give(REFILL_PER_PROGRESS);
  }

  /** A response was sent to its end. */
  responded(): void {
    this.#resets.give(1);
  }
}

/** A token bucket: a burst, and then a rate per second. It is refilled only when it runs out. */
export class TokenBucket {
  readonly #burst: number;
  readonly #perMs: number;
  #tokens: number;
  #filledMs: number;

  constructor(burst: number, perSecond: number, nowMs: number) {
    this.#burst = burst;
    this.#perMs = perSecond / 1000;
    this.#tokens = burst;
    this.#filledMs = nowMs;
  }

  /** Takes `count` tokens; false if there are fewer. */
  take(count: number, nowMs: number): boolean {
    if (this.#tokens < count) {
      this.#tokens = Math.min(this.#burst, this.#tokens + (nowMs - this.#filledMs) * this.#perMs);
      this.#filledMs = nowMs;
      if (this.#tokens < count) return false;
    }
    this.#tokens -= count;
    return true;
  }

  /** Returns tokens, up to the burst. */
  give(count: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + count);
  }
}

/** As in grpc-go: the third ping that comes too early ends the connection. */
const MAX_STRIKES = 2;
/** As in grpc-go: the minimum time between pings of a client without open calls. */
const IDLE_PERIOD_MS = 2 * 60 * 60 * 1000;

/**
 * Pings in both directions: grpc-go's policy against clients that ping too often, and the server's
 * own pings to silent clients.
 */
class KeepAlive {
  readonly #minTimeMs: number;
  readonly #intervalMs: number;
  readonly #timeoutMs: number;
  #strikes = 0;
  #lastPingMs = Number.NEGATIVE_INFINITY;
  #lastReadMs: number;
  #pingedMs: number | undefined = undefined;
  /**
   * Set when a frame with content is sent; it resets the count of early pings, because a client may
   * ping while it receives.
   */
  sent = false;

  constructor(limits: Http2Limits, nowMs: number) {
    this.#minTimeMs = limits.keepAliveMinTimeMs;
    this.#intervalMs = limits.keepAliveTimeoutMs > 0 ? limits.keepAliveIntervalMs : 0;
    this.#timeoutMs = limits.keepAliveTimeoutMs;
    this.#lastReadMs = nowMs;
  }

  /** The client has pinged. False if that is one ping too many. */
  pinged(nowMs: number, openStreams: number): boolean {
    const lastMs = this.#lastPingMs;
    this.#lastPingMs = nowMs;
    if (this.#minTimeMs === 0) return true;
    if (this.sent) {
      this.sent = false;
      this.#strikes = 0;
      return true;
    }
    if (lastMs + (openStreams === 0 ? IDLE_PERIOD_MS : this.#minTimeMs) > nowMs) this.#strikes++;
    return this.#strikes <= MAX_STRIKES;
  }

  /** Bytes have arrived. */
  read(nowMs: number): void {
    this.#lastReadMs = nowMs;
    this.#pingedMs = undefined;
  }

  /** The action that is due: send a ping, or give up on a client that did not acknowledge one. */
  due(nowMs: number): "ping" | "lost" | undefined {
    if (this.#intervalMs === 0) return undefined;
    if (this.#pingedMs !== undefined)
      return nowMs - this.#pingedMs >= this.#timeoutMs ? "lost" : undefined;
    if (nowMs - this.#lastReadMs < this.#intervalMs) return undefined;
    this.#pingedMs = nowMs;
    return "ping";
  }
}

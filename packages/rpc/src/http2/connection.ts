/**
 * The server's side of one HTTP/2 connection (RFC 9113), without its socket: bytes come in by
 * `receive` and go out by `takeOutput`, requests go to an acceptor, and the time is an argument.
 *
 *   receive -> FrameSplitter -> frame handlers -> RequestAcceptor, StreamConsumer
 *   sweep (every second or so) -> timeouts                           |
 *   takeOutput <- Output <- Sender <---------------------------------+
 *
 * DATA is taken here, with the flow control of the receiving side (section 6.9); the handlers of
 * other frames are header-frames.ts and control-frames.ts, which see the base, connection-state.ts.
 * A rule that the client breaks ends its stream (RST_STREAM) or the connection (GOAWAY; then
 * `ending` is true, and the owner closes the socket when the output has been sent).
 */
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
import { type FrameHandler, FrameSplitter } from "./frame-splitter.ts";
import { HeaderFrames } from "./header-frames.ts";
import {
  writeGoAway,
  writePing,
  writeRstStream,
  writeSettings,
  writeWindowUpdate,
} from "./output.ts";
import type { Peer } from "./peer.ts";
import type { Http2Shared } from "./shared.ts";
import type { Http2Stream } from "./stream.ts";

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

export class Http2Connection extends ConnectionState implements FrameHandler {
  readonly #headers: HeaderFrames;
  readonly #splitter = new FrameSplitter(this);
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
    super(shared, owner, peer, nowMs);
    const { limits } = this;
    this.#openedMs = nowMs;
    writeSettings(this.out, [
      [Setting.MaxConcurrentStreams, limits.maxConcurrentStreams],
      [Setting.InitialWindowSize, limits.streamWindowBytes],
      [Setting.MaxHeaderListSize, limits.maxHeaderListBytes],
    ]);
    this.#headers = new HeaderFrames(this, {
      accept: (stream, ended) => acceptor.accept(this, stream, ended),
      refuseTooLarge: (stream) => acceptor.refuseTooLarge(this, stream),
    });
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
}

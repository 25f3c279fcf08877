/**
 * The server's side of one HTTP/2 connection (RFC 9113), without its socket: bytes come in by
 * `receive` and go out by `takeOutput`, requests go to an acceptor, and the time is an argument.
 *
 *   receive -> FrameSplitter -> frame handlers -> RequestAcceptor, StreamConsumer
 *   sweep (every second or so) -> timeouts                           |
 *   takeOutput <- Output <- Sender <---------------------------------+
 *
 * The frame handlers are header-frames.ts, data-frames.ts and control-frames.ts; they share
 * connection-state.ts. A rule that the client breaks ends its stream (RST_STREAM) or the connection
 * (GOAWAY; then `ending` is true, and the owner closes the socket when the output has been sent).
 */
import type { ByteBudget } from "./byte-budget.ts";
import { type ConnectionOwner, ConnectionState } from "./connection-state.ts";
import {
  DEFAULT_MAX_FRAME_BYTES,
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
import type { EngineCounters } from "./counters.ts";
import { DataFrames } from "./data-frames.ts";
import { type FrameHandler, FrameSplitter } from "./frame-splitter.ts";
import { writeGoAway, writePing, writeSettings } from "./frames.ts";
import { HeaderFrames } from "./header-frames.ts";
import type { Output } from "./output.ts";
import type { Peer } from "./peer.ts";
import type { Sender } from "./sender.ts";
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

export class Http2Connection implements FrameHandler {
  readonly peer: Peer;
  /** The server's, for all connections. */
  readonly counters: EngineCounters;
  readonly out: Output;
  readonly sender: Sender;
  /** Bytes of requests that are being received or processed. */
  readonly held: ByteBudget;
  readonly #state: ConnectionState;
  readonly #headers: HeaderFrames;
  readonly #data: DataFrames;
  readonly #splitter = new FrameSplitter(this);
  readonly #openedMs: number;
  /** How much of the preface has arrived, and whether the SETTINGS behind it have. */
  #prefaceBytes = 0;
  #settled = false;
  /** When the latest frame that did not arrive in one chunk began. */
  #partSinceMs = 0;
  #partsBegun = 0;

  /** @param nowMs the clock's monotonic milliseconds. */
  constructor(
    shared: Http2Shared,
    acceptor: RequestAcceptor,
    owner: ConnectionOwner,
    peer: Peer,
    nowMs: number,
  ) {
    const state = new ConnectionState(shared, owner, peer, nowMs);
    const { limits } = state;
    this.#state = state;
    this.counters = state.counters;
    this.out = state.out;
    this.sender = state.sender;
    this.held = state.held;
    this.peer = peer;
    this.#openedMs = nowMs;
    writeSettings(this.out, [
      [Setting.MaxConcurrentStreams, limits.maxConcurrentStreams],
      [Setting.InitialWindowSize, limits.streamWindowBytes],
      [Setting.MaxHeaderListSize, limits.maxHeaderListBytes],
    ]);
    this.#headers = new HeaderFrames(state, {
      accept: (stream, ended) => acceptor.accept(this, stream, ended),
      refuseTooLarge: (stream) => acceptor.refuseTooLarge(this, stream),
    });
    this.#data = new DataFrames(state);
    this.touched();
  }

  /** Number of open streams. */
  get openStreams(): number {
    return this.#state.streams.size;
  }

  /** Calls that are still running although their stream was reset. */
  get lingeringCalls(): number {
    return this.#state.lingeringCalls;
  }

  set lingeringCalls(count: number) {
    this.#state.lingeringCalls = count;
  }

  /**
   * True once nothing more is read or begun: the owner sends the remaining output and closes the
   * socket.
   */
  get ending(): boolean {
    return this.#state.ending;
  }

  /** Monotonic milliseconds, as of the last `receive` or `sweep`. */
  get nowMs(): number {
    return this.#state.nowMs;
  }

  /** Since when no call has been open or running; undefined while one is. */
  get idleSinceMs(): number | undefined {
    return this.#state.idleSinceMs;
  }

  /** Takes bytes from the client; the chunk must not change any more. */
  receive(chunk: Uint8Array, nowMs: number): void {
    const state = this.#state;
    if (state.ending) return;
    state.setNow(nowMs);
    state.keepAlive.read(nowMs);
    let at = 0;
    while (this.#prefaceBytes < PREFACE.length) {
      if (at === chunk.length) return;
      if (chunk[at++] !== PREFACE.charCodeAt(this.#prefaceBytes++)) {
        state.fail(ErrorCode.ProtocolError, "bad preface");
        return;
      }
    }
    this.#splitter.push(chunk, at);
    if (this.#splitter.partsBegun !== this.#partsBegun) {
      this.#partsBegun = this.#splitter.partsBegun;
      this.#partSinceMs = nowMs;
    }
    state.touched();
  }

  /** Enforces timeouts; to be called about once a second. */
  sweep(nowMs: number): void {
    const state = this.#state;
    if (state.ending) return;
    state.setNow(nowMs);
    const { limits, counters } = state;
    if (!this.#settled && nowMs - this.#openedMs >= limits.prefaceTimeoutMs) {
      counters.prefaceTimeouts++;
      state.end(ErrorCode.ProtocolError, "no preface in time");
    } else if (nowMs - this.#incompleteSinceMs() >= limits.frameTimeoutMs) {
      counters.frameTimeouts++;
      state.end(ErrorCode.ProtocolError, "a frame did not end in time");
    } else if (this.sender.stalledMs(nowMs) >= limits.sendStallTimeoutMs) {
      counters.sendStalls++;
      state.end(ErrorCode.EnhanceYourCalm, "responses are not read");
    } else if (
      state.drainingMs !== undefined &&
      !state.drained &&
      nowMs - state.drainingMs >= limits.drainTimeoutMs
    ) {
      state.finishDrain();
    } else this.#sweepPings(nowMs);
    if (state.streams.size === 0) this.out.shrink();
    state.touched();
  }

  /** The bytes to send, in order; the owner's `wake` is called when there are more. */
  takeOutput(): Uint8Array[] {
    return this.#state.takeOutput();
  }

  /**
   * Notifies the owner of new output, once. Call it after using `sender` or `reset` outside of
   * `receive`.
   */
  touched(): void {
    this.#state.touched();
  }

  /**
   * Takes no more requests, and ends when the open ones have. No request in flight is lost (section
   * 6.8).
   */
  drain(nowMs: number): void {
    const state = this.#state;
    if (state.ending || state.drainingMs !== undefined) return;
    state.setNow(nowMs);
    state.drainingMs = nowMs;
    writeGoAway(this.out, MAX_STREAM_ID, ErrorCode.NoError, "");
    writePing(this.out, DRAIN_PING, 0, false);
    state.touched();
  }

  /** Ends the connection because another client needs its slot. */
  shed(nowMs: number): void {
    const state = this.#state;
    if (state.ending) return;
    state.setNow(nowMs);
    this.counters.shedConnections++;
    if (state.streams.size === 0)
      state.end(ErrorCode.NoError, "too many connections, and this one is idle");
    else state.end(ErrorCode.EnhanceYourCalm, "too many connections of this client");
  }

  /** The socket is gone. */
  lost(): void {
    this.#state.lost();
  }

  /** Resets a stream with an error code, unless it has ended. Does not call its consumer. */
  reset(stream: Http2Stream, code: number): void {
    this.#state.reset(stream, code);
  }

  /** Body bytes of the stream were consumed: the client may send as many more. */
  credit(stream: Http2Stream, sizeBytes: number): void {
    this.#data.credit(stream, sizeBytes);
  }

  /**
   * A service began, or with a negative size ended, to process a request that holds so many bytes.
   */
  working(sizeBytes: number): void {
    this.#data.working(sizeBytes);
  }

  /** Counts as progress of the client: it consumed part of a request. */
  progressed(): void {
    this.#state.progressed();
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
    const state = this.#state;
    if (state.block !== undefined && type !== FrameType.Continuation) {
      return state.fail(ErrorCode.ProtocolError, "a header block is interrupted");
    }
    if (!this.#settled) {
      if (type !== FrameType.Settings || (flags & Flag.Ack) !== 0)
        return state.fail(ErrorCode.ProtocolError, "no SETTINGS behind the preface");
      this.#settled = true;
      state.owner.settled();
      if (state.ending) return false;
    }
    switch (type) {
      case FrameType.Data:
        return this.#data.data(bytes, start, length, flags, streamId);
      case FrameType.Headers:
        return this.#headers.headers(bytes, start, length, flags, streamId);
      case FrameType.Priority:
        return onPriority(state, bytes, start, length, streamId);
      case FrameType.RstStream:
        return onRstStream(state, length, streamId);
      case FrameType.Settings:
        return onSettings(state, bytes, start, length, flags, streamId);
      case FrameType.PushPromise:
        return state.fail(ErrorCode.ProtocolError, "clients do not push");
      case FrameType.Ping:
        return onPing(state, bytes, start, length, flags, streamId);
      case FrameType.GoAway:
        return onGoAway(state, length, streamId);
      case FrameType.WindowUpdate:
        return onWindowUpdate(state, bytes, start, length, streamId);
      case FrameType.Continuation:
        return this.#headers.continuation(bytes, start, length, flags, streamId);
      default:
        // Section 5.5: unknown types are ignored.
        return state.idle(1);
    }
  }

  /** @internal Called by the splitter. */
  frameTooLong(_length: number, _type: number, _streamId: number): void {
    this.#state.fail(ErrorCode.FrameSizeError, `a frame is longer than ${DEFAULT_MAX_FRAME_BYTES}`);
  }

  #sweepPings(nowMs: number): void {
    const due = this.#state.keepAlive.due(nowMs);
    if (due === "ping") writePing(this.out, ALIVE_PING, 0, false);
    else if (due === "lost") {
      this.counters.keepAliveTimeouts++;
      this.#state.end(ErrorCode.NoError, "no acknowledgement of a ping");
    }
  }

  /** When the frame or header block began that is not complete yet; infinity if there is none. */
  #incompleteSinceMs(): number {
    const { block } = this.#state;
    if (block !== undefined) return block.begunMs;
    return this.#splitter.midFrame ? this.#partSinceMs : Number.POSITIVE_INFINITY;
  }
}

/**
 * The client's side of one HTTP/2 connection with gRPC calls (RFC 9113; grpc/grpc,
 * doc/PROTOCOL-HTTP2.md), without its socket: the counterpart of ../http2/connection.ts, with the
 * same sender, splitter and HPACK.
 *
 *   call -> Sender -> Output -> takeOutput
 *   receive -> FrameSplitter -> ClientFrames -> ClientCall -> ClientCallEvents
 *
 * A rule that the server breaks ends the connection: then `ending` is true, every call has ended
 * with UNAVAILABLE, and the owner closes the socket.
 */
import { concat, fromLatin1, GrpcCode, http2, readU32BE } from "@quorate/proto";
import { HpackError } from "../hpack/errors.ts";
import {
  constantFields,
  DEFAULT_TABLE_BYTES,
  type EncodableField,
  type FieldList,
  HpackDecoder,
  Indexing,
} from "../hpack/hpack.ts";
import {
  DEFAULT_MAX_FRAME_BYTES,
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  Flag,
  FrameType,
  MAX_STREAM_ID,
  MAX_WINDOW_BYTES,
  PREFACE,
  Setting,
} from "../http2/constants.ts";
import { HeaderBlock } from "../http2/header-block.ts";
import {
  writeHeaders,
  writePing,
  writeSettings,
  writeSettingsAck,
  writeWindowUpdate,
} from "../http2/output.ts";
import type { Status } from "../service.ts";
import { ClientCall, type ClientCallEvents, encodeTimeout } from "./client-call.ts";
import type { ClientLimits } from "./client-limits.ts";
import { type ClientConnectionOwner, ClientState } from "./client-state.ts";

/** What a call sends besides its messages. */
export interface CallStart {
  /** The method's path, such as "/etcdserverpb.KV/Put". */
  readonly path: string;
  /** Metadata: lower-case names, one char a byte. */
  readonly metadata: readonly EncodableField[];
  /** The time that the server may take; undefined for any. */
  readonly timeoutMs: number | undefined;
}

/** Lists of constant fields for the most paths; a client has a few dozen. */
const MAX_CACHED_PATHS = 256;
/** The payload of a keep-alive PING. */
const ALIVE_PING = new Uint8Array(8);

export class ClientConnection {
  readonly #state: ClientState;
  readonly #splitter: http2.FrameSplitter;
  readonly #heads = new Map<string, FieldList>();
  readonly #common: readonly EncodableField[];
  readonly #pings: ClientPings;

  /**
   * @param server its name as calls state it, "host:port", and whether the connection has TLS
   * @param nowMs the clock's monotonic milliseconds
   */
  constructor(
    limits: ClientLimits,
    owner: ClientConnectionOwner,
    server: { readonly authority: string; readonly isSecure: boolean },
    nowMs: number,
  ) {
    const state = new ClientState(limits, owner);
    this.#state = state;
    this.#splitter = new http2.FrameSplitter(new ClientFrames(state));
    this.#pings = new ClientPings(limits, nowMs);
    this.#common = [
      { name: ":method", value: "POST" },
      { name: ":scheme", value: server.isSecure ? "https" : "http" },
      { name: ":authority", value: server.authority, indexing: Indexing.Add },
      { name: "te", value: "trailers", indexing: Indexing.Add },
      { name: "content-type", value: "application/grpc", indexing: Indexing.Add },
      { name: "user-agent", value: limits.userAgent, indexing: Indexing.Add },
    ];
    state.out.append(fromLatin1(PREFACE), 0, PREFACE.length);
    writeSettings(state.out, [
      [Setting.EnablePush, 0],
      [Setting.InitialWindowSize, limits.streamWindowBytes],
      [Setting.MaxHeaderListSize, limits.maxHeaderListBytes],
    ]);
    const extraBytes = limits.connectionWindowBytes - DEFAULT_WINDOW_BYTES;
    if (extraBytes > 0) writeWindowUpdate(state.out, 0, extraBytes);
  }

  /** Number of calls that have not ended. */
  get openCalls(): number {
    return this.#state.calls.size;
  }

  /** Whether the server takes calls: its SETTINGS have come, and no GOAWAY. */
  get isUsable(): boolean {
    const { isSettled, ending, isDraining, nextId } = this.#state;
    return isSettled && !ending && !isDraining && nextId < MAX_STREAM_ID;
  }

  /** The clock's monotonic milliseconds when the server was last heard of. */
  get lastReadMs(): number {
    return this.#pings.lastReadMs;
  }

  /** Nothing more is read: the owner sends the remaining output and closes the socket. */
  get ending(): boolean {
    return this.#state.ending;
  }

  /** Whether the server has announced that it takes no more calls. */
  get isDraining(): boolean {
    return this.#state.isDraining;
  }

  /**
   * Begins a call. Undefined if as many calls are open as the server or this client allows. Call
   * only while `isUsable`.
   */
  call(start: CallStart, events: ClientCallEvents): ClientCall | undefined {
    const state = this.#state;
    const { limits } = state;
    if (state.calls.size >= Math.min(state.maxStreams, limits.maxConcurrentCalls)) return undefined;
    const call = new ClientCall(state, state.nextId, events);
    state.nextId += 2;
    state.calls.set(call.stream.id, call);
    writeHeaders(state.out, call.stream.id, this.#headOf(start), false);
    call.stream.headersSent = true;
    state.touched();
    return call;
  }

  /** Takes bytes from the server; the chunk must not change any more. */
  receive(chunk: Uint8Array, nowMs: number): void {
    const state = this.#state;
    if (state.ending) return;
    state.sender.nowMs = nowMs;
    this.#pings.read(nowMs);
    this.#splitter.push(chunk, 0);
    state.touched();
  }

  /** The bytes to send, in order; the owner's `wake` is called when there are more. */
  takeOutput(): Uint8Array[] {
    return this.#state.takeOutput();
  }

  /** All that `takeOutput` returned has been sent: its memory is used again. */
  recycle(): void {
    this.#state.out.recycle();
  }

  /** Whether DATA waits only for space in the output. */
  get hasMore(): boolean {
    return this.#state.sender.hasMore;
  }

  /** The output was taken: fills it again. */
  refill(): void {
    this.#state.sender.refill();
  }

  /** Blocks or unblocks DATA, for a socket that takes no more. */
  setBlocked(isBlocked: boolean): void {
    this.#state.sender.setBlocked(isBlocked);
    this.#state.touched();
  }

  /** Pings a silent server; to be called about once a second. */
  sweep(nowMs: number): void {
    const state = this.#state;
    if (state.ending) return;
    const due = this.#pings.due(nowMs, state.calls.size);
    if (due === "ping") writePing(state.out, ALIVE_PING, 0, false);
    else if (due === "lost")
      state.fail(ErrorCode.NoError, "keepalive ping failed to receive ACK within timeout");
    if (state.calls.size === 0) state.out.shrink();
    state.touched();
  }

  /**
   * A call waited in vain: a server that was silent for SILENT_MS is pinged, and given up if it
   * does not acknowledge that within `keepAliveTimeoutMs`.
   */
  doubt(nowMs: number): void {
    const state = this.#state;
    if (state.ending || !this.#pings.isSilent(nowMs)) return;
    writePing(state.out, ALIVE_PING, 0, false);
    state.touched();
  }

  /** Notifies the owner of the output that the constructor wrote. */
  touched(): void {
    this.#state.touched();
  }

  /** The socket is gone, or the owner abandons the connection: every call ends. */
  lost(reason: string): void {
    this.#state.lost(reason);
  }

  /** The header block of a call: the fields of its path are the same for all of them. */
  #headOf({ path, metadata, timeoutMs }: CallStart): Uint8Array {
    let known = this.#heads.get(path);
    if (known === undefined) {
      const field = { name: ":path", value: path, indexing: Indexing.Add };
      known = constantFields(...this.#common.slice(0, 2), field, ...this.#common.slice(2));
      if (this.#heads.size >= MAX_CACHED_PATHS) this.#heads.clear();
      this.#heads.set(path, known);
    }
    const { encoder } = this.#state.sender;
    const head = encoder.encode(known);
    if (metadata.length === 0 && timeoutMs === undefined) return head;
    const own = [...metadata];
    if (timeoutMs !== undefined)
      own.push({ name: "grpc-timeout", value: encodeTimeout(timeoutMs) });
    return concat([head, encoder.encode({ fields: own, constant: false })]);
  }
}

/** Silence after which doubt() pings. etcd ends connections that ping more often than that. */
const SILENT_MS = 5000;

/** Pings of a client on a silent connection (grpc-go: keepalive.ClientParameters). */
class ClientPings {
  readonly #limits: ClientLimits;
  #lastReadMs: number;
  #pingedMs: number | undefined;

  constructor(limits: ClientLimits, nowMs: number) {
    this.#limits = limits;
    this.#lastReadMs = nowMs;
  }

  /** The monotonic time at which the last bytes came, or the connection began. */
  get lastReadMs(): number {
    return this.#lastReadMs;
  }

  /** Bytes have come: whatever they are, the server lives. */
  read(nowMs: number): void {
    this.#lastReadMs = nowMs;
    this.#pingedMs = undefined;
  }

  /** Whether a ping is due because a call waited in vain. */
  isSilent(nowMs: number): boolean {
    if (this.#pingedMs !== undefined || nowMs - this.#lastReadMs < SILENT_MS) return false;
    this.#pingedMs = nowMs;
    return true;
  }

  /** What is due now: a ping, or to give the server up. */
  due(nowMs: number, openCalls: number): "ping" | "lost" | undefined {
    const { keepAliveTimeMs, keepAliveTimeoutMs, pingsWhenIdle } = this.#limits;
    if (this.#pingedMs !== undefined)
      return nowMs - this.#pingedMs >= keepAliveTimeoutMs ? "lost" : undefined;
    if (keepAliveTimeMs === 0) return undefined;
    if (openCalls === 0 && !pingsWhenIdle) return undefined;
    if (nowMs - this.#lastReadMs < keepAliveTimeMs) return undefined;
    this.#pingedMs = nowMs;
    return "ping";
  }
}

/** RFC 9113 section 7, for texts. */
const CODE_NAMES: readonly string[] = Object.keys(ErrorCode);

/** The frames that a server sends to a client (RFC 9113 section 6). */
class ClientFrames implements http2.FrameHandler {
  readonly #state: ClientState;
  readonly #decoder: HpackDecoder;
  #block: HeaderBlock | undefined;
  #receiveWindowBytes: number;
  #uncreditedBytes = 0;

  constructor(state: ClientState) {
    this.#state = state;
    this.#decoder = new HpackDecoder(DEFAULT_TABLE_BYTES, state.limits.maxHeaderListBytes);
    this.#receiveWindowBytes = Math.max(state.limits.connectionWindowBytes, DEFAULT_WINDOW_BYTES);
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
    if (this.#block !== undefined && type !== FrameType.Continuation)
      return this.#state.fail(ErrorCode.ProtocolError, "a header block is interrupted");
    if (!this.#state.isSettled && (type !== FrameType.Settings || (flags & Flag.Ack) !== 0))
      return this.#state.fail(ErrorCode.ProtocolError, "the server there does not speak gRPC");
    switch (type) {
      case FrameType.Data:
        return this.#data(bytes, start, length, flags, streamId);
      case FrameType.Headers:
        return this.#headers(bytes, start, length, flags, streamId);
      case FrameType.Continuation:
        return this.#continuation(bytes, start, length, flags, streamId);
      case FrameType.RstStream:
        return this.#reset(bytes, start, length, streamId);
      case FrameType.Settings:
        return this.#settings(bytes, start, length, flags);
      case FrameType.Ping:
        if (length !== 8)
          return this.#state.fail(ErrorCode.FrameSizeError, "PING has not eight bytes");
        if ((flags & Flag.Ack) === 0) writePing(this.#state.out, bytes, start, true);
        return true;
      case FrameType.GoAway:
        return this.#goAway(bytes, start, length);
      case FrameType.WindowUpdate:
        return this.#windowUpdate(bytes, start, length, streamId);
      case FrameType.PushPromise:
        return this.#state.fail(ErrorCode.ProtocolError, "the server pushes");
      default:
        return true;
    }
  }

  /** @internal Called by the splitter. */
  frameTooLong(): void {
    this.#state.fail(ErrorCode.FrameSizeError, `a frame is longer than ${DEFAULT_MAX_FRAME_BYTES}`);
  }
  #data(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    this.#receiveWindowBytes -= length;
    if (this.#receiveWindowBytes < 0)
      return this.#state.fail(ErrorCode.FlowControlError, "the connection's window is overrun");
    // A stream's window bounds what it may hold; the connection's must not make others wait.
    this.#creditConnection(length);
    let end = start + length;
    if ((flags & Flag.Padded) !== 0) {
      end -= length === 0 ? 1 : bytes[start] + 1;
      if (end < start) return this.#state.fail(ErrorCode.ProtocolError, "padding is too long");
      bytes = bytes.subarray(start + 1, end + 1);
    } else bytes = bytes.subarray(start, end);
    const call = this.#state.calls.get(streamId);
    if (call === undefined) return this.#isKnown(streamId);
    const { stream } = call;
    stream.receiveWindowBytes -= length;
    if (stream.receiveWindowBytes < 0 || stream.remoteEnded)
      return this.#state.fail(ErrorCode.FlowControlError, "a stream's window is overrun");
    stream.remoteEnded = (flags & Flag.EndStream) !== 0;
    // Padding is consumed by its arrival.
    if (bytes.length < length) this.#state.credit(stream, length - bytes.length);
    if (bytes.length > 0) call.data(bytes);
    if (stream.remoteEnded && !call.isEnded) call.endedPlainly();
    return !this.#state.ending;
  }

  #creditConnection(sizeBytes: number): void {
    this.#uncreditedBytes += sizeBytes;
    if (this.#uncreditedBytes * 2 < this.#state.limits.connectionWindowBytes) return;
    writeWindowUpdate(this.#state.out, 0, this.#uncreditedBytes);
    this.#receiveWindowBytes += this.#uncreditedBytes;
    this.#uncreditedBytes = 0;
  }

  #headers(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    let from = start;
    let to = start + length;
    if ((flags & Flag.Padded) !== 0) to -= length === 0 ? 1 : bytes[from++];
    if ((flags & Flag.Priority) !== 0) from += 5;
    if (to < from) return this.#state.fail(ErrorCode.ProtocolError, "HEADERS are too short");
    const isEnd = (flags & Flag.EndStream) !== 0;
    if ((flags & Flag.EndHeaders) !== 0) return this.#complete(streamId, bytes, from, to, isEnd);
    this.#block = new HeaderBlock(streamId, isEnd, false, 0);
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
      return this.#state.fail(ErrorCode.ProtocolError, "CONTINUATION without an open header block");
    block.append(bytes, start, start + length);
    const { maxContinuationFrames, maxHeaderListBytes } = this.#state.limits;
    if (block.frames > maxContinuationFrames + 1 || block.sizeBytes > maxHeaderListBytes)
      return this.#state.fail(ErrorCode.EnhanceYourCalm, "a header block is too long");
    if ((flags & Flag.EndHeaders) === 0) return true;
    this.#block = undefined;
    const whole = block.join();
    return this.#complete(streamId, whole, 0, whole.length, block.endStream);
  }

  #complete(streamId: number, bytes: Uint8Array, from: number, to: number, end: boolean): boolean {
    let fields: ReturnType<HpackDecoder["decode"]>;
    try {
      fields = this.#decoder.decode(bytes, from, to);
    } catch (error) {
      if (!(error instanceof HpackError)) throw error;
      return this.#state.fail(ErrorCode.CompressionError, error.message);
    }
    const call = this.#state.calls.get(streamId);
    if (call === undefined) return this.#isKnown(streamId);
    if (call.stream.remoteEnded)
      return this.#state.fail(ErrorCode.StreamClosed, "HEADERS on a closed stream");
    if (end) call.stream.remoteEnded = true;
    call.headers(fields, end);
    return !this.#state.ending;
  }

  #reset(bytes: Uint8Array, start: number, length: number, streamId: number): boolean {
    if (length !== 4)
      return this.#state.fail(ErrorCode.FrameSizeError, "RST_STREAM does not have four bytes");
    const call = this.#state.calls.get(streamId);
    if (call === undefined) return this.#isKnown(streamId);
    this.#state.calls.delete(streamId);
    this.#state.close(call.stream);
    const code = readU32BE(bytes, start);
    call.aborted(statusOfReset(code), code !== ErrorCode.RefusedStream);
    return !this.#state.ending;
  }

  #settings(bytes: Uint8Array, start: number, length: number, flags: number): boolean {
    if ((flags & Flag.Ack) !== 0) return true;
    if (length % 6 !== 0)
      return this.#state.fail(ErrorCode.FrameSizeError, "a setting does not have six bytes");
    for (let at = start; at < start + length; at += 6) {
      const id = (bytes[at] << 8) | bytes[at + 1];
      const value = readU32BE(bytes, at + 2);
      if (id === Setting.MaxConcurrentStreams) this.#state.maxStreams = value;
      else if (id === Setting.HeaderTableSize) this.#state.sender.encoder.limitTable(value);
      else if (id === Setting.InitialWindowSize && !this.#setStreamWindow(value)) return false;
    }
    writeSettingsAck(this.#state.out);
    if (!this.#state.isSettled) {
      this.#state.isSettled = true;
      this.#state.owner.settled();
    }
    return !this.#state.ending;
  }

  #setStreamWindow(sizeBytes: number): boolean {
    const streams = [...this.#state.calls.values()].map((call) => call.stream);
    const isInRange =
      sizeBytes <= MAX_WINDOW_BYTES && this.#state.sender.setStreamWindow(sizeBytes, streams);
    return isInRange || this.#state.fail(ErrorCode.FlowControlError, "a window is too large");
  }

  /** The calls that the server has not begun end; they may be made again elsewhere. */
  #goAway(bytes: Uint8Array, start: number, length: number): boolean {
    if (length < 8) return this.#state.fail(ErrorCode.FrameSizeError, "GOAWAY is too short");
    this.#state.isDraining = true;
    const last = readU32BE(bytes, start) & MAX_STREAM_ID;
    const code = readU32BE(bytes, start + 4);
    const status = {
      code: GrpcCode.Unavailable,
      message: `the connection is draining (GOAWAY ${CODE_NAMES[code] ?? code})`,
    };
    for (const call of [...this.#state.calls.values()].filter(({ stream }) => stream.id > last)) {
      this.#state.calls.delete(call.stream.id);
      this.#state.close(call.stream);
      call.aborted(status, false);
    }
    return !this.#state.ending;
  }

  #windowUpdate(bytes: Uint8Array, start: number, length: number, streamId: number): boolean {
    if (length !== 4)
      return this.#state.fail(ErrorCode.FrameSizeError, "WINDOW_UPDATE does not have four bytes");
    const increment = readU32BE(bytes, start) & MAX_WINDOW_BYTES;
    const call = streamId === 0 ? undefined : this.#state.calls.get(streamId);
    const isInRange =
      streamId === 0
        ? this.#state.sender.openWindow(increment)
        : call === undefined || this.#state.sender.openStreamWindow(call.stream, increment);
    return isInRange || this.#state.fail(ErrorCode.FlowControlError, "a window is too large");
  }

  /** Frames of calls that have ended may still arrive; others break a rule. */
  #isKnown(streamId: number): boolean {
    if (streamId > 0 && streamId < this.#state.nextId && (streamId & 1) === 1) return true;
    return this.#state.fail(ErrorCode.ProtocolError, "a frame for a stream that was never opened");
  }
}

/** grpc-go's codes for RST_STREAM (internal/transport/http_util.go). */
function statusOfReset(code: number): Status {
  const byCode: Readonly<Record<number, number>> = {
    [ErrorCode.RefusedStream]: GrpcCode.Unavailable,
    [ErrorCode.Cancel]: GrpcCode.Canceled,
    [ErrorCode.EnhanceYourCalm]: GrpcCode.ResourceExhausted,
  };
  return {
    code: byCode[code] ?? GrpcCode.Internal,
    message: `stream terminated by RST_STREAM with error code: ${CODE_NAMES[code] ?? code}`,
  };
}

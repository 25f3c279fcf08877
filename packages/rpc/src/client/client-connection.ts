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
import { concat, fromLatin1 } from "@quorate/proto";
import { constantFields, type EncodableField, type FieldList, Indexing } from "../hpack/encoder.ts";
import {
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  MAX_STREAM_ID,
  PREFACE,
  Setting,
} from "../http2/constants.ts";
import { FrameSplitter } from "../http2/frame-splitter.ts";
import { writeHeaders, writePing, writeSettings, writeWindowUpdate } from "../http2/output.ts";
import { ClientCall, type ClientCallEvents } from "./client-call.ts";
import { ClientFrames } from "./client-frames.ts";
import type { ClientLimits } from "./client-limits.ts";
import { type ClientConnectionOwner, ClientState } from "./client-state.ts";
import { encodeTimeout } from "./response-head.ts";

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
  readonly #splitter: FrameSplitter;
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
    this.#splitter = new FrameSplitter(new ClientFrames(state));
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

  /** What is due now: a ping, or to give the server up. */
  due(nowMs: number, openCalls: number): "ping" | "lost" | undefined {
    const { keepAliveTimeMs, keepAliveTimeoutMs, pingsWhenIdle } = this.#limits;
    if (keepAliveTimeMs === 0) return undefined;
    if (this.#pingedMs !== undefined)
      return nowMs - this.#pingedMs >= keepAliveTimeoutMs ? "lost" : undefined;
    if (openCalls === 0 && !pingsWhenIdle) return undefined;
    if (nowMs - this.#lastReadMs < keepAliveTimeMs) return undefined;
    this.#pingedMs = nowMs;
    return "ping";
  }
}

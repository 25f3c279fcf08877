/** One HTTP/2 connection of a client: takes its streams in, pings it when it is silent, and cuts it off when it pings too much. */
import {
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from "node:http2";
import type { Socket } from "node:net";
import type { Logger, Timer } from "@quorate/host";
import { GrpcCode } from "../src/codes.ts";
import type { ServiceTable } from "../src/service.ts";
import { parseTimeoutMs, unknownMethodText } from "../src/text.ts";
import { type CallConnection, dropRest, type Engine, isGrpc, type RawHeaders, refuse, statusOf } from "./call.ts";
import { ACCEPTED_ENCODINGS, usesGzip } from "./gunzip.ts";
import { type HttpContext, serveHttp2 } from "./http.ts";
import type { ResolvedOptions } from "./options.ts";
import { StreamingCall } from "./streaming.ts";
import { UnaryCall } from "./unary.ts";

/** What the connections of one server share. */
export interface ConnectionContext {
  readonly engine: Engine;
  readonly services: ServiceTable;
  readonly http: HttpContext;
  readonly logger: Logger;
  readonly sessionOptions: ServerOptions;
}

type Headers = IncomingHttpHeaders & IncomingHttpStatusHeader & { ":method"?: string; ":path"?: string };

/** As in grpc-go: three pings too early are one too many. */
const MAX_PING_STRIKES = 2;
/** As in grpc-go: how often a client may ping that has no call open. */
const IDLE_PING_PERIOD_MS = 2 * 60 * 60 * 1000;
/** Streams that a client may reset: so many at once, then so many a second. Past it the connection ends (CVE-2023-44487). */
const STREAM_RESET_BURST = 10_000;
const STREAM_RESETS_PER_SECOND = 5000;
/** A connection's window beyond which the sum of its streams' windows does not count: it is opened again as soon as bytes come in. */
const CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;

/** Options for every session of a server. */
export function sessionOptions(options: ResolvedOptions): ServerOptions {
  return {
    maxSessionMemory: options.maxConnectionMemoryMib,
    streamResetBurst: STREAM_RESET_BURST,
    streamResetRate: STREAM_RESETS_PER_SECOND,
    settings: {
      enablePush: false,
      initialWindowSize: options.receiveWindowBytes,
      maxConcurrentStreams: options.maxConcurrentStreams,
      maxHeaderListSize: options.maxHeaderListBytes,
    },
  } as ServerOptions;
}

/** Must be listened to, or Node ends the process; the close that follows says all we need. */
function onStreamError(): void {}

export class Connection implements CallConnection {
  readonly peerAddress: string;
  readonly peerCommonName: string | undefined;
  readonly #context: ConnectionContext;
  readonly #serves: "all" | "grpc" | "http";
  readonly #session: ServerHttp2Session;
  readonly #socket: Socket;
  #openStreams = 0;
  #pingStrikes = 0;
  #lastPingMs = Number.NEGATIVE_INFINITY;
  #sentSincePing = false;
  #keepAlive: Timer | undefined;

  /** @param socket has not been read from (a preface given back by `unshift` is fine); it is the connection's from here on. */
  constructor(
    context: ConnectionContext,
    socket: Socket,
    serves: "all" | "grpc" | "http",
    peerAddress: string,
    peerCommonName: string | undefined,
  ) {
    this.#context = context;
    this.#serves = serves;
    this.#socket = socket;
    this.peerAddress = peerAddress;
    this.peerCommonName = peerCommonName;
    const session = performServerHandshake(socket, context.sessionOptions);
    this.#session = session;
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    session.on("stream", (stream, headers, _flags, rawHeaders) => this.#accept(stream, headers, rawHeaders as unknown as RawHeaders));
    session.on("ping", () => this.#pinged());
    session.on("error", (error) => context.logger.debug("closed client connection", { "remote-addr": peerAddress, error: error.message }));
    session.on("close", () => this.#keepAlive?.cancel());
    const { grpcKeepAliveIntervalMs, grpcKeepAliveTimeoutMs } = context.engine.options;
    if (grpcKeepAliveIntervalMs > 0 && grpcKeepAliveTimeoutMs > 0) this.#watch(socket.bytesRead);
  }

  sending(): void {
    this.#sentSincePing = true;
  }

  streamClosed(): void {
    this.#openStreams--;
  }

  /**
   * Lets open calls end and takes no new ones. The frame that says so names the last call that was taken, so that the client may repeat
   * later ones elsewhere. (A first notice with an open end, as grpc-go sends it, is not to be had: nghttp2 drops all calls that come after
   * it.)
   */
  drain(): void {
    if (!this.#session.destroyed) this.#session.close();
  }

  #accept(stream: ServerHttp2Stream, headers: Headers, rawHeaders: RawHeaders): void {
    this.#openStreams++;
    stream.on("error", onStreamError);
    if (isGrpc(headers) && this.#serves !== "http") {
      if (this.#startCall(stream, headers, rawHeaders)) return;
    } else if (this.#serves !== "grpc") this.#serveHttp(stream, headers);
    else {
      const message = `invalid gRPC request content-type ${JSON.stringify(headers["content-type"] ?? "")}`;
      refuse(this.#context.engine, stream, { code: GrpcCode.InvalidArgument, message }, 415);
    }
    stream.on("close", () => this.streamClosed());
  }

  #serveHttp(stream: ServerHttp2Stream, headers: Headers): void {
    serveHttp2(this.#context.http, this, stream, headers).then(() => dropRest(this.#context.engine, stream));
  }

  /** False if it answered with an error instead. */
  #startCall(stream: ServerHttp2Stream, headers: Headers, rawHeaders: RawHeaders): boolean {
    const { engine, services } = this.#context;
    const path = headers[":path"] ?? "";
    if (headers[":method"] !== "POST") {
      const message = `Received a HEADERS frame with :method ${JSON.stringify(headers[":method"])} which should be POST`;
      refuse(engine, stream, { code: GrpcCode.Internal, message }, 405);
      return false;
    }
    const timeout = headers["grpc-timeout"] as string | undefined;
    let deadlineMs: number | undefined;
    if (timeout !== undefined) {
      const timeoutMs = parseTimeoutMs(timeout);
      if (timeoutMs === undefined) {
        refuse(engine, stream, { code: GrpcCode.Internal, message: `malformed grpc-timeout: ${timeout}` }, 400);
        return false;
      }
      if (timeoutMs === 0) {
        refuse(engine, stream, { code: GrpcCode.DeadlineExceeded, message: "context deadline exceeded" });
        return false;
      }
      deadlineMs = engine.clock.monotonicMs() + timeoutMs;
    }
    const unary = services.unary.get(path);
    const streaming = unary === undefined ? services.stream.get(path) : undefined;
    if (unary === undefined && streaming === undefined) {
      refuse(engine, stream, { code: GrpcCode.Unimplemented, message: unknownMethodText(services, path) });
      return false;
    }
    let gzip: boolean;
    try {
      gzip = usesGzip(headers["grpc-encoding"] as string | undefined);
    } catch (error) {
      refuse(engine, stream, statusOf(error), 200, { "grpc-accept-encoding": ACCEPTED_ENCODINGS });
      return false;
    }
    if (unary !== undefined) new UnaryCall(engine, this, stream, path, deadlineMs, rawHeaders, gzip, unary);
    else if (streaming !== undefined) new StreamingCall(engine, this, stream, path, deadlineMs, rawHeaders, gzip, streaming);
    return true;
  }

  /** grpc-go's policy against clients that ping too much. */
  #pinged(): void {
    const { grpcKeepAliveMinTimeMs } = this.#context.engine.options;
    if (grpcKeepAliveMinTimeMs === 0) return;
    const nowMs = this.#context.engine.clock.monotonicMs();
    const lastMs = this.#lastPingMs;
    this.#lastPingMs = nowMs;
    if (this.#sentSincePing) {
      this.#sentSincePing = false;
      this.#pingStrikes = 0;
      return;
    }
    const periodMs = this.#openStreams === 0 ? IDLE_PING_PERIOD_MS : grpcKeepAliveMinTimeMs;
    if (lastMs + periodMs > nowMs) this.#pingStrikes++;
    if (this.#pingStrikes <= MAX_PING_STRIKES) return;
    this.#context.logger.debug("client pings too often", { "remote-addr": this.peerAddress });
    const session = this.#session;
    if (session.destroyed) return;
    session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, undefined, Buffer.from("too_many_pings", "latin1"));
    // The frame must leave before the socket goes.
    setImmediate(() => session.destroy());
  }

  /** Pings a client that has sent nothing for the interval, and gives up on one that does not answer. */
  #watch(seenBytes: number): void {
    const { clock, options } = this.#context.engine;
    this.#keepAlive = clock.after(options.grpcKeepAliveIntervalMs, () => {
      const session = this.#session;
      if (session.destroyed) return;
      const bytes = this.#socket.bytesRead;
      if (bytes !== seenBytes) {
        this.#watch(bytes);
        return;
      }
      session.ping(() => {});
      this.#keepAlive = clock.after(options.grpcKeepAliveTimeoutMs, () => {
        if (session.destroyed) return;
        if (this.#socket.bytesRead !== bytes) {
          this.#watch(this.#socket.bytesRead);
          return;
        }
        this.#context.logger.debug("client does not answer pings", { "remote-addr": this.peerAddress });
        session.destroy();
      });
    });
  }
}

/**
 * The client port: gRPC and plain HTTP on the same address, in plain text (HTTP/2 with prior
 * knowledge, or HTTP/1.1, distinguished by the first bytes) or over TLS (distinguished by ALPN).
 *
 *   socket -> (TLS, certificate checks) -> which protocol? -> EngineSocket (HTTP/2)
 *          -> Dispatcher -> UnaryCall | StreamingCall | HttpCall
 *                                                          -> node:http (HTTP/1.1) -> HttpHandler
 */
import type { Server as HttpServer } from "node:http";
import type { Socket } from "node:net";
import type { Clock, Logger, Timer } from "@quorate/host";
import { createHttp1Server, serveHttp1, type TlsSource, tlsSource } from "@quorate/host/node";
import { DeadlineQueue } from "../../src/deadlines.ts";
import { Dispatcher } from "../../src/grpc/dispatcher.ts";
import { Inflater } from "../../src/grpc/inflater.ts";
import type { GrpcShared } from "../../src/grpc/shared.ts";
import type { ByteBudget } from "../../src/http2/byte-budget.ts";
import type { EngineCounters } from "../../src/http2/counters.ts";
import { clientOf } from "../../src/http2/peer.ts";
import { Http2Shared } from "../../src/http2/shared.ts";
import type { HttpHandler, RpcObserver, ServiceTable } from "../../src/service.ts";
import type { BoundAddress, ListenAddress, ResolvedOptions } from "../options.ts";
import type { Accepted } from "./accepted.ts";
import { EngineSocket, SocketContext } from "./engine-socket.ts";
import { nodeCompressor } from "./gzip.ts";
import { Listener, type ListenerOwner } from "./listener.ts";
import { type EngineServerOptions, resolveEngineOptions, type ServerLimits } from "./options.ts";

export interface EngineServerDependencies {
  readonly services: ServiceTable;
  readonly http: HttpHandler;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer?: RpcObserver | undefined;
}

/** Counters since the server's start. */
export interface ServerCounters {
  readonly activeConnections: number;
  readonly acceptedConnections: number;
  /**
   * Closed when their first headers were complete, because all connections were taken and their
   * client had the most of them.
   */
  readonly refusedConnections: number;
  /**
   * Closed because all connections of their address were taken and a client with fewer connected,
   * or a newer one of the same client.
   */
  readonly displacedConnections: number;
  /** Closed in their handshakes because too many connections were in theirs. */
  readonly displacedHandshakes: number;
  /** Drained because they were idle for long while most connections were taken. */
  readonly drainedIdleConnections: number;
  /** Closed during the TLS handshake, or because of their certificate. */
  readonly failedHandshakes: number;
  /** Those of them whose handshake did not end in time. */
  readonly handshakeTimeouts: number;
  /** Closed because they did not send enough bytes to detect the protocol in time. */
  readonly silentConnections: number;
  /** Closed because their clients did not read. */
  readonly stalledConnections: number;
  /** Bytes of gRPC messages, without prefixes and headers. */
  readonly receivedMessageBytes: number;
  readonly sentMessageBytes: number;
  /**
   * Bytes of requests that are being received or processed, of responses that wait for clients'
   * windows, of open streams and their headers, and of bytes that wait for sockets.
   */
  readonly heldBytes: number;
  readonly pendingBytes: number;
  readonly headBytes: number;
  readonly unsentBytes: number;
  /**
   * Requests that were decompressed on another thread, and times that connections waited for their
   * allowance.
   */
  readonly inflatedMessages: number;
  readonly inflateWaits: number;
  readonly http2: Readonly<EngineCounters>;
}

/** Maximum time of an HTTP/1.1 request from its first byte to its last. */
const HTTP1_REQUEST_TIMEOUT_MS = 60_000;
const HTTP1_CHECK_PERIOD_MS = 5_000;

/** The responses to malformed HTTP/1.1 requests. Bytes that are not HTTP/1.1 get none. */
const HTTP1_ERRORS: Readonly<Record<string, string>> = {
  HPE: "400 Bad Request",
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "413 Payload Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
  HPE_INVALID_METHOD: "",
  HPE_INVALID_VERSION: "",
  HPE_INVALID_CONSTANT: "",
};

export class EngineServer implements ListenerOwner {
  readonly #listenAddresses: readonly ListenAddress[];
  readonly tls: TlsSource | undefined;
  readonly options: ResolvedOptions;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly #limits: ServerLimits;
  readonly #http2: Http2Shared;
  readonly #grpc: GrpcShared;
  readonly #context: SocketContext;
  readonly #httpServer: HttpServer;
  readonly #http1 = new WeakMap<Socket, { readonly one: Accepted; readonly listener: Listener }>();
  readonly #connections = new Set<EngineSocket>();
  readonly #sockets = new Set<Accepted>();
  readonly #listeners: Listener[] = [];
  #sweeper: Timer | undefined;
  #acceptedConnections = 0;
  #closing: Promise<void> | undefined;
  #allClosed: (() => void) | undefined;

  /**
   * Throws if a secure address has no TLS options, or an option is out of range. Opens nothing
   * before `listen`.
   */
  constructor(options: EngineServerOptions, dependencies: EngineServerDependencies) {
    if (options.tls === undefined && options.listen.some((address) => address.secure)) {
      throw new Error("a secure listen address needs TLS options");
    }
    this.#listenAddresses = options.listen;
    this.tls = options.tls && tlsSource(options.tls);
    const { server, http2, limits } = resolveEngineOptions(options);
    this.options = server;
    this.#limits = limits;
    this.clock = dependencies.clock;
    this.logger = dependencies.logger;
    this.#http2 = new Http2Shared(
      http2,
      limits.maxHeldTotalBytes,
      limits.maxPendingTotalBytes,
      limits.maxHeadTotalBytes,
    );
    this.#context = new SocketContext(this.#http2, dependencies.clock, limits.maxUnsentTotalBytes);
    this.#grpc = {
      limits: {
        maxRequestBytes: server.maxRequestBytes,
        maxResponseBytes: 2 ** 31 - 1,
        maxHttpBodyBytes: server.maxHttpBodyBytes,
        sendBudgetBytes: server.sendBudgetBytes,
      },
      services: dependencies.services,
      http: dependencies.http,
      clock: dependencies.clock,
      logger: dependencies.logger,
      deadlines: new DeadlineQueue(dependencies.clock),
      compressor: nodeCompressor,
      inflater: new Inflater(nodeCompressor, dependencies.clock),
      observer: dependencies.observer,
      receivedMessageBytes: 0,
      sentMessageBytes: 0,
    };
    this.#httpServer = this.#createHttp1Server();
  }

  /**
   * Opens all addresses, or none: rejects with Node's error if one cannot be opened. The result is
   * in the order of the options.
   */
  async listen(): Promise<BoundAddress[]> {
    const bound: BoundAddress[] = [];
    try {
      for (const address of this.#listenAddresses) {
        const listener = new Listener(
          address,
          new Dispatcher(this.#grpc, address.serves ?? "all"),
          this,
        );
        this.#listeners.push(listener);
        bound.push(await listener.open());
      }
    } catch (error) {
      for (const listener of this.#listeners.splice(0)) void listener.close();
      throw error;
    }
    this.#sweeper = this.clock.every(this.#limits.sweepPeriodMs, () => this.#sweep());
    return bound;
  }

  /** The current counters. */
  counters(): ServerCounters {
    return {
      activeConnections: this.#sockets.size,
      acceptedConnections: this.#acceptedConnections,
      refusedConnections: this.#sum((listener) => listener.slotCounters.refused),
      displacedConnections: this.#sum((listener) => listener.slotCounters.displaced),
      displacedHandshakes: this.#sum((listener) => listener.slotCounters.displacedUnidentified),
      drainedIdleConnections: this.#sum((listener) => listener.slotCounters.drained),
      failedHandshakes: this.#sum((listener) => listener.failedHandshakes),
      handshakeTimeouts: this.#sum((listener) => listener.handshakeTimeouts),
      silentConnections: this.#sum((listener) => listener.silentConnections),
      stalledConnections: this.#context.stalledConnections,
      receivedMessageBytes: this.#grpc.receivedMessageBytes,
      sentMessageBytes: this.#grpc.sentMessageBytes,
      heldBytes: this.#http2.held.usedBytes,
      pendingBytes: this.#http2.pending.usedBytes,
      headBytes: this.#http2.heads.usedBytes,
      unsentBytes: this.#context.unsentBytes,
      inflatedMessages: this.#grpc.inflater.inflated,
      inflateWaits: this.#grpc.inflater.throttled,
      http2: this.#http2.counters,
    };
  }

  /**
   * Accepts no more connections and calls, lets the open ones end, and cuts off the rest after
   * `graceMs`. Resolves when nothing is open. Services end their own streams.
   */
  close(graceMs: number): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  async #close(graceMs: number): Promise<void> {
    const servers = this.#listeners.map((listener) => listener.close());
    // It does not listen: closing it only stops its timer and closes idle connections.
    this.#httpServer.close();
    this.#httpServer.closeIdleConnections();
    for (const one of this.#sockets)
      if (one.phase === "handshake" || one.phase === "deciding") one.destroy();
    const nowMs = this.clock.monotonicMs();
    for (const one of this.#connections) one.connection.drain(nowMs);
    if (this.#sockets.size > 0) {
      const timer = this.clock.after(graceMs, () => {
        for (const one of this.#sockets) one.destroy();
      });
      await new Promise<void>((resolve) => {
        this.#allClosed = resolve;
      });
      timer.cancel();
    }
    this.#sweeper?.cancel();
    this.#grpc.deadlines.clear();
    await Promise.all(servers);
  }

  accepted(one: Accepted): void {
    this.#acceptedConnections++;
    this.#sockets.add(one);
    one.socket.on("close", () => {
      this.#sockets.delete(one);
      if (this.#sockets.size === 0) this.#allClosed?.();
    });
  }

  serveHttp2(one: Accepted, socket: Socket, listener: Listener): void {
    const peer = one.peer ?? { peerAddress: "", peerCommonName: undefined };
    const engine = new EngineSocket(this.#context, socket, listener.dispatcher, peer, () =>
      listener.identified(one),
    );
    one.engine = engine;
    this.#connections.add(engine);
    socket.on("close", () => this.#connections.delete(engine));
    if (this.#closing) engine.connection.drain(this.clock.monotonicMs());
  }

  serveHttp1(one: Accepted, socket: Socket, listener: Listener): void {
    if (listener.address.serves === "grpc" || this.#closing) {
      socket.destroy();
      return;
    }
    this.#http1.set(socket, { one, listener });
    this.#httpServer.emit("connection", socket);
  }

  /** The budget for an HTTP/1.1 connection's unsent responses: the same total as HTTP/2's. */
  #budgetOf(one: Accepted, socket: Socket): ByteBudget {
    if (one.responses !== undefined) return one.responses;
    const { pending, limits } = this.#http2;
    const budget = pending.join(limits.maxPendingBytes, clientOf(one.peer!), () => {
      this.#http2.counters.largestHolderCuts++;
      one.destroy();
    });
    one.responses = budget;
    if (socket.destroyed) budget.leave();
    else socket.on("close", () => budget.leave());
    return budget;
  }

  #createHttp1Server(): HttpServer {
    const server = this.options;
    const http = {
      handler: this.#grpc.http,
      maxBodyBytes: server.maxHttpBodyBytes,
      logger: this.logger,
    };
    const options = {
      maxHeaderSize: server.maxHeaderListBytes,
      requireHostHeader: false,
      headersTimeout: server.handshakeTimeoutMs,
      requestTimeout: HTTP1_REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: Math.min(server.handshakeTimeoutMs, HTTP1_CHECK_PERIOD_MS),
    };
    const httpServer = createHttp1Server(options, (request, response) => {
      const socket = request.socket;
      const known = this.#http1.get(socket);
      if (known === undefined) {
        socket.destroy();
        return;
      }
      const { one, listener } = known;
      one.request(1);
      let heldBytes = 0;
      const mayHold = (sizeBytes: number): boolean => {
        const budget = this.#budgetOf(one, socket);
        if (socket.destroyed || !budget.take(sizeBytes)) return false;
        heldBytes = sizeBytes;
        return true;
      };
      response.on("close", () => {
        if (heldBytes > 0) one.responses!.give(heldBytes);
        one.request(-1);
        if (this.#closing) socket.destroySoon();
      });
      listener.identified(one);
      if (!socket.destroyed)
        void serveHttp1(http, one.peer!, request, response, this.#closing !== undefined, mayHold);
    });
    httpServer.on("clientError", (error: Error & { code?: string }, socket) => {
      const statusLine = HTTP1_ERRORS[error.code ?? ""] ?? HTTP1_ERRORS["HPE"];
      if (socket.writable && statusLine !== "")
        socket.end(`HTTP/1.1 ${statusLine}\r\nConnection: close\r\n\r\n`);
      else socket.destroy();
    });
    httpServer.timeout = server.httpIdleTimeoutMs;
    httpServer.keepAliveTimeout = server.httpIdleTimeoutMs;
    // The server never listens but is passed its sockets; only this event starts the timer that
    // enforces request timeouts.
    httpServer.emit("listening");
    return httpServer;
  }

  #sum(count: (listener: Listener) => number): number {
    return this.#listeners.reduce((sum, listener) => sum + count(listener), 0);
  }

  #sweep(): void {
    const nowMs = this.clock.monotonicMs();
    for (const one of this.#connections) one.sweep(nowMs);
    for (const listener of this.#listeners) listener.sweep(nowMs);
  }
}

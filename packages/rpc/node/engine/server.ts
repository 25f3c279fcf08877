/**
 * The client port on our own engine: gRPC and plain HTTP on the same address, in plain text (HTTP/2 with prior knowledge, or HTTP/1.1, told
 * apart by the first bytes) or over TLS (told apart by ALPN).
 *
 *   socket -> (TLS, certificate checks) -> which protocol? -> EngineSocket (HTTP/2) -> Dispatcher -> UnaryCall | StreamingCall | HttpCall
 *                                                          -> node:http (HTTP/1.1) -> HttpHandler
 */
import type { Server as HttpServer } from "node:http";
import { type AddressInfo, createServer as createNetServer, type Server as NetServer, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from "node:tls";
import type { Clock, Logger, Timer } from "@quorate/host";
import {
  alternativeNames,
  commonName,
  createHttp1Server,
  demandsClientCertificate,
  type HttpPeer,
  handshakeFailure,
  OpenTlsSockets,
  refuseCertificate,
  serveHttp1,
  serverTlsOptions,
  type TlsSource,
  tlsSource,
} from "@quorate/host/node";
import { DeadlineQueue } from "../../src/deadlines.ts";
import { Dispatcher } from "../../src/grpc/dispatcher.ts";
import type { GrpcShared } from "../../src/grpc/shared.ts";
import type { Peer } from "../../src/http2/connection.ts";
import type { EngineCounters } from "../../src/http2/counters.ts";
import { Http2Shared } from "../../src/http2/shared.ts";
import type { HttpHandler, RpcObserver, ServiceTable } from "../../src/service.ts";
import type { BoundAddress, ListenAddress } from "../options.ts";
import { addressOf, removeStaleSocket } from "./address.ts";
import { EngineSocket, SocketContext } from "./engine-socket.ts";
import { readFirstBytes } from "./first-bytes.ts";
import { nodeCompressor } from "./gzip.ts";
import { type EngineServerOptions, type ResolvedEngineOptions, resolveEngineOptions } from "./options.ts";

export interface EngineServerDependencies {
  readonly services: ServiceTable;
  readonly http: HttpHandler;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer?: RpcObserver | undefined;
}

/** What a server has counted since it was made. */
export interface ServerCounters {
  readonly activeConnections: number;
  readonly acceptedConnections: number;
  /** Closed as they came, because there were too many. */
  readonly refusedConnections: number;
  /** Closed during the TLS handshake, or because of their certificate. */
  readonly failedHandshakes: number;
  /** Those of them whose handshake did not end in time. */
  readonly handshakeTimeouts: number;
  /** Closed because they did not say what protocol they speak in time. */
  readonly silentConnections: number;
  /** Closed because they did not take what they were sent. */
  readonly stalledConnections: number;
  /** Bytes of gRPC messages, without prefixes and headers. */
  readonly receivedMessageBytes: number;
  readonly sentMessageBytes: number;
  /**
   * Bytes of requests that are being received or worked on, of answers that wait for clients' windows, of open streams and their headers,
   * and of what waits for sockets.
   */
  readonly heldBytes: number;
  readonly pendingBytes: number;
  readonly headBytes: number;
  readonly unsentBytes: number;
  readonly http2: Readonly<EngineCounters>;
}

/** At most one warning about refused connections in this time. */
const REFUSAL_LOG_PERIOD_MS = 10_000;
/** How long an HTTP/1.1 request may take from its first byte to its last. */
const HTTP1_REQUEST_TIMEOUT_MS = 60_000;
const HTTP1_CHECK_PERIOD_MS = 5_000;

/** What a broken HTTP/1.1 request is answered with. What is no HTTP/1.1 at all would not understand an answer in it. */
const HTTP1_ERRORS: Readonly<Record<string, string>> = {
  HPE: "400 Bad Request",
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "413 Payload Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
  HPE_INVALID_METHOD: "",
  HPE_INVALID_VERSION: "",
  HPE_INVALID_CONSTANT: "",
};

export class EngineServer {
  readonly #listenAddresses: readonly ListenAddress[];
  readonly #tls: TlsSource | undefined;
  readonly #options: ResolvedEngineOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #http2: Http2Shared;
  readonly #grpc: GrpcShared;
  readonly #context: SocketContext;
  readonly #httpServer: HttpServer;
  readonly #httpPeers = new WeakMap<Socket, HttpPeer>();
  readonly #connections = new Set<EngineSocket>();
  readonly #sockets = new Set<Socket>();
  /** Sockets that have not told their protocol yet, and since when. */
  readonly #undecided = new Map<Socket, number>();
  readonly #servers: NetServer[] = [];
  /** Ends the listening for new TLS options. */
  readonly #forgetTls: (() => void)[] = [];
  #sweeper: Timer | undefined;
  #acceptedConnections = 0;
  #refusedConnections = 0;
  #failedHandshakes = 0;
  #handshakeTimeouts = 0;
  #silentConnections = 0;
  #lastRefusalLogMs = Number.NEGATIVE_INFINITY;
  #closing: Promise<void> | undefined;
  #allClosed: (() => void) | undefined;

  /** Throws if a secure address has no TLS options, or an option is out of its range. Nothing is opened before `listen`. */
  constructor(options: EngineServerOptions, dependencies: EngineServerDependencies) {
    if (options.tls === undefined && options.listen.some((address) => address.secure)) {
      throw new Error("a secure listen address needs TLS options");
    }
    this.#listenAddresses = options.listen;
    this.#tls = options.tls && tlsSource(options.tls);
    this.#options = resolveEngineOptions(options);
    this.#clock = dependencies.clock;
    this.#logger = dependencies.logger;
    const { server, http2, limits } = this.#options;
    this.#http2 = new Http2Shared(http2, limits.maxHeldTotalBytes, limits.maxPendingTotalBytes, limits.maxHeadTotalBytes);
    this.#context = new SocketContext(this.#http2, dependencies.clock, limits.maxUnsentTotalBytes);
    this.#grpc = {
      limits: {
        maxRequestBytes: server.maxRequestBytes,
        maxAnswerBytes: 2 ** 31 - 1,
        maxHttpBodyBytes: server.maxHttpBodyBytes,
        sendBudgetBytes: server.sendBudgetBytes,
      },
      services: dependencies.services,
      http: dependencies.http,
      clock: dependencies.clock,
      logger: dependencies.logger,
      deadlines: new DeadlineQueue(dependencies.clock),
      compressor: nodeCompressor,
      observer: dependencies.observer,
      receivedMessageBytes: 0,
      sentMessageBytes: 0,
    };
    this.#httpServer = this.#createHttp1Server();
  }

  /** Opens all addresses, or none: rejects with Node's error if one cannot be opened. The result is in the order of the options. */
  async listen(): Promise<BoundAddress[]> {
    const bound: BoundAddress[] = [];
    try {
      for (const address of this.#listenAddresses) bound.push(await this.#open(address));
    } catch (error) {
      for (const server of this.#servers.splice(0)) server.close();
      throw error;
    }
    this.#sweeper = this.#clock.every(this.#options.limits.sweepPeriodMs, () => this.#sweep());
    return bound;
  }

  /** What was counted so far. */
  counters(): ServerCounters {
    return {
      activeConnections: this.#sockets.size,
      acceptedConnections: this.#acceptedConnections,
      refusedConnections: this.#refusedConnections,
      failedHandshakes: this.#failedHandshakes,
      handshakeTimeouts: this.#handshakeTimeouts,
      silentConnections: this.#silentConnections,
      stalledConnections: this.#context.stalledConnections,
      receivedMessageBytes: this.#grpc.receivedMessageBytes,
      sentMessageBytes: this.#grpc.sentMessageBytes,
      heldBytes: this.#http2.held.usedBytes,
      pendingBytes: this.#http2.pending.usedBytes,
      headBytes: this.#http2.heads.usedBytes,
      unsentBytes: this.#context.unsentBytes,
      http2: this.#http2.counters,
    };
  }

  /**
   * Takes no more connections and calls, lets those that are open end, and cuts off what is left after `graceMs`. Resolves when nothing is
   * open any more. Streams that last are for their services to end.
   */
  close(graceMs: number): Promise<void> {
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<void> {
    const servers = this.#servers.splice(0).map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
    // It does not listen, so closing it only stops its timer and closes what is idle.
    for (const forget of this.#forgetTls.splice(0)) forget();
    this.#httpServer.close();
    this.#httpServer.closeIdleConnections();
    for (const socket of this.#undecided.keys()) socket.destroy();
    const nowMs = this.#clock.monotonicMs();
    for (const one of this.#connections) one.connection.drain(nowMs);
    if (this.#sockets.size > 0) {
      const timer = this.#clock.after(graceMs, () => {
        for (const socket of this.#sockets) socket.destroy();
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

  #open(address: ListenAddress): Promise<BoundAddress> {
    const dispatcher = new Dispatcher(this.#grpc, address.serves ?? "all");
    const tlsServer = address.secure && this.#tls !== undefined ? this.#tlsServer(this.#tls, address, dispatcher) : undefined;
    const server = createNetServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 }, (socket) =>
      this.#accept(socket, address, dispatcher, tlsServer),
    );
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.once("listening", () => {
        server.off("error", reject);
        server.on("error", (error) => this.#logger.warn("failed to accept client connection", { error: error.message }));
        this.#servers.push(server);
        const bound = server.address() as AddressInfo | string;
        if (typeof bound === "string") resolve({ host: undefined, port: undefined, path: bound, secure: address.secure });
        else resolve({ host: bound.address, port: bound.port, path: undefined, secure: address.secure });
      });
      if (address.path === undefined) server.listen({ host: address.host, port: address.port ?? 0 });
      else {
        removeStaleSocket(address.path);
        server.listen({ path: address.path });
      }
    });
  }

  #accept(socket: Socket, address: ListenAddress, dispatcher: Dispatcher, tlsServer: TlsServer | undefined): void {
    socket.on("error", () => {});
    if (this.#closing || this.#sockets.size >= this.#options.server.maxConnections) {
      this.#refuse(socket);
      return;
    }
    this.#acceptedConnections++;
    this.#sockets.add(socket);
    socket.on("close", () => {
      this.#sockets.delete(socket);
      if (this.#sockets.size === 0) this.#allClosed?.();
    });
    // Asked for now, the socket still knows it when a handshake has failed.
    const peerAddress = addressOf(socket);
    if (tlsServer !== undefined) tlsServer.emit("connection", socket);
    else this.#decide(socket, address, dispatcher, { peerAddress, peerCommonName: undefined });
  }

  #refuse(socket: Socket): void {
    socket.destroy();
    if (this.#closing) return;
    this.#refusedConnections++;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#lastRefusalLogMs < REFUSAL_LOG_PERIOD_MS) return;
    this.#lastRefusalLogMs = nowMs;
    this.#logger.warn("refused client connections: too many are open", { "max-connections": this.#options.server.maxConnections });
  }

  #tlsServer(source: TlsSource, address: ListenAddress, dispatcher: Dispatcher): TlsServer {
    const protocols = address.serves === "http" ? ["http/1.1"] : address.serves === "grpc" ? ["h2"] : ["h2", "http/1.1"];
    const server = createTlsServer({
      ...serverTlsOptions(source.current, protocols),
      handshakeTimeout: this.#options.server.handshakeTimeoutMs,
    });
    this.#forgetTls.push(source.onChange(() => server.setSecureContext(serverTlsOptions(source.current, protocols))));
    const open = new OpenTlsSockets(source, (socket, reason) => {
      this.#handshakeFailed(socket, reason);
      socket.destroy();
    });
    this.#forgetTls.push(() => open.close());
    server.on("tlsClientError", (error: Error & { code?: string }, socket) => {
      if (error.code === "ERR_TLS_HANDSHAKE_TIMEOUT") this.#handshakeTimeouts++;
      this.#handshakeFailed(socket, handshakeFailure(error, socket));
      // Node only tells of it.
      socket.destroy();
    });
    server.on("secureConnection", (socket) => {
      socket.on("error", () => {});
      const tls = source.current;
      const demanded = demandsClientCertificate(tls);
      const certificate = demanded ? socket.getPeerX509Certificate() : undefined;
      const refusal = refuseCertificate(tls, certificate, demanded);
      if (refusal !== undefined) {
        this.#handshakeFailed(socket, refusal);
        socket.destroy();
        return;
      }
      open.add(socket);
      const peer = { peerAddress: addressOf(socket), peerCommonName: certificate === undefined ? undefined : commonName(certificate) };
      if (socket.alpnProtocol === "h2") this.#serveHttp2(socket, dispatcher, peer);
      else if (socket.alpnProtocol) this.#serveHttp1(socket, address, peer);
      else this.#decide(socket, address, dispatcher, peer);
    });
    return server;
  }

  #handshakeFailed(socket: TLSSocket, reason: string): void {
    this.#failedHandshakes++;
    const certificate = socket.getPeerX509Certificate?.();
    const names = certificate === undefined ? undefined : alternativeNames(certificate);
    const fields = {
      "remote-addr": addressOf(socket),
      "server-name": typeof socket.servername === "string" ? socket.servername : "",
      ...(names === undefined ? {} : { "ip-addresses": names.ipAddresses, "dns-names": names.dnsNames }),
      error: reason,
    };
    // Port scanners and health checks just connect and leave.
    if (reason === "EOF") this.#logger.debug("rejected connection on client endpoint", fields);
    else this.#logger.warn("rejected connection on client endpoint", fields);
  }

  #decide(socket: Socket, address: ListenAddress, dispatcher: Dispatcher, peer: Peer): void {
    this.#undecided.set(socket, this.#clock.monotonicMs());
    const forget = () => this.#undecided.delete(socket);
    socket.on("close", forget);
    readFirstBytes(socket, (isHttp2) => {
      forget();
      socket.off("close", forget);
      if (isHttp2) this.#serveHttp2(socket, dispatcher, peer);
      else this.#serveHttp1(socket, address, peer);
    });
  }

  #serveHttp2(socket: Socket, dispatcher: Dispatcher, peer: Peer): void {
    const one = new EngineSocket(this.#context, socket, dispatcher, peer);
    this.#connections.add(one);
    socket.on("close", () => this.#connections.delete(one));
    if (this.#closing) one.connection.drain(this.#clock.monotonicMs());
  }

  #serveHttp1(socket: Socket, address: ListenAddress, peer: HttpPeer): void {
    if (address.serves === "grpc" || this.#closing) {
      socket.destroy();
      return;
    }
    this.#httpPeers.set(socket, peer);
    this.#httpServer.emit("connection", socket);
  }

  #createHttp1Server(): HttpServer {
    const { server } = this.#options;
    const http = { handler: this.#grpc.http, maxBodyBytes: server.maxHttpBodyBytes, logger: this.#logger };
    const options = {
      maxHeaderSize: server.maxHeaderListBytes,
      requireHostHeader: false,
      headersTimeout: server.handshakeTimeoutMs,
      requestTimeout: HTTP1_REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: Math.min(server.handshakeTimeoutMs, HTTP1_CHECK_PERIOD_MS),
    };
    const httpServer = createHttp1Server(options, (request, response) => {
      const socket = request.socket;
      response.on("close", () => {
        if (this.#closing) socket.destroySoon();
      });
      const peer = this.#httpPeers.get(socket) ?? { peerAddress: addressOf(socket), peerCommonName: undefined };
      void serveHttp1(http, peer, request, response, this.#closing !== undefined);
    });
    httpServer.on("clientError", (error: Error & { code?: string }, socket) => {
      const answer = HTTP1_ERRORS[error.code ?? ""] ?? HTTP1_ERRORS["HPE"];
      if (socket.writable && answer !== "") socket.end(`HTTP/1.1 ${answer}\r\nConnection: close\r\n\r\n`);
      else socket.destroy();
    });
    httpServer.timeout = server.httpIdleTimeoutMs;
    httpServer.keepAliveTimeout = server.httpIdleTimeoutMs;
    // It is given its sockets and never listens, but only this event starts the timer that holds requests to their timeouts.
    httpServer.emit("listening");
    return httpServer;
  }

  #sweep(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const one of this.#connections) one.sweep(nowMs);
    for (const [socket, sinceMs] of this.#undecided) {
      if (nowMs - sinceMs < this.#options.server.handshakeTimeoutMs) continue;
      this.#silentConnections++;
      this.#undecided.delete(socket);
      socket.destroy();
    }
  }
}

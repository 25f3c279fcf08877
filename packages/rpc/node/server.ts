/**
 * The client port, on node:http2: gRPC and plain HTTP on the same address, in plain text (HTTP/2 with prior knowledge, or HTTP/1.1, told
 * apart by the first bytes) or over TLS (told apart by ALPN).
 *
 *   socket -> (TLS, certificate checks) -> which protocol? -> Connection (HTTP/2) -> UnaryCall | StreamingCall | HttpHandler
 *                                                          -> node:http (HTTP/1.1) -> HttpHandler
 */
import { lstatSync, unlinkSync } from "node:fs";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import { type AddressInfo, createServer as createNetServer, type Server as NetServer, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from "node:tls";
import type { Clock, Logger } from "@quorate/host";
import {
  alternativeNames,
  commonName,
  demandsClientCertificate,
  handshakeFailure,
  refuseCertificate,
  serverTlsOptions,
  sniffProtocol,
  type TlsOptions,
} from "@quorate/host/node";
import { DeadlineQueue } from "../src/deadlines.ts";
import type { HttpHandler, RpcObserver, ServiceTable } from "../src/service.ts";
import type { Engine } from "./call.ts";
import { Connection, type ConnectionContext, sessionOptions } from "./connection.ts";
import { type HttpPeer, serveHttp1 } from "./http.ts";
import { type BoundAddress, type ListenAddress, type ResolvedOptions, type RpcServerOptions, resolveOptions } from "./options.ts";

export interface RpcServerDependencies {
  readonly services: ServiceTable;
  readonly http: HttpHandler;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer?: RpcObserver | undefined;
}

/** What a server has counted since it was made. */
export interface RpcCounters {
  readonly activeConnections: number;
  readonly acceptedConnections: number;
  /** Closed as they came, because there were too many. */
  readonly refusedConnections: number;
  /** Closed during the TLS handshake, or because of their certificate. */
  readonly failedHandshakes: number;
  /** Bytes of gRPC messages, without prefixes and headers. */
  readonly receivedMessageBytes: number;
  readonly sentMessageBytes: number;
}

/** At most one warning about refused connections in this time. */
const REFUSAL_LOG_PERIOD_MS = 10_000;

export class RpcServer {
  readonly #listenAddresses: readonly ListenAddress[];
  readonly #tls: TlsOptions | undefined;
  readonly #options: ResolvedOptions;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #deadlines: DeadlineQueue;
  readonly #engine: Engine;
  readonly #context: ConnectionContext;
  readonly #httpServer: HttpServer;
  readonly #httpPeers = new WeakMap<Socket, HttpPeer>();
  readonly #idleHttp = new Set<Socket>();
  readonly #connections = new Set<Connection>();
  readonly #sockets = new Set<Socket>();
  readonly #servers: NetServer[] = [];
  #acceptedConnections = 0;
  #refusedConnections = 0;
  #failedHandshakes = 0;
  #lastRefusalLogMs = Number.NEGATIVE_INFINITY;
  #closing: Promise<void> | undefined;
  #allClosed: (() => void) | undefined;

  /** Throws if a secure address has no TLS options, or an option is out of its range. Nothing is opened before `listen`. */
  constructor(options: RpcServerOptions, dependencies: RpcServerDependencies) {
    if (options.tls === undefined && options.listen.some((address) => address.secure)) {
      throw new Error("a secure listen address needs TLS options");
    }
    this.#listenAddresses = options.listen;
    this.#tls = options.tls;
    this.#options = resolveOptions(options);
    this.#clock = dependencies.clock;
    this.#logger = dependencies.logger;
    this.#deadlines = new DeadlineQueue(dependencies.clock);
    this.#engine = {
      options: this.#options,
      clock: dependencies.clock,
      deadlines: this.#deadlines,
      observer: dependencies.observer,
      receivedMessageBytes: 0,
      sentMessageBytes: 0,
    };
    const http = { handler: dependencies.http, maxBodyBytes: this.#options.maxHttpBodyBytes, logger: dependencies.logger };
    this.#context = {
      engine: this.#engine,
      services: dependencies.services,
      http,
      logger: dependencies.logger,
      sessionOptions: sessionOptions(this.#options),
    };
    this.#httpServer = createHttpServer(
      { maxHeaderSize: this.#options.maxHeaderListBytes, requireHostHeader: false },
      (request, response) => {
        const socket = request.socket;
        this.#idleHttp.delete(socket);
        response.on("close", () => {
          if (this.#closing) socket.destroySoon();
          else if (!socket.destroyed) this.#idleHttp.add(socket);
        });
        const peer = this.#httpPeers.get(socket) ?? { peerAddress: addressOf(socket), peerCommonName: undefined };
        void serveHttp1(http, peer, request, response, this.#closing !== undefined);
      },
    );
    this.#httpServer.timeout = this.#options.httpIdleTimeoutMs;
    this.#httpServer.keepAliveTimeout = this.#options.httpIdleTimeoutMs;
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
    return bound;
  }

  /** What was counted so far. */
  counters(): RpcCounters {
    return {
      activeConnections: this.#sockets.size,
      acceptedConnections: this.#acceptedConnections,
      refusedConnections: this.#refusedConnections,
      failedHandshakes: this.#failedHandshakes,
      receivedMessageBytes: this.#engine.receivedMessageBytes,
      sentMessageBytes: this.#engine.sentMessageBytes,
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
    for (const socket of this.#idleHttp) socket.destroy();
    for (const connection of this.#connections) connection.drain();
    if (this.#sockets.size > 0) {
      const timer = this.#clock.after(graceMs, () => {
        for (const socket of this.#sockets) socket.destroy();
      });
      await new Promise<void>((resolve) => {
        this.#allClosed = resolve;
      });
      timer.cancel();
    }
    this.#deadlines.clear();
    await Promise.all(servers);
  }

  #open(address: ListenAddress): Promise<BoundAddress> {
    const tlsServer = address.secure && this.#tls !== undefined ? this.#tlsServer(this.#tls, address) : undefined;
    const server = createNetServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 }, (socket) =>
      this.#accept(socket, address, tlsServer),
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

  #accept(socket: Socket, address: ListenAddress, tlsServer: TlsServer | undefined): void {
    socket.on("error", () => {});
    if (this.#closing || this.#sockets.size >= this.#options.maxConnections) {
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
    else this.#sniff(socket, address, { peerAddress, peerCommonName: undefined });
  }

  #refuse(socket: Socket): void {
    socket.destroy();
    if (this.#closing) return;
    this.#refusedConnections++;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#lastRefusalLogMs < REFUSAL_LOG_PERIOD_MS) return;
    this.#lastRefusalLogMs = nowMs;
    this.#logger.warn("refused client connections: too many are open", { "max-connections": this.#options.maxConnections });
  }

  #tlsServer(tls: TlsOptions, address: ListenAddress): TlsServer {
    const protocols = address.serves === "http" ? ["http/1.1"] : address.serves === "grpc" ? ["h2"] : ["h2", "http/1.1"];
    const server = createTlsServer({ ...serverTlsOptions(tls, protocols), handshakeTimeout: this.#options.handshakeTimeoutMs });
    server.on("tlsClientError", (error, socket) => this.#handshakeFailed(socket, handshakeFailure(error, socket)));
    server.on("secureConnection", (socket) => {
      socket.on("error", () => {});
      const demanded = demandsClientCertificate(tls);
      const certificate = demanded ? socket.getPeerX509Certificate() : undefined;
      const refusal = refuseCertificate(tls, certificate, demanded);
      if (refusal !== undefined) {
        this.#handshakeFailed(socket, refusal);
        socket.destroy();
        return;
      }
      const name = certificate === undefined ? "" : commonName(certificate);
      const peer = { peerAddress: addressOf(socket), peerCommonName: certificate === undefined ? undefined : name };
      if (socket.alpnProtocol === "h2") this.#serveHttp2(socket, address, peer);
      else if (socket.alpnProtocol) this.#serveHttp1(socket, address, peer);
      else this.#sniff(socket, address, peer);
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

  #sniff(socket: Socket, address: ListenAddress, peer: HttpPeer): void {
    sniffProtocol(socket, this.#clock, this.#options.handshakeTimeoutMs, (isHttp2) => {
      if (isHttp2) this.#serveHttp2(socket, address, peer);
      else this.#serveHttp1(socket, address, peer);
    });
  }

  #serveHttp2(socket: Socket, address: ListenAddress, peer: HttpPeer): void {
    const connection = new Connection(this.#context, socket, address.serves ?? "all", peer.peerAddress, peer.peerCommonName);
    this.#connections.add(connection);
    socket.on("close", () => this.#connections.delete(connection));
    if (this.#closing) connection.drain();
  }

  #serveHttp1(socket: Socket, address: ListenAddress, peer: HttpPeer): void {
    if (address.serves === "grpc") {
      socket.destroy();
      return;
    }
    this.#httpPeers.set(socket, peer);
    this.#idleHttp.add(socket);
    socket.on("close", () => this.#idleHttp.delete(socket));
    this.#httpServer.emit("connection", socket);
  }
}

/** "host:port" of the other end (brackets around an IPv6 address), "@" for a unix socket, as Go prints them. */
function addressOf(socket: Socket): string {
  // A TLS socket has forgotten its address by the time a handshake has failed; the one beneath it has not.
  const known = socket.remoteAddress === undefined ? ((socket as { _parent?: Socket })._parent ?? socket) : socket;
  const { remoteAddress, remotePort } = known;
  if (remoteAddress === undefined) return "@";
  return remoteAddress.includes(":") ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}

/** A unix socket outlives its server's end; as etcd, we take the place of one that is there. */
function removeStaleSocket(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket()) unlinkSync(path);
}

/**
 * The peer port: HTTP/2 for members, and plain HTTP, in either version, for whoever asks after members and versions.
 *
 *   socket -> (TLS, certificate checks) -> which protocol? -> HTTP/1.1 -> HttpHandler
 *                                                          -> HTTP/2 -> a member's stream of messages -> Incoming
 *                                                                    -> Node's HTTP/2 -> Incoming (snapshots) | HttpHandler
 */
import type { X509Certificate } from "node:crypto";
import type { Server as HttpServer } from "node:http";
import { performServerHandshake, type ServerHttp2Session } from "node:http2";
import { type AddressInfo, createServer as createNetServer, type Server as NetServer, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from "node:tls";
import type { Timer } from "@quorate/host";
import {
  alternativeNames,
  commonName,
  createHttp1Server,
  demandsClientCertificate,
  type HttpContext,
  type HttpHandler,
  type HttpPeer,
  handshakeFailure,
  OpenTlsSockets,
  refuseCertificate,
  refuseClientAddress,
  serveHttp1,
  serveHttp2,
  serverTlsOptions,
  sniffProtocol,
  type TlsOptions,
  type TlsSource,
} from "@quorate/host/node";
import { SESSION_OPTIONS, widenSession } from "./dial.ts";
import type { Incoming } from "./incoming.ts";
import { bindsCertificates, fitsUrls, refuseClientCertificate } from "./member-certificate.ts";
import type { PeerListenAddress, Shared } from "./options.ts";
import { sniffStream } from "./stream.ts";

/** An address that a transport listens on. */
export interface PeerBoundAddress {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
}

/** Who has connected: for a peer that had to show a certificate, with it. */
interface Caller extends HttpPeer {
  readonly certificate: X509Certificate | undefined;
}

/** What a certificate of no known member may get: a member that joins asks for it before all others have heard of it. */
const OPEN_PATHS: ReadonlySet<string> = new Set(["/members", "/version"]);

/** Handshakes, and the first bytes after them, may take so long. */
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** A client of HTTP/2 may wait for the server's settings before it asks for anything: a member's stream does not. */
const STREAM_SNIFF_TIMEOUT_MS = 1_000;
/** An HTTP/1.1 connection may be idle for so long. */
const HTTP_IDLE_TIMEOUT_MS = 60_000;
/** The idle time of connections is looked at so often in its course. */
const IDLE_CHECKS = 4;
/** The one path of HTTP/1.1 and HTTP/2 that peers of any kind use to see whether a member is there. */
const LOG_REJECTED = "rejected connection on peer endpoint";

export class PeerServer {
  readonly #shared: Shared;
  readonly #incoming: Incoming;
  readonly #handler: HttpHandler;
  readonly #httpServer: HttpServer;
  readonly #httpCallers = new WeakMap<Socket, Caller>();
  /** Open sockets with the bytes that had come in, and for how many checks nothing more has. */
  readonly #sockets = new Map<Socket, { seenBytes: number; idleChecks: number }>();
  readonly #servers: NetServer[] = [];
  /** Ends the listening for new TLS options. */
  readonly #forgetTls: (() => void)[] = [];
  #idleTimer: Timer | undefined;
  #closed = false;

  constructor(shared: Shared, incoming: Incoming, handler: HttpHandler) {
    this.#shared = shared;
    this.#incoming = incoming;
    this.#handler = handler;
    this.#httpServer = createHttp1Server({ requireHostHeader: false }, (request, response) => {
      const caller = this.#httpCallers.get(request.socket) ?? this.#stranger(request.socket);
      void serveHttp1(this.#contextOf(caller), caller, request, response, false);
    });
    this.#httpServer.timeout = HTTP_IDLE_TIMEOUT_MS;
  }

  /** Opens all addresses, or none: rejects with Node's error if one cannot be opened. */
  async listen(): Promise<PeerBoundAddress[]> {
    const bound: PeerBoundAddress[] = [];
    try {
      for (const address of this.#shared.options.listen) bound.push(await this.#open(address));
    } catch (error) {
      for (const server of this.#servers.splice(0)) server.close();
      throw error;
    }
    const periodMs = this.#shared.options.incomingIdleTimeoutMs / IDLE_CHECKS;
    this.#idleTimer = this.#shared.clock.every(periodMs, () => this.#dropIdle());
    return bound;
  }

  /** Open connections. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** Closes all at once. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const forget of this.#forgetTls.splice(0)) forget();
    this.#idleTimer?.cancel();
    const closed = this.#servers.splice(0).map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
    for (const socket of this.#sockets.keys()) socket.destroy();
    await Promise.all(closed);
  }

  #open(address: PeerListenAddress): Promise<PeerBoundAddress> {
    const { tls } = this.#shared.options;
    const tlsServer = address.secure && tls !== undefined ? this.#tlsServer(tls) : undefined;
    const server = createNetServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 }, (socket) =>
      this.#accept(socket, tlsServer),
    );
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host: address.host, port: address.port }, () => {
        server.off("error", reject);
        server.on("error", (error) => this.#shared.logger.warn("failed to accept peer connection", { error: error.message }));
        this.#servers.push(server);
        const bound = server.address() as AddressInfo;
        resolve({ host: bound.address, port: bound.port, secure: address.secure });
      });
    });
  }

  #accept(socket: Socket, tlsServer: TlsServer | undefined): void {
    socket.on("error", () => {});
    if (this.#closed || this.#sockets.size >= this.#shared.options.maxIncomingConnections) {
      socket.destroy();
      return;
    }
    this.#sockets.set(socket, { seenBytes: 0, idleChecks: 0 });
    socket.on("close", () => this.#sockets.delete(socket));
    // Asked for now, the socket still knows it when a handshake has failed.
    const stranger = this.#stranger(socket);
    if (tlsServer === undefined) this.#sniff(socket, stranger);
    else tlsServer.emit("connection", socket);
  }

  #stranger(socket: Socket): Caller {
    return { peerAddress: addressOf(socket), peerCommonName: undefined, certificate: undefined };
  }

  /** How requests of a caller are answered: for members, and a little for others whose certificate may be a member's. */
  #contextOf({ certificate }: Caller): HttpContext {
    const { directory, logger, options } = this.#shared;
    const handler: HttpHandler = (request) => {
      const isOpen = request.method === "GET" && OPEN_PATHS.has(request.path);
      if (isOpen || directory.isSomeMembers(fitsUrls(options, certificate))) return this.#handler(request);
      return { status: 403, headers: { "content-type": "text/plain; charset=utf-8" }, body: "the certificate is not that of a member\n" };
    };
    return { handler, maxBodyBytes: options.maxHttpBodyBytes, logger };
  }

  #tlsServer(source: TlsSource): TlsServer {
    const protocols = ["h2", "http/1.1"];
    const server = createTlsServer({ ...serverTlsOptions(source.current, protocols), handshakeTimeout: HANDSHAKE_TIMEOUT_MS });
    this.#forgetTls.push(source.onChange(() => server.setSecureContext(serverTlsOptions(source.current, protocols))));
    const open = new OpenTlsSockets(source, (socket, reason) => {
      this.#rejected(socket, reason);
      socket.destroy();
    });
    this.#forgetTls.push(() => open.close());
    server.on("tlsClientError", (error, socket) => this.#rejected(socket, handshakeFailure(error, socket)));
    server.on("secureConnection", (socket) => {
      socket.on("error", () => {});
      this.#check(source.current, socket).then(
        (refusal) => {
          if (refusal === undefined) {
            open.add(socket);
            this.#secured(socket);
          } else {
            this.#rejected(socket, refusal);
            socket.destroy();
          }
        },
        (error: Error) => {
          this.#rejected(socket, error.message);
          socket.destroy();
        },
      );
    });
    return server;
  }

  async #check(tls: TlsOptions, socket: TLSSocket): Promise<string | undefined> {
    const demanded = demandsClientCertificate(tls);
    if (!demanded) return undefined;
    const certificate = socket.getPeerX509Certificate();
    const refusal = refuseCertificate(tls, certificate, demanded);
    const { skipClientSanVerification } = this.#shared.options;
    if (refusal !== undefined || certificate === undefined || skipClientSanVerification) return refusal;
    const notMembers = bindsCertificates(tls, false) ? refuseClientCertificate(certificate) : undefined;
    if (notMembers !== undefined) return notMembers;
    return refuseClientAddress(certificate, socket.remoteAddress ?? "");
  }

  #secured(socket: TLSSocket): void {
    if (socket.destroyed) return;
    const certificate = socket.getPeerX509Certificate();
    const peer: Caller = {
      peerAddress: addressOf(socket),
      peerCommonName: socket.authorized && certificate !== undefined ? commonName(certificate) : undefined,
      certificate: socket.authorized ? certificate : undefined,
    };
    if (socket.alpnProtocol === "h2") this.#serveHttp2(socket, peer);
    else if (socket.alpnProtocol) this.#serveHttp1(socket, peer);
    else this.#sniff(socket, peer);
  }

  #rejected(socket: TLSSocket, reason: string): void {
    const certificate = socket.getPeerX509Certificate?.();
    const names = certificate === undefined ? undefined : alternativeNames(certificate);
    const fields = {
      "remote-addr": addressOf(socket),
      "server-name": typeof socket.servername === "string" ? socket.servername : "",
      ...(names === undefined ? {} : { "ip-addresses": names.ipAddresses, "dns-names": names.dnsNames }),
      error: reason,
    };
    // Port scanners, and peers that are being stopped, just leave.
    if (reason === "EOF") {
      this.#shared.logger.debug(LOG_REJECTED, fields);
      return;
    }
    this.#shared.logger.warn(LOG_REJECTED, fields);
    this.#shared.observer.refused(0n, "certificate");
  }

  #sniff(socket: Socket, peer: Caller): void {
    sniffProtocol(socket, this.#shared.clock, HANDSHAKE_TIMEOUT_MS, (isHttp2) => {
      if (isHttp2) this.#serveHttp2(socket, peer);
      else this.#serveHttp1(socket, peer);
    });
  }

  #serveHttp1(socket: Socket, peer: Caller): void {
    this.#httpCallers.set(socket, peer);
    this.#httpServer.emit("connection", socket);
  }

  #serveHttp2(socket: Socket, peer: Caller): void {
    sniffStream(socket, this.#shared.clock, STREAM_SNIFF_TIMEOUT_MS, (isMember) => {
      if (isMember) this.#incoming.acceptMessages(socket, peer.peerAddress, peer.certificate);
      else this.#serveRequests(socket, peer);
    });
  }

  #serveRequests(socket: Socket, peer: Caller): void {
    const context = this.#contextOf(peer);
    const session: ServerHttp2Session = performServerHandshake(socket, SESSION_OPTIONS);
    widenSession(session);
    session.on("error", (error) => {
      this.#shared.logger.debug("closed peer connection", { "remote-addr": peer.peerAddress, error: error.message });
    });
    session.on("stream", (stream, headers) => {
      // Must be listened to, or Node ends the process.
      stream.on("error", () => {});
      if (this.#incoming.accept(stream, headers, peer.peerAddress, peer.certificate)) return;
      void serveHttp2(context, peer, stream, headers).then(() => stream.resume());
    });
  }

  #dropIdle(): void {
    for (const [socket, state] of this.#sockets) {
      const bytes = socket.bytesRead;
      state.idleChecks = bytes === state.seenBytes ? state.idleChecks + 1 : 0;
      state.seenBytes = bytes;
      if (state.idleChecks < IDLE_CHECKS) continue;
      this.#shared.logger.warn("closed idle peer connection", { "remote-addr": addressOf(socket) });
      socket.destroy();
    }
  }
}

/** "host:port" of the other end, brackets around an IPv6 address. */
function addressOf(socket: Socket): string {
  // A TLS socket has forgotten its address by the time a handshake has failed; the one beneath it has not.
  const known = socket.remoteAddress === undefined ? ((socket as { _parent?: Socket })._parent ?? socket) : socket;
  const { remoteAddress = "", remotePort } = known;
  return remoteAddress.includes(":") ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}

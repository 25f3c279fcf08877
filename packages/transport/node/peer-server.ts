/**
 * The peer port: HTTP/2 for members, and plain HTTP, in either version, for requests about
 * members and versions.
 *
 *   socket -> (TLS, certificate checks) -> which protocol?
 *     HTTP/1.1 -> HttpHandler
 *     HTTP/2   -> a member's stream of messages -> Incoming
 *              -> Node's HTTP/2 -> Incoming (snapshots) | HttpHandler
 */
import type { Server as HttpServer, IncomingMessage } from "node:http";
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket, Server as TlsServer } from "node:tls";
import {
  type Clock,
  ConnectionSlots,
  type HttpHandler,
  LineLimit,
  type LogFields,
  type Slot,
  type SlotConnection,
  type SlotCounters,
  type Timer,
} from "@quorate/host";
import {
  addressOf,
  alternativeNames,
  commonName,
  createHttp1Server,
  type Door,
  demandsClientCertificate,
  followingTlsServer,
  type HttpContext,
  type HttpPeer,
  handshakeFailure,
  OpenTlsSockets,
  openDoor,
  refuseCertificate,
  refuseClientAddress,
  refuseResumed,
  serveHttp1,
  serveHttp2,
  sniffProtocol,
  type TlsOptions,
  type TlsSource,
} from "@quorate/host/node";
import { SESSION_OPTIONS, widenSession } from "./dial.ts";
import { SNAPSHOT_PATH } from "./headers.ts";
import type { Caller, Incoming } from "./incoming.ts";
import { bindsCertificates, fitsUrls, refuseClientCertificate } from "./member-certificate.ts";
import type { PeerListenAddress, Shared } from "./options.ts";
import { sniffStream } from "./stream.ts";

/** An address that a transport listens on. */
export interface PeerBoundAddress {
  readonly host: string;
  readonly port: number;
  /** The file of a unix socket; host and port are then empty and 0. */
  readonly path?: string | undefined;
  readonly secure: boolean;
}

/** Who has connected, for HTTP too. */
interface HttpCaller extends Caller, HttpPeer {}

/**
 * What a certificate of no known member may get: a member that joins asks for it before all others
 * have heard of it.
 */
const OPEN_PATHS: ReadonlySet<string> = new Set(["/members", "/version"]);

/**
 * Handshakes, and then all up to the first headers, may take so long, however slowly bytes come.
 */
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Node's own timeout of handshakes, which is not needed. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;
/** How often deadlines are looked at. */
const SWEEP_PERIOD_MS = 1000;
/** How long an HTTP/1.1 request may take from its first byte to its last. */
const HTTP1_REQUEST_TIMEOUT_MS = 60_000;
const HTTP1_CHECK_PERIOD_MS = 5_000;
/** A connection without a request may stay so long while most of the slots are taken. */
const IDLE_UNDER_PRESSURE_MS = 10_000;
/**
 * A client of HTTP/2 may wait for the server's settings before it asks for anything: a member's
 * stream does not.
 */
const STREAM_SNIFF_TIMEOUT_MS = 1_000;
/** An HTTP/1.1 connection may be idle for so long. */
const HTTP_IDLE_TIMEOUT_MS = 60_000;
/** The idle time of connections is looked at so often in its course. */
const IDLE_CHECKS = 4;
/**
 * The one path of HTTP/1.1 and HTTP/2 that peers of any kind use to see whether a member is there.
 */
const LOG_REJECTED = "rejected connection on peer endpoint";

export class PeerServer {
  readonly #shared: Shared;
  readonly #incoming: Incoming;
  readonly #handler: HttpHandler;
  readonly #httpServer: HttpServer;
  readonly #httpCallers = new WeakMap<Socket, HttpCaller>();
  /** Open sockets. */
  readonly #sockets = new Map<Socket, PeerConnection>();
  /**
   * Of all slots a quarter is for connections that are no member's: these cannot take the members'.
   */
  readonly #slots: ConnectionSlots;
  #sweeper: Timer | undefined;
  readonly #lines = new LineLimit();
  readonly #doors: Door[] = [];
  /** Ends the listening for new TLS options. */
  readonly #forgetTls: (() => void)[] = [];
  #idleTimer: Timer | undefined;
  #closed = false;

  constructor(shared: Shared, incoming: Incoming, handler: HttpHandler) {
    this.#shared = shared;
    this.#incoming = incoming;
    this.#handler = handler;
    const { maxIncomingConnections } = shared.options;
    const maxUnidentified = Math.max(1, maxIncomingConnections >>> 2);
    this.#slots = new ConnectionSlots({
      maxConnections: Math.max(1, maxIncomingConnections - maxUnidentified),
      maxUnidentified,
      stageTimeoutMs: HANDSHAKE_TIMEOUT_MS,
      idleUnderPressureMs: IDLE_UNDER_PRESSURE_MS,
    });
    const timeouts = {
      headersTimeout: HANDSHAKE_TIMEOUT_MS,
      // See #limitRequest.
      requestTimeout: 0,
      connectionsCheckingInterval: HTTP1_CHECK_PERIOD_MS,
    };
    this.#httpServer = createHttp1Server(
      { requireHostHeader: false, ...timeouts },
      (request, response) => {
        const connection = this.#connectionOf(request.socket);
        connection?.request(1);
        response.on("close", () => connection?.request(-1));
        const caller =
          this.#httpCallers.get(request.socket) ?? unknownCaller(addressOf(request.socket));
        // A database file may take longer; its progress is watched.
        if (request.url !== SNAPSHOT_PATH) this.#limitRequest(request);
        const isMember = (id: bigint) => this.#isMember(connection, id);
        if (this.#incoming.acceptEtcd(request, response, caller, isMember)) {
          if (connection !== undefined && request.method === "GET") connection.isReader = true;
          return;
        }
        this.#requested(connection);
        if (request.socket.destroyed) return;
        void serveHttp1(this.#contextOf(caller), caller, request, response, false);
      },
    );
    this.#httpServer.timeout = HTTP_IDLE_TIMEOUT_MS;
    // It is given its sockets and never listens, but only this event starts the timer that holds
    // requests to their timeouts.
    this.#httpServer.emit("listening");
  }

  /** Ends a request that does not come to its end in time. */
  #limitRequest(request: IncomingMessage): void {
    const timer = this.#shared.clock.after(HTTP1_REQUEST_TIMEOUT_MS, () => {
      if (request.complete) return;
      request.socket.end("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n");
      request.destroy();
    });
    request.on("close", () => timer.cancel());
  }

  /** Opens all addresses, or none: rejects with Node's error if one cannot be opened. */
  async listen(): Promise<PeerBoundAddress[]> {
    const bound: PeerBoundAddress[] = [];
    try {
      for (const address of this.#shared.options.listen) bound.push(await this.#open(address));
    } catch (error) {
      for (const door of this.#doors.splice(0)) void door.close();
      throw error;
    }
    const periodMs = this.#shared.options.incomingIdleTimeoutMs / IDLE_CHECKS;
    this.#idleTimer = this.#shared.clock.every(periodMs, () => this.#dropIdle());
    this.#sweeper = this.#shared.clock.every(SWEEP_PERIOD_MS, () =>
      this.#slots.sweep(this.#shared.clock.monotonicMs()),
    );
    return bound;
  }

  /** Open connections. */
  get connections(): number {
    return this.#sockets.size;
  }

  /** What was counted of connections that were refused or had to go. */
  get slotCounters(): SlotCounters {
    return this.#slots.counters;
  }

  /** Closes all at once. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#sweeper?.cancel();
    // It does not listen, so closing it only stops its timer.
    this.#httpServer.close();
    for (const forget of this.#forgetTls.splice(0)) forget();
    this.#idleTimer?.cancel();
    const closed = this.#doors.splice(0).map((door) => door.close());
    for (const socket of this.#sockets.keys()) socket.destroy();
    await Promise.all(closed);
  }

  async #open(address: PeerListenAddress): Promise<PeerBoundAddress> {
    const { tls } = this.#shared.options;
    const door = address.door ?? (await openDoor(address));
    const tlsServer = address.secure && tls !== undefined ? this.#tlsServer(tls) : undefined;
    this.#doors.push(door);
    door.serve({
      accept: (socket) => this.#accept(socket, tlsServer),
      failed: (error) =>
        this.#shared.logger.warn("failed to accept peer connection", { error: error.message }),
    });
    const { host, port, path, secure } = address;
    const { bound } = door;
    return typeof bound === "string"
      ? { host, port, path, secure }
      : { host: bound.address, port: bound.port, secure };
  }

  #accept(socket: Socket, tlsServer: TlsServer | undefined): void {
    socket.on("error", () => {});
    if (this.#closed) {
      socket.destroy();
      return;
    }
    // Asked for now, the socket still knows it when a handshake has failed.
    const peerAddress = addressOf(socket);
    const { clock } = this.#shared;
    const connection = new PeerConnection(socket, clock, peerAddress);
    this.#sockets.set(socket, connection);
    connection.slot = this.#slots.open(
      connection,
      socket.remoteAddress ?? "",
      clock.monotonicMs(),
      () => this.#late(connection, tlsServer !== undefined),
    );
    socket.on("close", () => {
      this.#sockets.delete(socket);
      this.#slots.close(connection.slot);
    });
    if (tlsServer === undefined) this.#sniff(socket, unknownCaller(peerAddress));
    else tlsServer.emit("connection", socket);
  }

  /**
   * How requests of a caller are answered: for members, and a little for others whose certificate
   * may be a member's.
   */
  #contextOf({ certificate }: Caller): HttpContext {
    const { directory, logger, options } = this.#shared;
    const handler: HttpHandler = (request) => {
      const isOpen = request.method === "GET" && OPEN_PATHS.has(request.path);
      if (isOpen || directory.isSomeMembers(fitsUrls(options, certificate)))
        return this.#handler(request);
      return {
        status: 403,
        headers: { "content-type": "text/plain; charset=utf-8" },
        body: "the certificate is not that of a member\n",
      };
    };
    return { handler, maxBodyBytes: options.maxHttpBodyBytes, logger };
  }

  /** A handshake, or the first headers, did not come to their end in time. */
  #late(connection: PeerConnection, isTls: boolean): void {
    const stage =
      isTls && connection.secured === undefined ? "tls: handshake timeout" : "no request in time";
    this.#warn(LOG_REJECTED, { "remote-addr": connection.peerAddress, error: stage });
    this.#shared.observer.refused(0n, "certificate");
  }

  #connectionOf(socket: Socket): PeerConnection | undefined {
    return (
      this.#sockets.get(socket) ??
      this.#sockets.get((socket as { _parent?: Socket })._parent ?? socket)
    );
  }

  /**
   * A request has come that is no member's stream: without a verified certificate it is served in
   * the share of unknown clients.
   */
  #requested(connection: PeerConnection | undefined): void {
    if (connection === undefined || connection.slot.stage !== "unidentified") return;
    if (connection.certificate === undefined) this.#slots.suspend(connection.slot);
    else if (!this.#slots.identify(connection.slot, `certificate ${connection.certificate}`))
      connection.destroy();
  }

  #tlsServer(source: TlsSource): TlsServer {
    const protocols = ["h2", "http/1.1"];
    const { server, forget } = followingTlsServer(source, protocols, {
      handshakeTimeout: NO_TIMEOUT_MS,
    });
    this.#forgetTls.push(forget);
    const open = new OpenTlsSockets(source, (socket, reason) => {
      this.#rejected(socket, reason);
      socket.destroy();
    });
    this.#forgetTls.push(() => open.close());
    server.on("tlsClientError", (error, socket) => {
      // One that was late has been reported.
      if (this.#connectionOf(socket)?.slot.stage !== "closed")
        this.#rejected(socket, handshakeFailure(error, socket));
      // Node only emits the event.
      socket.destroy();
    });
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
    const refusal =
      refuseCertificate(tls, certificate, demanded) ?? refuseResumed(socket, certificate);
    const { skipClientSanVerification } = this.#shared.options;
    if (refusal !== undefined || certificate === undefined || skipClientSanVerification)
      return refusal;
    const notMembers = bindsCertificates(tls, false)
      ? refuseClientCertificate(certificate)
      : undefined;
    if (notMembers !== undefined) return notMembers;
    // A unix socket's connection has no address; the permissions of its file are its check.
    if (this.#connectionOf(socket)?.peerAddress === "@") return undefined;
    return refuseClientAddress(certificate, socket.remoteAddress ?? "");
  }

  #secured(socket: TLSSocket): void {
    const connection = this.#connectionOf(socket);
    if (socket.destroyed || connection === undefined) {
      socket.destroy();
      return;
    }
    const certificate = socket.getPeerX509Certificate();
    connection.secured = socket;
    if (socket.authorized) connection.certificate = certificate?.fingerprint256;
    this.#slots.nextStage(connection.slot, this.#shared.clock.monotonicMs());
    const peer: HttpCaller = {
      certificate: socket.authorized ? certificate : undefined,
      peerAddress: addressOf(socket),
      peerCommonName:
        socket.authorized && certificate !== undefined ? commonName(certificate) : undefined,
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
      ...(names === undefined
        ? {}
        : { "ip-addresses": names.ipAddresses, "dns-names": names.dnsNames }),
      error: reason,
    };
    // Port scanners, and peers that are being stopped, just leave.
    if (reason === "EOF") {
      this.#shared.logger.debug(LOG_REJECTED, fields);
      return;
    }
    this.#warn(LOG_REJECTED, fields);
    this.#shared.observer.refused(0n, "certificate");
  }

  /** A warning that an unknown client can cause: there are only so many. */
  #warn(msg: string, fields: LogFields): void {
    const omitted = this.#lines.allow(this.#shared.clock.monotonicMs());
    if (omitted !== undefined) this.#shared.logger.warn(msg, { ...fields, ...omitted });
  }

  #sniff(socket: Socket, peer: HttpCaller): void {
    sniffProtocol(socket, this.#shared.clock, HANDSHAKE_TIMEOUT_MS, (isHttp2) => {
      if (isHttp2 && !this.#shared.options.isEtcd) this.#serveHttp2(socket, peer);
      else this.#serveHttp1(socket, peer);
    });
  }

  #serveHttp1(socket: Socket, peer: HttpCaller): void {
    this.#httpCallers.set(socket, peer);
    this.#httpServer.emit("connection", socket);
  }

  #serveHttp2(socket: Socket, peer: HttpCaller): void {
    sniffStream(socket, this.#shared.clock, STREAM_SNIFF_TIMEOUT_MS, (isMember) => {
      if (isMember)
        this.#incoming.acceptMessages(socket, peer, (id) =>
          this.#isMember(this.#connectionOf(socket), id),
        );
      else this.#serveRequests(socket, peer);
    });
  }

  #serveRequests(socket: Socket, peer: HttpCaller): void {
    const context = this.#contextOf(peer);
    // Loaded here, as in dial.ts.
    const { performServerHandshake } = process.getBuiltinModule("node:http2");
    const session: ServerHttp2Session = performServerHandshake(socket, SESSION_OPTIONS);
    widenSession(session);
    const connection = this.#connectionOf(socket);
    session.on("error", (error) => {
      this.#shared.logger.debug("closed peer connection", {
        "remote-addr": peer.peerAddress,
        error: error.message,
      });
    });
    session.on("stream", (stream, headers) => {
      // Must be listened to, or Node ends the process.
      stream.on("error", () => {});
      connection?.request(1);
      stream.on("close", () => connection?.request(-1));
      if (this.#incoming.accept(stream, headers, peer, (id) => this.#isMember(connection, id)))
        return;
      this.#requested(connection);
      void serveHttp2(context, peer, stream, headers).then(() => stream.resume());
    });
  }

  /** A member has opened a stream, or sends a snapshot. */
  #isMember(connection: PeerConnection | undefined, id: bigint): void {
    if (connection === undefined) return;
    connection.isMember = true;
    if (!this.#slots.identify(connection.slot, `member ${id}`)) connection.destroy();
  }

  #dropIdle(): void {
    for (const [socket, connection] of this.#sockets) {
      if (connection.silentChecks() < IDLE_CHECKS) continue;
      this.#warn("closed idle peer connection", { "remote-addr": addressOf(socket) });
      socket.destroy();
    }
  }
}

/** A caller that nothing is known of but its address. */
function unknownCaller(peerAddress: string): HttpCaller {
  return { peerAddress, peerCommonName: undefined, certificate: undefined };
}

/** One connection to the peer port, as its slot sees it. */
class PeerConnection implements SlotConnection {
  readonly peerAddress: string;
  /** Its place; set right after it was made. */
  slot!: Slot;
  /** The TLS layer above the socket, once its handshake is over. */
  secured: TLSSocket | undefined;
  /** The fingerprint of a certificate that was verified. */
  certificate: string | undefined;
  /** It carries a member's stream: never idle, however little is said. */
  isMember = false;
  /** A member of etcd reads a stream on it, and sends nothing. */
  isReader = false;
  readonly #socket: Socket;
  readonly #clock: Clock;
  #requests = 0;
  #idleSinceMs: number;
  #seenBytes = 0;
  #silentChecks = 0;

  constructor(socket: Socket, clock: Clock, peerAddress: string) {
    this.#socket = socket;
    this.#clock = clock;
    this.peerAddress = peerAddress;
    this.#idleSinceMs = clock.monotonicMs();
  }

  /** A request has begun, or with -1 ended. */
  request(count: 1 | -1): void {
    this.#requests += count;
    if (this.#requests === 0) this.#idleSinceMs = this.#clock.monotonicMs();
  }

  /** How many times in a row this was asked without a byte coming in between. */
  silentChecks(): number {
    if (this.isReader) return 0;
    const bytes = this.#socket.bytesRead;
    this.#silentChecks = bytes === this.#seenBytes ? this.#silentChecks + 1 : 0;
    this.#seenBytes = bytes;
    return this.#silentChecks;
  }

  idleSinceMs(): number | undefined {
    return this.isMember || this.#requests > 0 ? undefined : this.#idleSinceMs;
  }

  drain(): void {
    this.destroy();
  }

  leave(): void {
    this.destroy();
  }

  destroy(): void {
    this.secured?.destroy();
    this.#socket.destroy();
  }
}

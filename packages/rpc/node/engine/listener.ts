/**
 * One address of a server: accepts connections, does the TLS handshake, detects the protocol and
 * the client's identity, and assigns each connection a slot.
 *
 *   socket -> slot -> (TLS, certificate checks) -> which protocol? -> serveHttp2 | serveHttp1
 *
 * An address that takes plain connections beside TLS looks at the first byte (readFirstByte).
 *
 * Each listener has its own slots, so that connections on a port without authentication never take
 * the slots of one with it. Until its first headers are complete a connection is unidentified; such
 * connections have a limited share of the slots and absolute deadlines (ConnectionSlots).
 */
import type { Socket } from "node:net";
import type { TLSSocket, Server as TlsServer } from "node:tls";
import {
  type Clock,
  ConnectionSlots,
  LineLimit,
  type Logger,
  type SlotCounters,
} from "@quorate/host";
import {
  addressOf,
  alternativeNames,
  certifiedPeer,
  demandsClientCertificate,
  followingTlsServer,
  handshakeFailure,
  hostOf,
  type OpenDoor,
  OpenTlsSockets,
  openDoor,
  refuseCertificate,
  refuseResumed,
  type TlsSource,
} from "@quorate/host/node";
import type { Dispatcher } from "../../src/grpc/dispatcher.ts";
import { PREFACE } from "../../src/http2/constants.ts";
import { clientOf } from "../../src/http2/peer.ts";
import type { BoundAddress, ListenAddress, ResolvedOptions } from "../options.ts";
import { Accepted, type AcceptedOwner } from "./accepted.ts";
import type { HandshakeLine } from "./handshake-line.ts";

/**
 * A quarter of the slots is for connections in their handshakes, but at most this many: each may
 * cost some 50 KiB.
 */
const MAX_UNIDENTIFIED = 2048;
/** At most one warning about refused connections in this period. */
const REFUSAL_LOG_PERIOD_MS = 10_000;

/** The server, as a listener sees it. */
export interface ListenerOwner {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly options: ResolvedOptions;
  readonly tls: TlsSource | undefined;
  readonly handshakes: HandshakeLine;
  /** True once no connections are accepted. */
  readonly isClosing: boolean;
  accepted(one: Accepted): void;
  serveHttp2(one: Accepted, socket: Socket, listener: Listener): void;
  serveHttp1(one: Accepted, socket: Socket, listener: Listener): void;
}

export class Listener implements AcceptedOwner {
  readonly address: ListenAddress;
  readonly dispatcher: Dispatcher;
  readonly #owner: ListenerOwner;
  readonly #slots: ConnectionSlots;
  readonly #maxConnections: number;
  #door: OpenDoor | undefined;
  readonly #tlsServer: TlsServer | undefined;
  readonly #byRawSocket = new WeakMap<object, Accepted>();
  /** Unsubscribes from new TLS options. */
  #forgetTls: () => void = () => {};
  /** Its TLS connections, whose certificates are checked again when the options change. */
  #openSecured: OpenTlsSockets | undefined;
  #failedHandshakes = 0;
  #handshakeTimeouts = 0;
  #silentConnections = 0;
  #lastRefusalLogMs = Number.NEGATIVE_INFINITY;
  readonly #lines = new LineLimit();

  constructor(address: ListenAddress, dispatcher: Dispatcher, owner: ListenerOwner) {
    const { options } = owner;
    this.address = address;
    this.dispatcher = dispatcher;
    this.#owner = owner;
    this.#maxConnections = address.maxConnections ?? options.maxConnections;
    const maxUnidentified = Math.max(1, Math.min(MAX_UNIDENTIFIED, this.#maxConnections >>> 2));
    this.#slots = new ConnectionSlots({
      maxConnections: Math.max(1, this.#maxConnections - maxUnidentified),
      maxUnidentified,
      stageTimeoutMs: options.handshakeTimeoutMs,
      idleUnderPressureMs: options.idleUnderPressureMs,
    });
    this.#tlsServer =
      address.secure && owner.tls !== undefined ? this.#createTlsServer(owner.tls) : undefined;
  }

  nowMs(): number {
    return this.#owner.clock.monotonicMs();
  }

  get slotCounters(): SlotCounters {
    return this.#slots.counters;
  }

  get failedHandshakes(): number {
    return this.#failedHandshakes;
  }

  get handshakeTimeouts(): number {
    return this.#handshakeTimeouts;
  }

  get silentConnections(): number {
    return this.#silentConnections;
  }

  /** Opens the address, unless it is open already, and serves. Rejects with Node's error. */
  async open(): Promise<BoundAddress> {
    const { address } = this;
    const door = address.door ?? (await openDoor(address));
    this.#door = door;
    door.serve({
      accept: (socket) => this.#accept(socket),
      failed: (error) =>
        this.#owner.logger.warn("failed to accept client connection", { error: error.message }),
    });
    const { bound } = door;
    const { secure } = address;
    return typeof bound === "string"
      ? { host: undefined, port: undefined, path: bound, secure }
      : { host: bound.address, port: bound.port, path: undefined, secure };
  }

  /** Accepts no more connections; resolves when those that were accepted have closed. */
  async close(): Promise<void> {
    this.#forgetTls();
    await this.#door?.close();
  }

  /** Enforces deadlines and closes idle connections. */
  sweep(nowMs: number): void {
    this.#slots.sweep(nowMs);
  }

  /**
   * The connection's first headers are complete: it gets a slot in its client's share, or is
   * closed. Returns whether it has one.
   */
  identified(one: Accepted): boolean {
    if (one.slot.stage !== "unidentified") return one.slot.stage === "identified";
    const identity = one.peer === undefined ? one.slot.address : clientOf(one.peer);
    if (this.#slots.identify(one.slot, identity)) return true;
    one.destroy();
    this.#logRefusal(one, identity);
    return false;
  }

  #logRefusal(one: Accepted, identity: string): void {
    const nowMs = this.nowMs();
    if (nowMs - this.#lastRefusalLogMs < REFUSAL_LOG_PERIOD_MS) return;
    this.#lastRefusalLogMs = nowMs;
    this.#owner.logger.warn("refused client connections: too many are open", {
      "max-connections": this.#maxConnections,
      "remote-addr": one.peer?.peerAddress ?? "",
      identity,
    });
  }

  #accept(socket: Socket): void {
    socket.on("error", () => {});
    if (this.#owner.isClosing) {
      socket.destroy();
      return;
    }
    const one = new Accepted(socket, this);
    one.peer = { peerAddress: addressOf(socket), peerCommonName: undefined };
    one.slot = this.#slots.open(one, hostOf(socket), this.nowMs(), () => this.#late(one));
    socket.on("close", () => this.#slots.close(one.slot));
    this.#owner.accepted(one);
    const tlsServer = this.#tlsServer;
    if (tlsServer === undefined) this.#decide(one, socket);
    else if (this.address.alsoPlain !== true) this.#shakeHands(tlsServer, one, socket);
    else
      readFirstByte(socket, (isTls) => {
        if (isTls) this.#shakeHands(tlsServer, one, socket);
        else this.#decide(one, socket);
      });
  }

  #shakeHands(tlsServer: TlsServer, one: Accepted, socket: Socket): void {
    one.phase = "handshake";
    this.#byRawSocket.set(socket, one);
    // It has no influence on how long it waits.
    this.#slots.suspend(one.slot);
    this.#owner.handshakes.add(socket, () => {
      this.#slots.nextStage(one.slot, this.nowMs());
      tlsServer.emit("connection", socket);
    });
  }

  /** A stage of the connection did not end in time. */
  #late(one: Accepted): void {
    one.isLate = true;
    if (one.phase !== "handshake") {
      this.#silentConnections++;
      return;
    }
    this.#handshakeTimeouts++;
    this.#handshakeFailed(one.socket, one.peer?.peerAddress ?? "", "tls: handshake timeout");
  }

  #createTlsServer(source: TlsSource): TlsServer {
    const { serves } = this.address;
    const protocols =
      serves === "http" ? ["http/1.1"] : serves === "grpc" ? ["h2"] : ["h2", "http/1.1"];
    const { server, forget } = followingTlsServer(source, protocols, {
      handshakeTimeout: 2 ** 31 - 1,
    });
    const open = new OpenTlsSockets(source, (socket, reason) => {
      this.#handshakeFailed(socket, addressOf(socket), reason);
      socket.destroy();
    });
    this.#openSecured = open;
    this.#forgetTls = () => {
      forget();
      open.close();
    };
    server.on("tlsClientError", (error: Error & { code?: string }, socket) => {
      if (this.#acceptedOf(socket)?.isLate === true) return;
      this.#handshakeFailed(socket, addressOf(socket), handshakeFailure(error, socket));
      // Node only emits an event.
      socket.destroy();
    });
    server.on("secureConnection", (socket) => this.#secured(source, socket));
    return server;
  }

  #secured(source: TlsSource, socket: TLSSocket): void {
    socket.on("error", () => {});
    const one = this.#acceptedOf(socket);
    if (one === undefined || one.slot.stage === "closed") {
      socket.destroy();
      return;
    }
    this.#owner.handshakes.ended(one.socket);
    const tls = source.current;
    const demanded = demandsClientCertificate(tls);
    const isWanted = demanded || tls.clientCertOptional === true;
    const certificate = isWanted ? socket.getPeerX509Certificate() : undefined;
    const refusal =
      refuseCertificate(tls, certificate, demanded) ?? refuseResumed(socket, certificate);
    if (refusal !== undefined) {
      this.#handshakeFailed(socket, addressOf(socket), refusal);
      socket.destroy();
      return;
    }
    this.#openSecured?.add(socket);
    one.secured = socket;
    one.peer = {
      peerAddress: addressOf(socket),
      isSecure: true,
      ...certifiedPeer(socket, certificate, tls),
    };
    this.#slots.nextStage(one.slot, this.nowMs());
    if (socket.alpnProtocol === "h2") this.#serve(one, socket, true);
    else if (socket.alpnProtocol) this.#serve(one, socket, false);
    else this.#decide(one, socket);
  }

  #acceptedOf(socket: TLSSocket): Accepted | undefined {
    const raw = (socket as { _parent?: Socket })._parent;
    return raw === undefined ? undefined : this.#byRawSocket.get(raw);
  }

  #handshakeFailed(socket: Socket, remoteAddress: string, reason: string): void {
    this.#failedHandshakes++;
    // Port scanners and health checks connect and disconnect at once.
    const isNews = reason !== "EOF";
    const omitted = isNews ? this.#lines.allow(this.nowMs()) : {};
    if (omitted === undefined) return;
    const tlsSocket = socket as TLSSocket;
    const certificate = tlsSocket.getPeerX509Certificate?.();
    const names = certificate === undefined ? undefined : alternativeNames(certificate);
    const fields = {
      "remote-addr": remoteAddress,
      "server-name": typeof tlsSocket.servername === "string" ? tlsSocket.servername : "",
      ...(names === undefined
        ? {}
        : { "ip-addresses": names.ipAddresses, "dns-names": names.dnsNames }),
      error: reason,
      ...omitted,
    };
    if (!isNews) this.#owner.logger.debug("rejected connection on client endpoint", fields);
    else this.#owner.logger.warn("rejected connection on client endpoint", fields);
  }

  #decide(one: Accepted, socket: Socket): void {
    one.phase = "deciding";
    readFirstBytes(socket, (isHttp2) => this.#serve(one, socket, isHttp2));
  }

  #serve(one: Accepted, socket: Socket, isHttp2: boolean): void {
    one.phase = isHttp2 ? "http2" : "http1";
    // The connection has its own deadline for its first headers, and sends the reason.
    this.#slots.suspend(one.slot);
    if (isHttp2) this.#owner.serveHttp2(one, socket, this);
    else this.#owner.serveHttp1(one, socket, this);
  }
}

/**
 * The prefix of HTTP/2's fixed preface (RFC 9113 section 3.4) that distinguishes it from every
 * HTTP/1 request.
 */
const DISTINCT_BYTES = 14;

/** The type of a TLS record that belongs to a handshake (RFC 8446 section 5.1); no byte of text. */
const TLS_HANDSHAKE = 0x16;

/**
 * Calls `decided` once the first bytes show the protocol; the socket then still has all of its
 * bytes to read.
 */
function readFirstBytes(socket: Socket, decided: (isHttp2: boolean) => void): void {
  peek(
    socket,
    (seen) => {
      const length = Math.min(seen.length, DISTINCT_BYTES);
      const matches = seen.toString("latin1", 0, length) === PREFACE.slice(0, length);
      return matches && length < DISTINCT_BYTES ? undefined : matches;
    },
    decided,
  );
}

/** The same, for whether the connection begins with a TLS handshake. */
function readFirstByte(socket: Socket, decided: (isTls: boolean) => void): void {
  peek(socket, (seen) => seen[0] === TLS_HANDSHAKE, decided);
}

/** Reads until `decide` returns what the first bytes, at least one, stand for. */
function peek(
  socket: Socket,
  decide: (seen: Buffer) => boolean | undefined,
  decided: (result: boolean) => void,
): void {
  let seen: Buffer = Buffer.alloc(0);
  const look = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const result = decide(seen);
    if (result === undefined) return;
    socket.off("readable", look);
    socket.off("end", ended);
    socket.unshift(seen);
    decided(result);
  };
  const ended = () => socket.destroy();
  socket.on("readable", look);
  socket.on("end", ended);
}

/**
 * The client port: gRPC and plain HTTP on the same address, in plain text (HTTP/2 with prior
 * knowledge, or HTTP/1.1, distinguished by the first bytes) or over TLS (distinguished by ALPN).
 *
 *   socket -> (TLS, certificate checks) -> which protocol?
 *          -> EngineSocket (HTTP/2) -> Dispatcher -> UnaryCall | StreamingCall | Http2Exchange
 *          -> Http1Socket (HTTP/1.1) -> Http1Exchange
 */
import type { Socket } from "node:net";
import { promisify } from "node:util";
import type { Clock, HttpExchangeHandler, Logger, Timer } from "@quorate/host";
import { type TlsSource, tlsSource } from "@quorate/host/node";
import { GrpcCode } from "@quorate/proto";
import { DeadlineQueue } from "../../src/deadlines.ts";
import { type Compressor, Inflater } from "../../src/grpc/compression.ts";
import { Dispatcher } from "../../src/grpc/dispatcher.ts";
import type { GrpcShared } from "../../src/grpc/shared.ts";
import { HttpDate } from "../../src/http/fields.ts";
import { type Http1Counters, Http1Shared } from "../../src/http1/shared.ts";
import { type EngineCounters, Http2Shared } from "../../src/http2/shared.ts";
import {
  joinMessage,
  type RpcObserver,
  type ServiceTable,
  StatusError,
  type UnaryResponse,
} from "../../src/service.ts";
import type { BoundAddress, ListenAddress, ResolvedOptions } from "../options.ts";
import type { Accepted, ServedSocket } from "./accepted.ts";
import { EngineSocket, SocketContext } from "./engine-socket.ts";
import { HandshakeLine } from "./handshake-line.ts";
import { Http1Socket } from "./http1-socket.ts";
import { Listener, type ListenerOwner } from "./listener.ts";
import { type EngineServerOptions, resolveEngineOptions, type ServerLimits } from "./options.ts";

export interface EngineServerDependencies {
  readonly services: ServiceTable;
  /** Serves the requests that are not gRPC. */
  readonly http: HttpExchangeHandler;
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
  readonly http1: Readonly<Http1Counters>;
  /** Those of HTTP/2, and of the budgets that both versions share. */
  readonly http2: Readonly<EngineCounters>;
}

export class EngineServer implements ListenerOwner {
  readonly #listenAddresses: readonly ListenAddress[];
  readonly tls: TlsSource | undefined;
  readonly options: ResolvedOptions;
  readonly clock: Clock;
  readonly handshakes = new HandshakeLine();
  readonly logger: Logger;
  readonly #limits: ServerLimits;
  readonly #http2: Http2Shared;
  readonly #grpc: GrpcShared;
  readonly #context: SocketContext;
  readonly #http1: Http1Shared;
  readonly #connections = new Set<ServedSocket>();
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
    const { server, http1, http2, limits } = resolveEngineOptions(options);
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
    const http = {
      handler: dependencies.http,
      logger: dependencies.logger,
      sendBudgetBytes: server.sendBudgetBytes,
      date: new HttpDate(dependencies.clock),
    };
    this.#http1 = new Http1Shared(http1, http, this.#http2);
    this.#grpc = {
      limits: {
        maxRequestBytes: server.maxRequestBytes,
        maxResponseBytes: 2 ** 31 - 1,
        sendBudgetBytes: server.sendBudgetBytes,
      },
      services: dependencies.services,
      http,
      clock: dependencies.clock,
      logger: dependencies.logger,
      deadlines: new DeadlineQueue(dependencies.clock),
      compressor: nodeCompressor,
      inflater: new Inflater(nodeCompressor, dependencies.clock),
      observer: dependencies.observer,
    };
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
      heldBytes: this.#http2.held.usedBytes,
      pendingBytes: this.#http2.pending.usedBytes,
      headBytes: this.#http2.heads.usedBytes,
      unsentBytes: this.#context.unsentBytes,
      inflatedMessages: this.#grpc.inflater.inflated,
      inflateWaits: this.#grpc.inflater.throttled,
      http1: this.#http1.counters,
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
    for (const one of this.#sockets)
      if (one.phase === "handshake" || one.phase === "deciding") one.destroy();
    const nowMs = this.clock.monotonicMs();
    for (const one of this.#connections) one.drain(nowMs);
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
    const settled = () => void listener.identified(one);
    const engine = new EngineSocket(this.#context, socket, listener.dispatcher, peer, settled);
    this.#serve(one, socket, engine);
  }

  serveHttp1(one: Accepted, socket: Socket, listener: Listener): void {
    if (listener.address.serves === "grpc" || this.#closing) {
      socket.destroy();
      return;
    }
    const peer = one.peer ?? { peerAddress: "", peerCommonName: undefined };
    const identified = () => listener.identified(one);
    this.#serve(one, socket, new Http1Socket(this.#context, this.#http1, socket, peer, identified));
  }

  #serve(one: Accepted, socket: Socket, served: ServedSocket): void {
    one.served = served;
    this.#connections.add(served);
    socket.on("close", () => this.#connections.delete(served));
    if (this.#closing) served.drain(this.clock.monotonicMs());
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

/** Node's functions. They are loaded for the first compressed message: that takes milliseconds. */
function zlib() {
  const { constants, gunzip, gunzipSync, gzip, gzipSync } = process.getBuiltinModule("node:zlib");
  const fast = { level: constants.Z_BEST_SPEED };
  return { gunzipSync, gunzip: promisify(gunzip), gzipSync, gzip: promisify(gzip), fast };
}
let loaded: ReturnType<typeof zlib> | undefined;
const loadedZlib = () => (loaded ??= zlib());

function isTooLong(error: unknown): boolean {
  return (error as { code?: string }).code === "ERR_BUFFER_TOO_LARGE";
}

function statusOf(error: unknown, maxBytes: number): StatusError {
  return isTooLong(error)
    ? new StatusError(
        GrpcCode.ResourceExhausted,
        `grpc: received message after decompression larger than max ${maxBytes}`,
      )
    : new StatusError(
        GrpcCode.Internal,
        `grpc: failed to decompress the message: ${(error as Error).message}`,
      );
}

/** gzip by Node's zlib, for compressed messages (grpc-encoding: gzip). */
const nodeCompressor: Compressor = {
  decompressNow(message: Uint8Array, maxBytes: number, mostBytes: number): Uint8Array | undefined {
    try {
      return loadedZlib().gunzipSync(message, { maxOutputLength: Math.min(maxBytes, mostBytes) });
    } catch (error) {
      if (mostBytes < maxBytes && isTooLong(error)) return undefined;
      throw statusOf(error, maxBytes);
    }
  },
  decompressLater(message: Uint8Array, maxBytes: number): Promise<Uint8Array> {
    return loadedZlib()
      .gunzip(message, { maxOutputLength: maxBytes })
      .catch((error: unknown) => {
        throw statusOf(error, maxBytes);
      });
  },
  compressNow(message: UnaryResponse): Uint8Array {
    const { gzipSync, fast } = loadedZlib();
    return gzipSync(joinMessage(message), fast);
  },
  compressLater(message: UnaryResponse): Promise<Uint8Array> {
    const { gzip, fast } = loadedZlib();
    return gzip(joinMessage(message), fast);
  },
};

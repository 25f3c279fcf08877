/**
 * A channel to one server: dials when a call needs it, keeps one connection, and dials again after
 * it is lost, not more often than its backoff allows.
 */
import { connect as connectTcp, type Socket } from "node:net";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import { type Clock, splitHostPort } from "@quorate/host";
import { GrpcCode } from "@quorate/proto";
import { ClientConnection } from "../../src/client/client-connection.ts";
import { type ClientLimits, DEFAULT_CLIENT_LIMITS } from "../../src/client/client-limits.ts";
import type { ClientConnectionOwner } from "../../src/client/client-state.ts";
import { StatusError } from "../../src/service.ts";
import { type Flushable, Flusher, writeTogether } from "../engine/flusher.ts";

/** The pause after a failed dial; it doubles up to the longest. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 3000;

export interface ChannelOptions {
  /** The endpoint as its user wrote it, for messages. */
  readonly endpoint: string;
  /** "host:port", or "unix:" and the path of a socket. */
  readonly address: string;
  /**
   * TLS options for a dial, read again for each one, so that renewed files count; undefined for
   * plain text. Throws if they cannot be read.
   */
  readonly tls: (() => ConnectionOptions) | undefined;
  /** Timeout of a dial with its handshake and the server's first SETTINGS. */
  readonly dialTimeoutMs: number;
  readonly limits?: Partial<ClientLimits>;
  /** The reason of a failed handshake, for the message; the error's own text by default. */
  readonly handshakeFailure?: (error: Error & { code?: string }, socket: TLSSocket) => string;
}

export class Channel {
  readonly endpoint: string;
  readonly #options: ChannelOptions;
  readonly #limits: ClientLimits;
  readonly #clock: Clock;
  #socket: ClientSocket | undefined;
  #dialling: Promise<ClientConnection> | undefined;
  /** The socket of the dial in progress. */
  #raw: Socket | undefined;
  #failure: StatusError | undefined;
  #failures = 0;
  #retryAtMs = 0;
  #isClosed = false;
  #isReferenced = true;
  /** Number of connections that were made. */
  connections = 0;

  constructor(options: ChannelOptions, clock: Clock) {
    this.endpoint = options.endpoint;
    this.#options = options;
    this.#limits = { ...DEFAULT_CLIENT_LIMITS, ...options.limits };
    this.#clock = clock;
  }

  /** The connection, if it takes calls now. */
  get ready(): ClientConnection | undefined {
    const connection = this.#socket?.connection;
    return connection?.isUsable === true ? connection : undefined;
  }

  /**
   * A connection that takes calls. Callers share one dial. Rejects with StatusError (UNAVAILABLE),
   * whose cause is Node's error; within the backoff after a failed dial at once, with that dial's
   * reason.
   */
  connect(): Promise<ClientConnection> {
    const { ready } = this;
    if (ready !== undefined) return Promise.resolve(ready);
    if (this.#isClosed) return Promise.reject(new StatusError(GrpcCode.Canceled, CLOSED));
    if (this.#failure !== undefined && this.#clock.monotonicMs() < this.#retryAtMs)
      return Promise.reject(this.#failure);
    this.#dialling ??= this.#dial().finally(() => {
      this.#dialling = undefined;
    });
    return this.#dialling;
  }

  /** Whether the connection keeps the process alive; it does by default. */
  setReferenced(isReferenced: boolean): void {
    this.#isReferenced = isReferenced;
    this.#socket?.setReferenced(isReferenced);
  }

  /** Ends the connection and all calls; later ones are refused. */
  close(): void {
    this.#isClosed = true;
    this.#raw?.destroy();
    this.#socket?.destroy(CLOSED);
  }

  async #dial(): Promise<ClientConnection> {
    try {
      const socket = await this.#open();
      this.#failures = 0;
      this.#failure = undefined;
      this.connections++;
      this.#socket = socket;
      socket.setReferenced(this.#isReferenced);
      return socket.connection;
    } catch (error) {
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures++, LONGEST_PAUSE_MS);
      this.#retryAtMs = this.#clock.monotonicMs() + pauseMs;
      const reason = JSON.stringify(`transport: ${(error as Error).message}`);
      this.#failure = new StatusError(
        this.#isClosed ? GrpcCode.Canceled : GrpcCode.Unavailable,
        this.#isClosed ? CLOSED : `connection error: desc = ${reason}`,
      );
      this.#failure.cause = (error as Error).cause;
      throw this.#failure;
    }
  }

  #open(): Promise<ClientSocket> {
    const { address, tls } = this.#options;
    return new Promise((resolve, reject) => {
      const raw = connectTcp(dialTarget(address));
      this.#raw = raw;
      let socket: Socket = raw;
      const timer = this.#clock.after(this.#options.dialTimeoutMs, () => {
        fail(`Error while dialing: dial ${shownAddress(address)}: i/o timeout`);
        socket.destroy();
      });
      const fail = (reason: string, cause?: Error): void => {
        timer.cancel();
        reject(new Error(reason, { cause }));
      };
      raw.once("error", (error: Error & { code?: string }) => {
        if (socket === raw) fail(`Error while dialing: ${dialFailure(address, error)}`, error);
      });
      let isTalking = false;
      raw.once("close", () => {
        // The talking socket knows why.
        if (!isTalking) fail(NO_PREFACE, new Error("error reading from server: EOF"));
      });
      const talk = (): void => {
        isTalking = true;
        const owner = new ClientSocket(
          socket,
          this.#limits,
          { authority: authorityOf(address), isSecure: tls !== undefined },
          this.#clock,
          {
            settled: () => {
              timer.cancel();
              resolve(owner);
            },
            closed: (why) => {
              fail(NO_PREFACE, new Error(why));
              if (this.#socket === owner) this.#socket = undefined;
            },
          },
        );
      };
      raw.once("connect", () => {
        if (tls === undefined) {
          talk();
          return;
        }
        try {
          // Loaded here: TLS takes a fifth of the time of a short program, with or without a use.
          const { connect: connectTls } = process.getBuiltinModule("node:tls");
          const secure = connectTls({ ...tls(), socket: raw });
          socket = secure;
          this.#handshake(secure, talk, fail);
        } catch (error) {
          fail(`authentication handshake failed: ${(error as Error).message}`);
          raw.destroy();
        }
      });
    });
  }

  #handshake(
    socket: TLSSocket,
    talk: () => void,
    fail: (reason: string, cause: Error) => void,
  ): void {
    const onError = (error: Error & { code?: string }): void => {
      const { handshakeFailure = ({ message }) => message } = this.#options;
      fail(`authentication handshake failed: ${handshakeFailure(error, socket)}`, error);
    };
    socket.once("error", onError);
    socket.once("secureConnect", () => {
      socket.off("error", onError);
      talk();
    });
  }
}

const NO_PREFACE = "connection closed before server preface received";
const CLOSED = "grpc: the client connection is closing";

function dialTarget(address: string): { path: string } | { host: string; port: number } {
  if (address.startsWith("unix:")) return { path: address.slice("unix:".length) };
  const { host, port } = splitAddress(address);
  return { host: host === "localhost" ? "127.0.0.1" : host, port };
}

/** The host and port of "host:port" or "[::1]:port"; without a port 443, as grpc-go. */
export function splitAddress(address: string): { readonly host: string; readonly port: number } {
  return splitHostPort(address) ?? splitHostPort(`${address}:443`) ?? { host: address, port: 443 };
}

function authorityOf(address: string): string {
  return address.startsWith("unix:") ? "localhost" : address;
}

function shownAddress(address: string): string {
  return address.startsWith("unix:") ? `unix ${address.slice("unix:".length)}` : `tcp ${address}`;
}

/** Go's texts by Node's codes. */
const DIAL_REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused",
  EHOSTUNREACH: "connect: no route to host",
  ENETUNREACH: "connect: network is unreachable",
  ETIMEDOUT: "connect: connection timed out",
  ENOENT: "connect: no such file or directory",
  EACCES: "connect: permission denied",
  ECONNRESET: "connect: connection reset by peer",
};

function dialFailure(address: string, error: Error & { code?: string }): string {
  if (error.code === "ENOTFOUND" || error.code === "EAI_AGAIN")
    return `dial tcp: lookup ${splitAddress(address).host}: no such host`;
  return `dial ${shownAddress(address)}: ${DIAL_REASONS[error.code ?? ""] ?? error.message}`;
}

/**
 * A client's socket and its HTTP/2 connection: moves bytes between them, with one gathering write
 * per turn and backpressure in both directions.
 */
/** Why a connection ended whose server broke a rule. */
export const PROTOCOL_ERROR = "protocol error";

/** Time between two sweeps for pings. */
const SWEEP_PERIOD_MS = 1000;

export interface ClientSocketListener {
  /** The server takes calls. Called once. */
  settled(): void;
  /** The connection is gone; its calls have ended. Called once. */
  closed(reason: string): void;
}

const flusher = new Flusher();

export class ClientSocket implements ClientConnectionOwner, Flushable {
  readonly connection: ClientConnection;
  readonly #socket: Socket;
  readonly #limits: ClientLimits;
  readonly #listener: ClientSocketListener;
  #isBlocked = false;
  #isDestroyed = false;
  #reason = "error reading from server: EOF";

  /** @param socket connected, its TLS handshake done */
  constructor(
    socket: Socket,
    limits: ClientLimits,
    server: { readonly authority: string; readonly isSecure: boolean },
    clock: Clock,
    listener: ClientSocketListener,
  ) {
    this.#socket = socket;
    this.#limits = limits;
    this.#listener = listener;
    this.connection = new ClientConnection(limits, this, server, clock.monotonicMs());
    const sweeper = clock.every(SWEEP_PERIOD_MS, () => this.connection.sweep(clock.monotonicMs()));
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.connection.receive(chunk, clock.monotonicMs()));
    socket.on("drain", () => this.#drained());
    socket.on("end", () => socket.end());
    socket.on("error", (error: Error & { code?: string }) => {
      const text = error.code === "ECONNRESET" ? "read: connection reset by peer" : error.message;
      this.#reason = `error reading from server: ${text}`;
    });
    socket.on("close", () => {
      sweeper.cancel();
      // Nothing but a broken rule of the protocol ends a connection from within.
      if (this.connection.ending && !this.#isDestroyed) this.#reason = PROTOCOL_ERROR;
      this.connection.lost(this.#reason);
      listener.closed(this.#reason);
    });
    this.connection.touched();
  }

  wake(): void {
    flusher.add(this);
  }

  settled(): void {
    this.#listener.settled();
  }

  flush(): void {
    do {
      this.connection.refill();
      if (!this.#write()) return;
    } while (this.connection.hasMore);
  }

  /** Whether the socket keeps the process alive. */
  setReferenced(isReferenced: boolean): void {
    if (isReferenced) this.#socket.ref();
    else this.#socket.unref();
  }

  /** Ends the connection at once; open calls end with this reason. */
  destroy(reason: string): void {
    this.#reason = reason;
    this.#isDestroyed = true;
    this.connection.lost(reason);
    this.#socket.destroy();
  }

  /** Writes the output to the socket; false if nothing more should be written now. */
  #write(): boolean {
    const socket = this.#socket;
    const { connection } = this;
    const chunks = connection.takeOutput();
    if (socket.destroyed) return false;
    writeTogether(socket, chunks);
    if (connection.ending) {
      socket.destroySoon();
      return false;
    }
    if (socket.writableLength === 0) connection.recycle();
    if (!socket.writableNeedDrain || socket.writableLength < this.#limits.outputTargetBytes)
      return true;
    this.#isBlocked = true;
    connection.setBlocked(true);
    return false;
  }

  #drained(): void {
    if (this.#socket.writableLength === 0) this.connection.recycle();
    if (!this.#isBlocked) return;
    this.#isBlocked = false;
    this.connection.setBlocked(false);
  }
}

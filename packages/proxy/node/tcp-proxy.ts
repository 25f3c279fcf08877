/**
 * The gateway's TCP proxy (etcd: server/proxy/tcpproxy/userspace.go): each connection goes to an
 * endpoint that can be reached, and tries each once. Bytes of both directions are copied with
 * backpressure; an end of one direction is passed on while the other goes on (etcd ends both).
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import type { Clock, Logger, Timer } from "@quorate/host";
import type { Balance, Picker } from "../src/gateway/picker.ts";

/** Connections at one time; more are closed. */
export const MAX_CONNECTIONS = 16_384;
/** Timeout of a connection to an endpoint. */
const DIAL_TIMEOUT_MS = 10_000;
/** How long the other direction may be silent when one has ended. */
export const HALF_CLOSED_TIMEOUT_MS = 300_000;

export interface TcpProxyOptions {
  readonly host: string;
  readonly port: number;
  /** Time between two attempts to reach an inactive endpoint. */
  readonly retryDelayMs: number;
  readonly maxConnections?: number;
  readonly halfClosedTimeoutMs?: number;
  readonly dialTimeoutMs?: number;
}

export class TcpProxy {
  readonly #options: TcpProxyOptions;
  readonly #picker: Picker;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #monitor: Timer | undefined;
  /** Connections that were closed because there were too many. */
  refused = 0;

  constructor(
    options: TcpProxyOptions,
    picker: Picker,
    deps: { readonly clock: Clock; readonly logger: Logger },
  ) {
    this.#options = options;
    this.#picker = picker;
    this.#clock = deps.clock;
    this.#logger = deps.logger;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true }, (socket) =>
      this.#accept(socket),
    );
  }

  /** Number of connections of clients. */
  get connections(): number {
    return this.#open.size;
  }

  /** Begins to listen; resolves with the port. Rejects with Node's error. */
  async listen(): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host: this.#options.host, port: this.#options.port }, resolve);
    });
    this.#server.on("error", (error) =>
      this.#logger.warn("failed to accept a connection", { error: error.message }),
    );
    const endpoints = this.#picker.remotes.map(({ address }) => address);
    this.#logger.info("ready to proxy client requests", { endpoints });
    this.#monitor = this.#clock.every(this.#options.retryDelayMs, () => this.#reactivate());
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /** Accepts no more, and ends all connections. */
  async close(): Promise<void> {
    this.#monitor?.cancel();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#open) socket.destroy();
    await closed;
  }

  #accept(client: Socket): void {
    client.on("error", () => client.destroy());
    if (this.#open.size >= (this.#options.maxConnections ?? MAX_CONNECTIONS)) {
      this.refused++;
      client.destroy();
      return;
    }
    this.#open.add(client);
    client.once("close", () => this.#open.delete(client));
    // Nothing is read before there is an endpoint to send it to.
    client.pause();
    void this.#serve(client);
  }

  async #serve(client: Socket): Promise<void> {
    const tried = new Set<Balance>();
    while (!client.destroyed) {
      const remote = this.#picker.next(tried);
      if (remote === undefined) break;
      tried.add(remote);
      try {
        const server = await dial(remote, this.#options.dialTimeoutMs ?? DIAL_TIMEOUT_MS);
        this.#activate(remote);
        if (client.destroyed) server.destroy();
        else this.#join(client, server);
        return;
      } catch (error) {
        this.#deactivate(remote, error as Error);
      }
    }
    client.destroy();
  }

  #deactivate(remote: Balance, error: Error): void {
    if (!remote.isActive) return;
    remote.isActive = false;
    this.#logger.warn("deactivated endpoint", {
      address: remote.address,
      interval: shownSeconds(this.#options.retryDelayMs),
      error: error.message,
    });
  }

  #activate(remote: Balance): void {
    if (remote.isActive) return;
    remote.isActive = true;
    this.#logger.info("activated", { address: remote.address });
  }

  #join(client: Socket, server: Socket): void {
    const timeoutMs = this.#options.halfClosedTimeoutMs ?? HALF_CLOSED_TIMEOUT_MS;
    const destroy = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on("error", destroy);
      one.once("close", () => {
        // A socket that closed after its end has passed all on, and takes nothing any more.
        if (one.readableEnded) other.destroySoon();
        else other.destroy();
      });
      one.once("end", () => {
        // What remains is bounded: a side that neither sends nor ends must not stay for ever.
        other.setTimeout(timeoutMs, destroy);
        one.setTimeout(timeoutMs, destroy);
      });
      one.pipe(other);
    }
  }

  #reactivate(): void {
    for (const remote of this.#picker.remotes.filter(({ isActive }) => !isActive)) {
      dial(remote, this.#options.dialTimeoutMs ?? DIAL_TIMEOUT_MS).then(
        (socket) => {
          socket.destroy();
          this.#activate(remote);
        },
        (error: Error) =>
          this.#logger.warn("failed to activate endpoint (stay inactive for another interval)", {
            address: remote.address,
            interval: shownSeconds(this.#options.retryDelayMs),
            error: error.message,
          }),
      );
    }
  }
}

function shownSeconds(ms: number): string {
  return `${ms / 1000}s`;
}

function dial(remote: Balance, timeoutMs: number): Promise<Socket> {
  const { host, port } = remote.endpoint;
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true, keepAlive: true });
    const fail = (error: Error): void => {
      socket.destroy();
      reject(error);
    };
    socket.setTimeout(timeoutMs, () => fail(new Error("i/o timeout")));
    socket.once("error", fail);
    socket.once("connect", () => {
      socket.setTimeout(0);
      socket.removeAllListeners("timeout");
      socket.off("error", fail);
      resolve(socket);
    });
  });
}

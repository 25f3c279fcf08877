/** The gateway with its WebSockets. */
import type { Clock, HttpExchange, HttpExchangeHandler, HttpHead, Timer } from "@quorate/host";
import type { Gateway } from "../../src/gateway/gateway.ts";
import {
  handshakeFields,
  type MessageSocket,
  type SocketBudget,
  SocketExchange,
} from "../../src/gateway/socket-exchange.ts";
import { asksForWebSocket, type ServerWebSocket, serveWebSocket } from "./index.ts";

/** A client that has answered no ping for so long is gone; with no clients there is no timer. */
const PING_PERIOD_MS = 60_000;

export interface SocketGatewayOptions {
  readonly clock: Clock;
  /** Longest message of a client. */
  readonly maxMessageBytes: number;
  /** Memory for the requests of all WebSockets. */
  readonly maxHeldTotalBytes: number;
}

export class SocketGateway {
  readonly #gateway: Gateway;
  readonly #options: SocketGatewayOptions;
  readonly #budget: SocketBudget;
  readonly #sockets = new Set<Connection>();
  #timer: Timer | undefined;
  /** Serves an exchange: as a WebSocket if it asks for that. */
  readonly handler: HttpExchangeHandler = (exchange) => {
    if (!asksForWebSocket(exchange.head)) return this.#gateway.handler(exchange);
    this.#serve(exchange);
    return {};
  };

  constructor(gateway: Gateway, options: SocketGatewayOptions) {
    this.#gateway = gateway;
    this.#options = options;
    this.#budget = { maxBytes: options.maxHeldTotalBytes, usedBytes: 0 };
  }

  /** Sockets that are open. */
  get size(): number {
    return this.#sockets.size;
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #serve(exchange: HttpExchange): void {
    const { head } = exchange;
    const isStream = this.#gateway.hasRequestStream(head.path) === true;
    const connection = new Connection(head, isStream, this.#budget);
    const socket = serveWebSocket(exchange, {
      maxMessageBytes: this.#options.maxMessageBytes,
      headers: handshakeFields(head),
      onMessage: (bytes) => connection.exchange.message(bytes),
      onDrain: () => connection.exchange.drained(),
      onPong: () => {
        connection.isAlive = true;
      },
      onClose: () => {
        this.#sockets.delete(connection);
        connection.exchange.closed();
      },
    });
    if (socket === undefined) return;
    connection.socket = socket;
    this.#sockets.add(connection);
    this.#timer ??= this.#options.clock.every(PING_PERIOD_MS, () => this.#ping());
    connection.exchange.serve(this.#gateway.handler);
  }

  #ping(): void {
    for (const connection of this.#sockets) {
      if (connection.isAlive) connection.ping();
      else connection.close(1001, "no answer to a ping");
    }
    if (this.#sockets.size === 0) this.close();
  }
}

/** A WebSocket and its exchange. */
class Connection implements MessageSocket {
  readonly exchange: SocketExchange;
  socket: ServerWebSocket | undefined;
  isAlive = true;

  constructor(head: HttpHead, isStream: boolean, budget: SocketBudget) {
    this.exchange = new SocketExchange(head, isStream, budget, this);
  }

  get bufferedBytes(): number {
    return this.socket?.bufferedBytes ?? 0;
  }

  ping(): void {
    this.isAlive = false;
    this.socket?.ping();
  }

  send(text: Uint8Array): boolean {
    return this.socket?.send(text) ?? false;
  }

  pause(): void {
    this.socket?.pause();
  }

  resume(): void {
    this.socket?.resume();
  }

  close(code: number, reason?: string): void {
    this.socket?.close(code, reason);
  }
}

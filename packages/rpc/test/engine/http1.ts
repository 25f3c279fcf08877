/** The core of the HTTP/1.1 engine without a socket, with time under the test's hand. */
import {
  type HttpExchange,
  type HttpExchangeHandler,
  type HttpExchangeListener,
  silentLogger,
} from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { fromLatin1, toLatin1 } from "@quorate/proto";
import { HttpDate } from "../../src/http/fields.ts";
import { Http1Connection, type Http1Owner } from "../../src/http1/connection.ts";
import { FIXED_HTTP1_LIMITS, type Http1Limits } from "../../src/http1/limits.ts";
import { Http1Shared } from "../../src/http1/shared.ts";
import { DEFAULT_HTTP2_LIMITS } from "../../src/http2/limits.ts";
import { Http2Shared } from "../../src/http2/shared.ts";

const MIB = 1024 * 1024;

export const HTTP1_LIMITS: Http1Limits = {
  ...DEFAULT_HTTP2_LIMITS,
  ...FIXED_HTTP1_LIMITS,
  headTimeoutMs: 10_000,
  idleTimeoutMs: 300_000,
};

/** Answers with the method, the target and the body. */
export const ECHO: HttpExchangeHandler = (exchange) => {
  const pieces: Uint8Array[] = [];
  return {
    data: (bytes) => void pieces.push(bytes),
    ended: () => {
      const { method, path, query } = exchange.head;
      const body = pieces.map((piece) => toLatin1(piece)).join("");
      exchange.respond({ status: 200, headers: {}, body: `${method} ${path}?${query} ${body}` });
    },
  };
};

export interface Http1Options {
  readonly limits?: Partial<Http1Limits>;
  readonly sendBudgetBytes?: number;
  /** Whether there is a slot for the connection. */
  readonly hasSlot?: boolean;
  /** The socket takes no bytes until `drain`. */
  readonly isStuck?: boolean;
}

export class Http1Client implements Http1Owner {
  readonly connection: Http1Connection;
  readonly shared: Http1Shared;
  readonly exchanges: HttpExchange[] = [];
  readonly clock = new ManualClock();
  isReading = true;
  isDestroyed = false;
  isStuck: boolean;
  #waitingBytes = 0;
  #nowMs = 0;
  #received = "";
  readonly #hasSlot: boolean;

  constructor(handler: HttpExchangeHandler, options: Http1Options = {}) {
    const limits = { ...HTTP1_LIMITS, ...options.limits };
    const budgets = new Http2Shared(DEFAULT_HTTP2_LIMITS, 64 * MIB, 64 * MIB, 64 * MIB);
    this.#hasSlot = options.hasSlot ?? true;
    this.isStuck = options.isStuck ?? false;
    const context = {
      handler: (exchange: HttpExchange) => {
        this.exchanges.push(exchange);
        return handler(exchange);
      },
      logger: silentLogger,
      sendBudgetBytes: options.sendBudgetBytes ?? 1000,
      date: new HttpDate(this.clock),
    };
    this.shared = new Http1Shared(limits, context, budgets);
    const peer = { peerAddress: "127.0.0.1:7", peerCommonName: undefined };
    this.connection = new Http1Connection(this.shared, this, peer, 0);
  }

  wake(): void {}

  read(on: boolean): void {
    this.isReading = on;
  }

  identified(): boolean {
    return this.#hasSlot;
  }

  destroy(): void {
    this.isDestroyed = true;
    this.connection.lost();
  }

  send(text: string): this {
    this.connection.receive(fromLatin1(text).slice(), this.#nowMs);
    return this;
  }

  /** What the server has sent since the last call; its Date and the text of bodies included. */
  take(): string {
    this.#flush();
    const text = this.#received;
    this.#received = "";
    return text;
  }

  /** The socket takes everything. */
  drain(): void {
    this.isStuck = false;
    this.#flush();
    this.#waitingBytes = 0;
    this.connection.flushed(0);
  }

  pass(ms: number): void {
    this.#nowMs += ms;
    this.connection.sweep(this.#nowMs);
  }

  /** Bytes that the budgets count for this connection. */
  get countedBytes(): number {
    const { held, pending, heads } = this.shared;
    return held.usedBytes + pending.usedBytes + heads.usedBytes;
  }

  #flush(): void {
    for (let chunks = this.connection.takeOutput(); chunks.length > 0; ) {
      for (const chunk of chunks) {
        this.#received += toLatin1(chunk);
        if (this.isStuck) this.#waitingBytes += chunk.length;
      }
      this.connection.flushed(this.#waitingBytes);
      chunks = this.connection.takeOutput();
    }
  }
}

/** The status of each response in a text. */
export function responses(text: string): string[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status);
}

/** A client of a handler that does nothing, and what its listener was called with. */
export function silent(options: Http1Options = {}, extra: HttpExchangeListener = {}) {
  const calls: string[] = [];
  const client = new Http1Client(
    () => ({
      data: (bytes) => void calls.push(toLatin1(bytes)),
      ended: () => void calls.push("ended"),
      drained: () => void calls.push("drained"),
      aborted: () => void calls.push("aborted"),
      ...extra,
    }),
    options,
  );
  return { client, calls, exchange: () => client.exchanges.at(-1) as HttpExchange };
}

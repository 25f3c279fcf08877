/** An HTTP exchange in memory: a test drives the request and reads the response. */
import type { HttpResponse } from "../src/http.ts";
import type {
  HttpExchange,
  HttpExchangeHandler,
  HttpExchangeListener,
  HttpHead,
  HttpTunnel,
} from "../src/http-exchange.ts";

/** What the handler has sent so far. */
export class MemoryExchange implements HttpExchange {
  readonly head: HttpHead;
  status: number | undefined;
  headers: Readonly<Record<string, string>> = {};
  readonly pieces: Uint8Array[] = [];
  state: "open" | "started" | "ended" | "aborted" = "open";
  paused = false;
  heldBytes = 0;
  /** What `bufferedBytes` returns and `send` compares with `sendBudgetBytes`. */
  bufferedBytes = 0;
  sendBudgetBytes = Number.POSITIVE_INFINITY;
  holdBudgetBytes = Number.POSITIVE_INFINITY;
  readonly done: Promise<void>;
  readonly #settle: () => void;
  #listener: HttpExchangeListener = {};

  constructor(head: Partial<HttpHead> & Pick<HttpHead, "path">) {
    const headers = new Map<string, string>();
    const defaults = { method: "GET", query: "", peerAddress: "127.0.0.1:1" };
    this.head = { ...defaults, headers, peerCommonName: undefined, ...head };
    const { promise, resolve } = Promise.withResolvers<void>();
    this.done = promise;
    this.#settle = resolve;
  }

  /** Starts the handler and delivers `body`, then its end unless `open` is true. */
  serve(handler: HttpExchangeHandler, body: readonly Uint8Array[] = [], open = false): this {
    this.#listener = handler(this);
    for (const piece of body) this.#listener.data?.(piece);
    if (!open) this.#listener.ended?.();
    return this;
  }

  /** The callbacks of the handler, to drive them by hand. */
  get listener(): HttpExchangeListener {
    return this.#listener;
  }

  /** The body sent so far, as UTF-8. */
  get text(): string {
    return new TextDecoder().decode(Buffer.concat(this.pieces));
  }

  respond(response: HttpResponse): void {
    if (this.state !== "open") return;
    this.start(response.status, response.headers);
    const { body } = response;
    this.send(typeof body === "string" ? new TextEncoder().encode(body) : body);
    this.end();
  }

  start(status: number, headers: Readonly<Record<string, string>>): void {
    if (this.state !== "open") return;
    this.state = "started";
    this.status = status;
    this.headers = headers;
  }

  send(piece: Uint8Array): boolean {
    if (this.state === "started") this.pieces.push(piece);
    return this.bufferedBytes < this.sendBudgetBytes;
  }

  end(): void {
    if (this.state !== "started") return;
    this.state = "ended";
    this.#settle();
  }

  abort(): void {
    this.state = "aborted";
    this.#settle();
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  hold(sizeBytes: number): boolean {
    if (this.heldBytes + sizeBytes > this.holdBudgetBytes) return false;
    this.heldBytes += sizeBytes;
    return true;
  }

  release(sizeBytes: number): void {
    this.heldBytes -= sizeBytes;
  }

  upgrade(): HttpTunnel | undefined {
    return undefined;
  }
}

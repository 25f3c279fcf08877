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
  readonly #waiting: (Uint8Array | undefined)[] = [];

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
    for (const piece of body) this.receive(piece);
    if (!open) this.receive(undefined);
    return this;
  }

  /** A piece of the body arrives, or with undefined its end. It waits while paused. */
  receive(piece: Uint8Array | undefined): void {
    this.#waiting.push(piece);
    this.#deliver();
  }

  /** The client leaves. */
  leave(): void {
    if (this.state === "ended" || this.state === "aborted") return;
    this.state = "aborted";
    this.#settle();
    this.#listener.aborted?.();
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
    if (this.state !== "started") return false;
    this.pieces.push(piece);
    return this.bufferedBytes < this.sendBudgetBytes;
  }

  end(): void {
    if (this.state !== "started") return;
    this.state = "ended";
    this.#settle();
  }

  abort(): void {
    if (this.state === "ended") return;
    this.state = "aborted";
    this.#settle();
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    this.#deliver();
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

  #deliver(): void {
    while (!this.paused && this.#waiting.length > 0) {
      const piece = this.#waiting.shift();
      if (piece === undefined) this.#listener.ended?.();
      else this.#listener.data?.(piece);
    }
  }
}

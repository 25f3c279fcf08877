/**
 * The part of an HttpExchange that does not depend on the HTTP version: its phases, the calls of
 * the handler's listener, and what the handler holds.
 *
 *     open -- respond --------------> ended
 *     open -- start --> started -- end --> ended
 *     any but ended --- abort, client gone, handler threw ---> ended
 */
import type {
  HttpExchange,
  HttpExchangeListener,
  HttpHead,
  HttpResponse,
  HttpTunnel,
} from "@quorate/host";
import { fromUtf8 } from "@quorate/proto";
import type { ByteBudget } from "../http2/byte-budget.ts";
import { type HttpContext, mayHaveBody, type ResponseFields, responseFields } from "./fields.ts";

const FAILED: HttpResponse = {
  status: 500,
  headers: { "content-type": "text/plain; charset=utf-8" },
  body: "internal server error\n",
};

export abstract class Exchange implements HttpExchange {
  abstract readonly head: HttpHead;
  protected readonly context: HttpContext;
  protected phase: "open" | "started" | "ended" = "open";
  /** The response has no body on the wire: to HEAD, or because of its status. */
  protected isBodiless = false;
  #listener: HttpExchangeListener = {};
  #heldBytes = 0;
  #overBudget = false;

  constructor(context: HttpContext) {
    this.context = context;
  }

  abstract readonly bufferedBytes: number;
  abstract pause(): void;
  abstract resume(): void;
  abstract upgrade(headers: Readonly<Record<string, string>>): HttpTunnel | undefined;

  /** Bytes that requests of this connection hold. */
  protected abstract readonly held: ByteBudget;
  protected abstract refusedToHold(): void;
  /** Sends a head; with `body` the whole response. */
  protected abstract sendHead(status: number, fields: ResponseFields, body?: Uint8Array): void;
  /** Sends a part of the body; false when the exchange was cut off for it. */
  protected abstract sendBody(piece: Uint8Array): boolean;
  /** Ends the body. */
  protected abstract sendEnd(): void;
  /** Cuts the response off on the wire. */
  protected abstract cut(): void;
  /** Calls `notifyDrained` once no more than `sizeBytes` wait. */
  protected abstract awaitDrain(sizeBytes: number): void;

  /** Calls the handler. */
  protected serve(): void {
    try {
      this.#listener = this.context.handler(this);
    } catch (error) {
      this.#failed(error);
    }
  }

  respond(response: HttpResponse): void {
    if (this.phase !== "open") return;
    const { status, body } = response;
    const fields = responseFields(response.headers);
    this.isBodiless = this.head.method === "HEAD" || !mayHaveBody(status);
    this.#end();
    this.sendHead(status, fields, typeof body === "string" ? fromUtf8(body) : body);
  }

  start(status: number, headers: Readonly<Record<string, string>>): void {
    if (this.phase !== "open") return;
    this.phase = "started";
    this.isBodiless = this.head.method === "HEAD" || !mayHaveBody(status);
    this.sendHead(status, responseFields(headers));
  }

  send(piece: Uint8Array): boolean {
    if (this.phase !== "started") return false;
    if (this.isBodiless || piece.length === 0) return true;
    if (!this.sendBody(piece)) {
      this.aborted();
      return false;
    }
    const { sendBudgetBytes } = this.context;
    if (this.bufferedBytes <= sendBudgetBytes) return true;
    this.#overBudget = true;
    // Before all is sent, so that the client does not run dry meanwhile.
    this.awaitDrain(sendBudgetBytes >>> 1);
    return false;
  }

  end(): void {
    if (this.phase !== "started") return;
    this.#end();
    this.sendEnd();
  }

  abort(): void {
    if (this.phase === "ended") return;
    this.#end();
    this.cut();
  }

  hold(sizeBytes: number): boolean {
    if (this.phase === "ended") return false;
    if (!this.held.take(sizeBytes)) {
      this.refusedToHold();
      return false;
    }
    this.#heldBytes += sizeBytes;
    return true;
  }

  release(sizeBytes: number): void {
    const size = Math.min(sizeBytes, this.#heldBytes);
    this.#heldBytes -= size;
    this.held.give(size);
  }

  /** The client is gone, or the connection ends. */
  aborted(): void {
    if (this.phase === "ended") return;
    this.#end();
    const listener = this.#listener;
    try {
      listener.aborted?.();
    } catch (error) {
      this.#log(error);
    }
  }

  /** Whether the handler still takes the body. */
  protected get takesBody(): boolean {
    return this.phase !== "ended";
  }

  protected deliver(bytes: Uint8Array): void {
    try {
      this.#listener.data?.(bytes);
    } catch (error) {
      this.#failed(error);
    }
  }

  protected deliverEnd(): void {
    if (this.phase === "ended") return;
    try {
      this.#listener.ended?.();
    } catch (error) {
      this.#failed(error);
    }
  }

  protected notifyDrained(): void {
    if (!this.#overBudget || this.phase !== "started") return;
    this.#overBudget = false;
    try {
      this.#listener.drained?.();
    } catch (error) {
      this.#failed(error);
    }
  }

  #end(): void {
    this.phase = "ended";
    this.release(this.#heldBytes);
  }

  #failed(error: unknown): void {
    this.#log(error);
    if (this.phase === "open") this.respond(FAILED);
    else this.abort();
  }

  #log(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    const { method, path } = this.head;
    this.context.logger.warn("failed to handle HTTP request", { method, path, error: reason });
  }
}

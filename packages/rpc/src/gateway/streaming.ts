/**
 * A stream by HTTP. The body is JSON values one after the other, with or without spaces between
 * them; the response is one line for each message:
 *
 *     {"result":{...}}
 *     {"error":{"code":11,"message":"..."}}     the last line of a stream that failed
 *
 * The head of the response goes with its first line, as etcd's does, so that a stream which fails
 * before has the status of its error. A method without a request stream takes the whole body as
 * its one request.
 */
import type { HttpExchange } from "@quorate/host";
import { type HttpRoute, JsonError, JsonSplitter, jsonToWire } from "@quorate/proto";
import { statusOf } from "../served-call.ts";
import {
  type CallContext,
  type MessageBytes,
  messageSize,
  type Status,
  type StreamCall,
  type StreamHandler,
  type StreamListener,
} from "../service.ts";
import { CollectedBody } from "./body.ts";
import { GatewayCall, OK } from "./call.ts";
import { MessageWriter } from "./message-writer.ts";
import { endStream, errorResponse, MESSAGE_HEADERS } from "./responses.ts";
import type { GatewayShared } from "./settings.ts";

export class GatewayStream extends GatewayCall implements StreamCall {
  readonly #handler: StreamHandler;
  /** Of a method with a request stream. */
  readonly #splitter: JsonSplitter | undefined;
  readonly #body = new CollectedBody();
  readonly #writer: MessageWriter;
  #listener: StreamListener = {};
  #hasBegun = false;
  #hasStarted = false;
  #isPaused = false;
  #isDelivering = false;
  #bodyEnded = false;
  #notifiedHalfClosed = false;
  #overBudget = false;

  constructor(
    shared: GatewayShared,
    exchange: HttpExchange,
    route: HttpRoute,
    timeoutMs: number | undefined,
    handler: StreamHandler,
  ) {
    super(shared, exchange, route, timeoutMs);
    this.#handler = handler;
    this.#writer = new MessageWriter(exchange, shared.clock, route.response, "chunk", (error) =>
      this.cancel(statusOf(error)),
    );
    if (!route.rpc.requestStream) return;
    this.#splitter = new JsonSplitter(shared.limits.maxBodyBytes);
    this.begin(() => this.#begin());
  }

  get context(): CallContext {
    return this;
  }

  get bufferedBytes(): number {
    return this.exchange.bufferedBytes + this.#writer.waitingBytes;
  }

  #begin(): void {
    this.#hasBegun = true;
    try {
      this.#listener = this.#handler(this);
    } catch (error) {
      this.finish(statusOf(error));
    }
    // What the handler sent meanwhile may already be over a limit.
    if (this.cancelled) this.abandoned();
    else this.#deliver();
  }

  send(message: MessageBytes): boolean {
    if (this.isEnded) return false;
    const size = messageSize(message);
    this.sent(size);
    if (!this.#hasStarted) {
      this.#hasStarted = true;
      this.exchange.start(200, MESSAGE_HEADERS);
    }
    try {
      this.#writer.write(message);
    } catch (error) {
      this.cancel(statusOf(error));
    }
    if (this.#hasSpace) return !this.isEnded;
    this.#overBudget = true;
    return false;
  }

  get #hasSpace(): boolean {
    return this.#writer.isReady || this.bufferedBytes <= this.shared.limits.sendBudgetBytes;
  }

  end(status: Status = OK): void {
    this.finish(status);
  }

  pause(): void {
    this.#isPaused = true;
    this.exchange.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#deliver();
    if (!this.#isPaused && !this.isEnded) this.exchange.resume();
  }

  override data(bytes: Uint8Array): void {
    if (this.isEnded || !this.hold(bytes.length)) return;
    if (this.#splitter === undefined) {
      this.#body.push(bytes);
      this.refuseSize(this.#body.sizeBytes, this.shared.limits.maxBodyBytes);
      return;
    }
    this.#splitter.push(bytes);
    this.#deliver();
  }

  override ended(): void {
    this.#bodyEnded = true;
    if (this.isEnded) return;
    if (this.#splitter === undefined) this.#decodeOne();
    else {
      this.#splitter.end();
      this.#deliver();
    }
  }

  /** Calls the service with the one request that the body is. */
  #decodeOne(): void {
    this.decodeBody(this.#body.take(), (message) => {
      if (this.refuseSize(message.length, this.shared.limits.maxRequestBytes)) return;
      this.begin(() => {
        this.#begin();
        this.#call(() => this.#hand(message));
        this.#halfClose();
      });
    });
  }

  /** Delivers complete values until the service pauses, then the end of the body. */
  #deliver(): void {
    const splitter = this.#splitter;
    // A listener that calls resume is inside this loop already.
    if (splitter === undefined || this.#isDelivering || !this.#hasBegun) return;
    this.#isDelivering = true;
    try {
      while (!this.#isPaused && !this.isEnded) {
        const value = splitter.next();
        if (value === undefined) break;
        const message = jsonToWire(this.route.request, value);
        this.releaseTo(splitter.bufferedBytes);
        if (!this.refuseSize(message.length, this.shared.limits.maxRequestBytes))
          this.#call(() => this.#hand(message));
      }
    } catch (error) {
      this.refuseBody(asDecodingError(error));
    }
    this.#isDelivering = false;
    if (this.#bodyEnded && !this.#isPaused) this.#halfClose();
  }

  #hand(message: Uint8Array): void {
    this.received(message.length);
    this.#listener.message?.(message);
  }

  #halfClose(): void {
    if (this.isEnded || this.#notifiedHalfClosed) return;
    this.#notifiedHalfClosed = true;
    this.#call(() => this.#listener.halfClosed?.());
  }

  override drained(): void {
    this.#writer.drained();
    if (!this.#overBudget || this.isEnded || !this.#hasSpace) return;
    this.#overBudget = false;
    this.#call(() => this.#listener.drained?.());
  }

  override aborted(): void {
    this.#writer.stop();
    super.aborted();
  }

  protected override sendEnd(status: Status): void {
    const { exchange } = this;
    this.releaseTo(0);
    this.#body.clear();
    if (this.cancelled) {
      // A line that is not whole cannot be followed by another one.
      const isInside = this.#writer.isInside;
      this.#writer.stop();
      if (isInside) exchange.abort();
    }
    if (!this.#hasBegun) {
      // A stream that was never opened has the response of a call.
      exchange.respond(errorResponse(status));
      return;
    }
    this.#writer.whenEmpty(() => {
      if (status.code !== OK.code) endStream(exchange, this.#hasStarted, status);
      else if (this.#hasStarted) exchange.end();
      else exchange.respond({ status: 200, headers: {}, body: "" });
    });
  }

  protected override abandoned(): void {
    this.#call(() => this.#listener.cancelled?.());
  }

  #call(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.finish(statusOf(error));
    }
  }
}

/** Broken JSON in a stream has the text of the gateway's own log line before it. */
function asDecodingError(error: unknown): unknown {
  return error instanceof JsonError
    ? new JsonError(`Failed to decode request: ${error.message}`)
    : error;
}

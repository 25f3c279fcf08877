/**
 * One HTTP request and its response as streams, independent of server and protocol version.
 *
 *     engine: head -> HttpExchangeHandler(exchange) -> listener
 *             listener.data* -> listener.ended          the request's body
 *     handler: exchange.respond(whole)                  or
 *              exchange.start, exchange.send*, exchange.end
 *
 * All calls happen on the event loop; none of them throws.
 */
import { HeldBody } from "./held-body.ts";
import type { HttpHandler, HttpRequest, HttpResponse } from "./http.ts";

/** A request without its body. */
export type HttpHead = Omit<HttpRequest, "body">;

/** One request that is being served. */
export interface HttpExchange {
  readonly head: HttpHead;
  /** Sends the whole response and ends the exchange. Ignored after `start` or a `respond`. */
  respond(response: HttpResponse): void;
  /**
   * Sends the head of a response whose body follows in pieces, without a content-length unless
   * `headers` has one. Sent at once, before the first piece.
   */
  start(status: number, headers: Readonly<Record<string, string>>): void;
  /**
   * Sends one piece, which must not change afterwards. Returns false when more than the send budget
   * waits for the client: send no more until `drained`.
   */
  send(piece: Uint8Array): boolean;
  /** Ends the body that `start` began. */
  end(): void;
  /** Cuts the response off, so that the client sees that it is not complete. */
  abort(): void;
  /** Bytes that were sent and are not yet written to the socket. */
  readonly bufferedBytes: number;
  /** Stops and restarts the delivery of the body (backpressure to the client). */
  pause(): void;
  resume(): void;
  /**
   * Counts bytes of the request that the handler keeps, within the budgets of the connection and of
   * the server. Returns false, and counts nothing, when there is no budget left: respond with 503.
   * The engine releases what is held at the end of the exchange.
   */
  hold(sizeBytes: number): boolean;
  /** Releases held bytes earlier. */
  release(sizeBytes: number): void;
  /**
   * Takes the connection over for another protocol (HTTP/1.1 `Upgrade`; RFC 9110 section 7.8):
   * sends 101 with `headers` and returns the bytes of both directions. Undefined where that is not
   * possible: over HTTP/2, or when a response has begun.
   */
  upgrade(headers: Readonly<Record<string, string>>): HttpTunnel | undefined;
}

/** A connection that was taken over. The listener of its exchange is called no more. */
export interface HttpTunnel {
  /** Receives the bytes in order, those that followed the request's head first. Set once. */
  onData(listener: (bytes: Uint8Array) => void): void;
  /** Called once when the connection has ended, by whichever side. */
  onClose(listener: () => void): void;
  /** Called when `bufferedBytes` has fallen below the send budget again. */
  onDrain(listener: () => void): void;
  /** As HttpExchange.send. */
  send(bytes: Uint8Array): boolean;
  readonly bufferedBytes: number;
  pause(): void;
  resume(): void;
  /** As HttpExchange.hold and release; what is held is released when the connection ends. */
  hold(sizeBytes: number): boolean;
  release(sizeBytes: number): void;
  /** Ends the connection after the bytes that were sent. */
  end(): void;
  /** Ends the connection at once. */
  destroy(): void;
}

/** Callbacks of a handler; all are optional. */
export interface HttpExchangeListener {
  /** A piece of the body. The bytes stay valid. */
  data?(bytes: Uint8Array): void;
  /** The body is complete. Called also for a request without one. */
  ended?(): void;
  /** The send budget is free again. */
  drained?(): void;
  /** The client is gone or the server closes; nothing more can be sent. */
  aborted?(): void;
}

/**
 * Starts to serve a request when its head is complete. Body bytes arrive only after it has
 * returned. A request with `Expect: 100-continue` gets 100 if the handler has not responded by then.
 */
export type HttpExchangeHandler = (exchange: HttpExchange) => HttpExchangeListener;

/** Responses of the adapter below. */
const TEXT = { "content-type": "text/plain; charset=utf-8" };
const TOO_LARGE: HttpResponse = { status: 413, headers: TEXT, body: "request body too large\n" };
const TOO_BUSY: HttpResponse = {
  status: 503,
  headers: TEXT,
  body: "requests being received hold too much memory\n",
};
const FAILED: HttpResponse = { status: 500, headers: TEXT, body: "internal server error\n" };

/**
 * Serves requests whose whole body is known.
 * @param maxBodyBytes a longer body gets 413
 * @param failed called with what a handler threw; the client gets 500
 */
export function wholeBody(
  handler: HttpHandler,
  maxBodyBytes: number,
  failed: (head: HttpHead, error: unknown) => void,
): HttpExchangeHandler {
  return (exchange) => {
    const body = new HeldBody(exchange, maxBodyBytes);
    const fail = (error: unknown) => {
      failed(exchange.head, error);
      exchange.respond(FAILED);
    };
    return {
      data(bytes) {
        const why = body.push(bytes);
        if (why !== undefined) exchange.respond(why === "too long" ? TOO_LARGE : TOO_BUSY);
      },
      ended() {
        if (body.isRefused) return;
        try {
          const response = handler({ ...exchange.head, body: body.take() });
          if (response instanceof Promise) response.then((it) => exchange.respond(it), fail);
          else exchange.respond(response);
        } catch (error) {
          fail(error);
        }
      },
    };
  };
}

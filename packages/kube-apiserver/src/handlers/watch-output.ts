/**
 * Where the frames of a watch go: the body of a response, or a WebSocket (apiserver:
 * handlers/watch.go, HandleHTTP and HandleWS).
 *
 *     response   frames one after the other, those of protobuf behind their length
 *     WebSocket  a message for each event: JSON as text, protobuf as bytes without length
 */

import type { HttpExchange } from "@quorate/host";
import { ApiError } from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { isWebSocketRequest, socketProtocols } from "../authn/socket-protocols.ts";
import type { Call } from "./call.ts";

/** The length that stands before a frame of protobuf. */
const LENGTH_BYTES = 4;
const NORMAL_CLOSURE = 1000;

/** A WebSocket that the platform has opened. */
export interface OpenSocket {
  /** False when more than the send budget waits: send no more until `onDrain`. */
  send(message: Uint8Array, isBinary: boolean): boolean;
  close(code: number): void;
}

export interface SocketEvents {
  readonly headers: Readonly<Record<string, string>>;
  onDrain(): void;
  onClose(): void;
}

/** Opens WebSockets. Undefined where that is not possible: the exchange then has its response. */
export type SocketOpener = (exchange: HttpExchange, events: SocketEvents) => OpenSocket | undefined;

export interface WatchOutput {
  /** Returns false where there is a response already: send nothing. */
  start(contentType: string): boolean;
  /** Returns false when no more should be sent until `drained` is called. */
  send(frame: Uint8Array, drained: () => void): boolean;
  end(): void;
}

/** The output that the request asks for. Throws ApiError 403 for a page of another site. */
export function watchOutput(call: Call, openSocket: SocketOpener | undefined): WatchOutput {
  if (openSocket === undefined || !isWebSocketRequest(call.head))
    return {
      start: (contentType) => call.start(200, { "content-type": contentType }),
      send: (frame, drained) => call.send(frame, drained),
      end: () => call.end(),
    };
  const { token, chosen } = socketProtocols(call.head);
  if (token === undefined) checkOrigin(call);
  const headers: Record<string, string> = chosen === "" ? {} : { "sec-websocket-protocol": chosen };
  return new SocketOutput(call, headers, openSocket);
}

/** A browser sends a certificate for any page; only one of this server may use it. */
function checkOrigin({ head }: Call): void {
  const origin = head.headers.get("origin");
  if (origin === undefined) return;
  const host = head.headers.get("host") ?? "";
  if (origin.toLowerCase() === `https://${host.toLowerCase()}`) return;
  const why = "a WebSocket of another site needs a token among its subprotocols";
  throw new ApiError(403, "Forbidden", why);
}

class SocketOutput implements WatchOutput {
  readonly #call: Call;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #openSocket: SocketOpener;
  #socket: OpenSocket | undefined;
  #isBinary = false;
  #onDrain: (() => void) | undefined;

  constructor(call: Call, headers: Readonly<Record<string, string>>, openSocket: SocketOpener) {
    this.#call = call;
    this.#headers = headers;
    this.#openSocket = openSocket;
  }

  start(contentType: string): boolean {
    this.#isBinary = !contentType.startsWith("application/json");
    this.#socket = this.#call.switchProtocols(this.#headers, (exchange, headers, over) =>
      this.#openSocket(exchange, {
        headers,
        onDrain: () => this.#drained(),
        onClose: () => {
          over();
          this.#drained();
        },
      }),
    );
    return this.#socket !== undefined;
  }

  send(frame: Uint8Array, drained: () => void): boolean {
    if (this.#call.isOver) return true;
    const message = this.#isBinary ? frame.subarray(LENGTH_BYTES) : frame;
    this.#call.sentBytes += message.length;
    if (defined(this.#socket, "the socket").send(message, this.#isBinary)) return true;
    this.#onDrain = drained;
    return false;
  }

  end(): void {
    if (!this.#call.isOver) this.#socket?.close(NORMAL_CLOSURE);
  }

  #drained(): void {
    const resume = this.#onDrain;
    this.#onDrain = undefined;
    resume?.();
  }
}

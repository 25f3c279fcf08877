/**
 * A call of the gateway over a WebSocket, as an HttpExchange (tmc/grpc-websocket-proxy, which etcd
 * puts before its gateway): each message is a part of the body of a POST, followed by a newline;
 * each line of the response is a message.
 *
 * A method without a request stream takes the first message as its body. (With etcd it waits for
 * the end of the body, which is the end of the socket.)
 */
import type {
  HttpExchange,
  HttpExchangeHandler,
  HttpExchangeListener,
  HttpHead,
  HttpResponse,
} from "@quorate/host";
import { concat, fromUtf8 } from "@quorate/proto";

/** What the exchange needs of a WebSocket. */
export interface MessageSocket {
  /** Sends text; false when more than the send budget waits. */
  send(text: Uint8Array): boolean;
  readonly bufferedBytes: number;
  pause(): void;
  resume(): void;
  close(code: number, reason?: string): void;
}

/** Memory for the requests of all WebSockets. */
export interface SocketBudget {
  readonly maxBytes: number;
  usedBytes: number;
}

/** What a browser's token follows among the subprotocols. */
const BEARER = "Bearer,";
const NEWLINE: Uint8Array = Uint8Array.of(10);
const NORMAL_CLOSURE = 1000;
const TOO_BIG = 1009;
const INTERNAL_ERROR = 1011;
/** Longest message that is sent; a longer line of a response closes the socket. */
export const MAX_SOCKET_MESSAGE_BYTES: number = 64 << 20;
/** Fields of the handshake, which are none of the call. */
const HANDSHAKE = /^(sec-websocket-.*|upgrade|connection)$/;

export class SocketExchange implements HttpExchange {
  readonly head: HttpHead;
  readonly #isStream: boolean;
  readonly #budget: SocketBudget;
  readonly #socket: MessageSocket;
  #listener: HttpExchangeListener = {};
  #isBodyEnded = false;
  #isEnded = false;
  #heldBytes = 0;
  /** The line that is not complete. */
  #line: Uint8Array[] = [];
  #lineBytes = 0;

  /** @param isStream whether the method takes a stream of requests */
  constructor(head: HttpHead, isStream: boolean, budget: SocketBudget, socket: MessageSocket) {
    this.head = callOf(head);
    this.#isStream = isStream;
    this.#budget = budget;
    this.#socket = socket;
  }

  /** Calls the handler. */
  serve(handler: HttpExchangeHandler): void {
    this.#listener = handler(this);
  }

  /** The client sent a message. */
  message(bytes: Uint8Array): void {
    if (this.#isEnded || this.#isBodyEnded) return;
    this.#listener.data?.(bytes);
    if (this.#isEnded) return;
    if (this.#isStream) this.#listener.data?.(NEWLINE);
    else {
      this.#isBodyEnded = true;
      this.#listener.ended?.();
    }
  }

  drained(): void {
    if (!this.#isEnded) this.#listener.drained?.();
  }

  /** The socket is closed. */
  closed(): void {
    if (this.#isEnded) return;
    this.#end();
    this.#listener.aborted?.();
  }

  get bufferedBytes(): number {
    return this.#socket.bufferedBytes + this.#lineBytes;
  }

  respond({ body }: HttpResponse): void {
    if (this.#isEnded) return;
    this.send(typeof body === "string" ? fromUtf8(body) : body);
    this.end();
  }

  /** A WebSocket has no place for a status: its messages say what went wrong. */
  start(): void {}

  send(piece: Uint8Array): boolean {
    if (this.#isEnded) return false;
    const isLine = piece.length > 0 && piece[piece.length - 1] === NEWLINE[0];
    this.#lineBytes += piece.length;
    if (this.#lineBytes > MAX_SOCKET_MESSAGE_BYTES) {
      this.#fail(TOO_BIG, "a message is longer than a WebSocket's may be");
      return false;
    }
    this.#line.push(isLine ? piece.subarray(0, -1) : piece);
    return isLine ? this.#sendLine() : true;
  }

  #sendLine(): boolean {
    const [first, ...others] = this.#line;
    const line = first !== undefined && others.length === 0 ? first : concat(this.#line);
    this.#line = [];
    this.#lineBytes = 0;
    return line.length === 0 || this.#socket.send(line);
  }

  end(): void {
    if (this.#isEnded) return;
    this.#sendLine();
    this.#end();
    this.#socket.close(NORMAL_CLOSURE);
  }

  abort(): void {
    if (this.#isEnded) return;
    this.#end();
    this.#socket.close(INTERNAL_ERROR);
  }

  #fail(code: number, reason: string): void {
    this.#end();
    this.#listener.aborted?.();
    this.#socket.close(code, reason);
  }

  #end(): void {
    this.#isEnded = true;
    this.#line = [];
    this.#lineBytes = 0;
    this.release(this.#heldBytes);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  hold(sizeBytes: number): boolean {
    const budget = this.#budget;
    if (this.#isEnded || budget.usedBytes + sizeBytes > budget.maxBytes) return false;
    budget.usedBytes += sizeBytes;
    this.#heldBytes += sizeBytes;
    return true;
  }

  release(sizeBytes: number): void {
    const size = Math.min(sizeBytes, this.#heldBytes);
    this.#heldBytes -= size;
    this.#budget.usedBytes -= size;
  }

  upgrade(): undefined {
    return undefined;
  }
}

/** The POST that a WebSocket's request stands for. */
function callOf(head: HttpHead): HttpHead {
  const headers = new Map([...head.headers].filter(([name]) => !HANDSHAKE.test(name)));
  const token = tokenOf(head.headers);
  if (token !== undefined) headers.set("authorization", token);
  return { ...head, method: "POST", headers };
}

/**
 * The token of a browser, which cannot set Authorization: of the cookie "token", else of the
 * subprotocols "Bearer, TOKEN". etcd puts "Bearer " before it, which its own servers refuse.
 */
function tokenOf(headers: HttpHead["headers"]): string | undefined {
  const cookie = /(?:^|;)\s*token=([^;]*)/.exec(headers.get("cookie") ?? "");
  if (cookie !== null) return cookie[1]?.trim();
  const protocols = headers.get("sec-websocket-protocol");
  return protocols?.startsWith(BEARER) ? protocols.slice(BEARER.length).trim() : undefined;
}

/** The fields of the response to a handshake. */
export function handshakeFields(head: HttpHead): Readonly<Record<string, string>> {
  const isBearer = head.headers.get("sec-websocket-protocol")?.startsWith("Bearer") === true;
  return isBearer ? { "sec-websocket-protocol": "Bearer" } : {};
}

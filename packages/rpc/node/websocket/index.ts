/**
 * A WebSocket (RFC 6455) on an HTTP exchange.
 *
 *     exchange -- handshake --> tunnel -> ws's Receiver -> onMessage
 *                               tunnel <- frames        <- send, ping, close
 *
 * The server closes behind its close frame; the engine then waits a moment for the client to do the
 * same.
 */

import type { Writable } from "node:stream";
import type { HttpExchange, HttpTunnel } from "@quorate/host";
import { acceptWebSocket } from "./handshake.ts";

export { asksForWebSocket } from "./handshake.ts";

/** Most frames of one message, and most chunks in which one frame may arrive. */
const MAX_FRAGMENTS = 4096;
const MAX_BUFFERED_CHUNKS = 4096;

/** Closed without a close frame (section 7.1.5). */
export const ABNORMAL_CLOSURE = 1006;

export interface WebSocketOptions {
  /** Longest message from the client, in bytes; a longer one closes with 1009. */
  readonly maxMessageBytes: number;
  /** Further fields of the response with 101, such as sec-websocket-protocol. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A message, in order. The bytes stay valid. A throw closes with 1011. */
  onMessage(bytes: Uint8Array, isBinary: boolean): void;
  /** The send budget is free again. */
  onDrain?(): void;
  /** The client's answer to a ping. */
  onPong?(): void;
  /**
   * Called once, when nothing more arrives or can be sent.
   * @param code of the client's close frame, or of the server's; 1006 without one
   */
  onClose(code: number): void;
}

export interface ServerWebSocket {
  /**
   * Sends a message: text, or with `isBinary` bytes, which must not change afterwards. Returns false
   * when more than the send budget waits: send no more until `onDrain`.
   */
  send(message: string | Uint8Array, isBinary?: boolean): boolean;
  /** Bytes that were sent and are not yet written to the socket. */
  readonly bufferedBytes: number;
  ping(): void;
  /** Stops and restarts the delivery of messages. */
  pause(): void;
  resume(): void;
  /** Closes with a code (1000 to 4999) and a reason, of which at most 123 bytes are sent. */
  close(code: number, reason?: string): void;
}

/**
 * Serves a WebSocket. Undefined if the request does not ask for one or the connection cannot be
 * taken over: the exchange then has its response.
 */
export function serveWebSocket(
  exchange: HttpExchange,
  options: WebSocketOptions,
): ServerWebSocket | undefined {
  const tunnel = acceptWebSocket(exchange, options.headers ?? {});
  return tunnel && new TunnelWebSocket(tunnel, options);
}

interface Message {
  readonly bytes: Uint8Array;
  readonly isBinary: boolean;
}

class TunnelWebSocket implements ServerWebSocket {
  readonly #tunnel: HttpTunnel;
  readonly #options: WebSocketOptions;
  #receiver: FrameReceiver | undefined;
  #isPaused = false;
  /** The client does not read what it is sent. */
  #isStalled = false;
  /** Messages of the chunk in which `pause` was called. */
  readonly #waiting: Message[] = [];
  /** Bytes of an incomplete message, counted in the server's budget. */
  #heldBytes = 0;
  #isClosed = false;

  constructor(tunnel: HttpTunnel, options: WebSocketOptions) {
    this.#tunnel = tunnel;
    this.#options = options;
    tunnel.onClose(() => this.#closed(ABNORMAL_CLOSURE));
    tunnel.onDrain(() => {
      if (!this.#isStalled) return;
      this.#isStalled = false;
      this.#readOn();
      options.onDrain?.();
    });
    void this.#open();
  }

  get bufferedBytes(): number {
    return this.#tunnel.bufferedBytes;
  }

  send(message: string | Uint8Array, isBinary = false): boolean {
    const payload = typeof message === "string" ? Buffer.from(message) : message;
    return this.#send(isBinary ? Opcode.Binary : Opcode.Text, payload);
  }

  ping(): void {
    this.#send(Opcode.Ping, Buffer.alloc(0));
  }

  pause(): void {
    this.#isPaused = true;
    this.#tunnel.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.#deliver(next);
      if (this.#isPaused) return;
    }
    this.#readOn();
  }

  close(code: number, reason = ""): void {
    this.#close(code, closePayload(code, reason));
  }

  async #open(): Promise<void> {
    const receiver = await openReceiver({
      maxPayload: this.#options.maxMessageBytes,
      maxFragments: MAX_FRAGMENTS,
      maxBufferedChunks: MAX_BUFFERED_CHUNKS,
    });
    this.#receiver = receiver;
    receiver.on("message", (bytes: Buffer, isBinary: boolean) => this.#message(bytes, isBinary));
    receiver.on("ping", (bytes: Buffer) => void this.#send(Opcode.Pong, bytes));
    receiver.on("pong", () => this.#options.onPong?.());
    receiver.on("conclude", (code: number) => this.#concluded(code));
    receiver.on("error", (error: Error) => this.close(closeCodeOf(error), error.message));
    this.#tunnel.onData((bytes) => this.#received(bytes));
  }

  #received(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    if (!this.#tunnel.hold(bytes.length)) {
      this.close(1013, "messages being received hold too much memory");
      return;
    }
    this.#heldBytes += bytes.length;
    this.#receiver?.write(bytes);
  }

  #message(bytes: Uint8Array, isBinary: boolean): void {
    this.#tunnel.release(this.#heldBytes);
    this.#heldBytes = 0;
    if (this.#isPaused) this.#waiting.push({ bytes, isBinary });
    else this.#deliver({ bytes, isBinary });
  }

  #deliver({ bytes, isBinary }: Message): void {
    if (this.#isClosed) return;
    try {
      this.#options.onMessage(bytes, isBinary);
    } catch {
      this.close(1011, "internal server error");
    }
  }

  /** The client has sent a close frame: it gets one with the same code (section 5.5.1). */
  #concluded(code: number): void {
    const hasCode = code !== 1005;
    this.#close(code, hasCode ? closePayload(code, "") : Buffer.alloc(0));
  }

  #close(code: number, payload: Uint8Array): void {
    if (this.#isClosed) return;
    this.#send(Opcode.Close, payload.subarray(0, MAX_CONTROL_BYTES));
    this.#closed(code);
    this.#tunnel.end();
  }

  #closed(code: number): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#waiting.length = 0;
    this.#tunnel.release(this.#heldBytes);
    this.#heldBytes = 0;
    this.#options.onClose(code);
  }

  /** One frame. A client that does not read what it is sent is not read either. */
  #send(opcode: Opcode, payload: Uint8Array): boolean {
    if (this.#isClosed) return false;
    this.#tunnel.send(frameHeader(opcode, payload.length));
    if (payload.length === 0 || this.#tunnel.send(payload)) return true;
    if (!this.#isClosed) {
      this.#isStalled = true;
      this.#tunnel.pause();
    }
    return false;
  }

  #readOn(): void {
    if (!this.#isPaused && !this.#isStalled) this.#tunnel.resume();
  }
}

interface ReceiverLimits {
  /** Longest message, of one or more frames. */
  readonly maxPayload: number;
  /** Most frames of one message. */
  readonly maxFragments: number;
  /** Most chunks of an incomplete frame. */
  readonly maxBufferedChunks: number;
}

/** Emits message(bytes, isBinary), ping(bytes), pong(bytes), conclude(code, reason) and error. */
type FrameReceiver = Writable;

interface ReceiverClass {
  new (options: ReceiverLimits & { readonly isServer: true }): FrameReceiver;
}

let loading: Promise<ReceiverClass> | undefined;

/**
 * The frame parser of the library ws, loaded with the first WebSocket: it takes some milliseconds
 * that a member without WebSockets does not need.
 */
async function openReceiver(limits: ReceiverLimits): Promise<FrameReceiver> {
  loading ??= import("ws").then((ws) => (ws as unknown as { Receiver: ReceiverClass }).Receiver);
  const Receiver = await loading;
  return new Receiver({ ...limits, isServer: true });
}

/** Close codes (RFC 6455 section 7.4.1) for the errors of the parser; others are 1002. */
const CLOSE_CODES: Readonly<Record<string, number>> = {
  WS_ERR_INVALID_UTF8: 1007,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1008,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 1009,
};

function closeCodeOf(error: Error & { code?: string }): number {
  return CLOSE_CODES[error.code ?? ""] ?? 1002;
}

/** Frames that a server sends (RFC 6455 section 5.2): whole messages, without a mask. */
const Opcode = { Text: 1, Binary: 2, Close: 8, Ping: 9, Pong: 10 } as const;
type Opcode = (typeof Opcode)[keyof typeof Opcode];

/** Most bytes of a control frame's payload (section 5.5). */
const MAX_CONTROL_BYTES = 125;

/** The header of a frame with so many bytes of payload. */
function frameHeader(opcode: Opcode, sizeBytes: number): Buffer {
  if (sizeBytes <= MAX_CONTROL_BYTES) return Buffer.of(0x80 | opcode, sizeBytes);
  if (sizeBytes < 0x1_0000) {
    const header = Buffer.allocUnsafe(4);
    header[0] = 0x80 | opcode;
    header[1] = 126;
    header.writeUInt16BE(sizeBytes, 2);
    return header;
  }
  const header = Buffer.alloc(10);
  header[0] = 0x80 | opcode;
  header[1] = 127;
  header.writeUIntBE(sizeBytes, 4, 6);
  return header;
}

/** The payload of a close frame (section 5.5.1); the reason is cut to fit. */
function closePayload(code: number, reason: string): Buffer {
  const text = Buffer.from(reason).subarray(0, MAX_CONTROL_BYTES - 2);
  const payload = Buffer.allocUnsafe(2 + text.length);
  payload.writeUInt16BE(code, 0);
  payload.set(text, 2);
  return payload;
}

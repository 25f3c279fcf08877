/** A service's view of a call: a method path, request bytes in, response bytes out. */
import { alloc, StacklessError } from "@quorate/proto";

export type {
  HttpExchangeHandler,
  HttpHandler,
  HttpRequest,
  HttpResponse,
} from "@quorate/host";

/**
 * An encoded message, whole or in pieces that are sent one after the other without being joined.
 */
export type MessageBytes = Uint8Array | readonly Uint8Array[];

/**
 * An encoded message whose pieces are made while it is sent, in order and once. A list of tens of
 * thousands of pieces costs more than the few that wait for the socket at one time.
 */
export interface PieceSource {
  /** Of all pieces together. */
  readonly sizeBytes: number;
  /** The next piece, which must not change afterwards; undefined behind the last one. */
  next(): Uint8Array | undefined;
}

/** What a unary handler returns. */
export type UnaryResponse = MessageBytes | PieceSource;

/** How many bytes a message has. */
export function messageSize(message: UnaryResponse): number {
  if (message instanceof Uint8Array) return message.length;
  if (isPieceSource(message)) return message.sizeBytes;
  let size = 0;
  for (const part of message) size += part.length;
  return size;
}

/** Whether a message's pieces are made while it is sent. */
export function isPieceSource(message: UnaryResponse): message is PieceSource {
  return !(message instanceof Uint8Array) && !Array.isArray(message);
}

/** A message in one piece; a copy unless it is one. A source of pieces is used up. */
export function joinMessage(message: UnaryResponse): Uint8Array {
  if (message instanceof Uint8Array) return message;
  const whole = alloc(messageSize(message));
  let at = 0;
  const add = (piece: Uint8Array): void => {
    whole.set(piece, at);
    at += piece.length;
  };
  if (!isPieceSource(message)) for (const piece of message) add(piece);
  else for (let piece = message.next(); piece !== undefined; piece = message.next()) add(piece);
  return whole;
}

/** A message in one piece that no other code holds. A source of pieces is used up. */
export function ownedMessage(message: UnaryResponse): Uint8Array {
  return message instanceof Uint8Array ? message.slice() : joinMessage(message);
}

/** gRPC status: a code from 0 to 16 and a text. */
export interface Status {
  readonly code: number;
  readonly message: string;
}

/**
 * Thrown by a handler to end its call with this status. Any other error ends it as UNKNOWN with the
 * error's text.
 */
export class StatusError extends StacklessError implements Status {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = "StatusError";
    this.code = code;
  }
}

/** The properties of a call besides its messages. */
export interface CallContext {
  /** The method's path, such as "/etcdserverpb.KV/Put". */
  readonly path: string;
  /**
   * The first value of a metadata key (lower case), or undefined. Keys that end in "-bin" are
   * already decoded to latin1.
   */
  metadata(key: string): string | undefined;
  /** The call's deadline in the clock's monotonic milliseconds; undefined for none. */
  readonly deadlineMs: number | undefined;
  /** When the call began, by the same clock; undefined where no engine noted it. */
  readonly startedMs?: number | undefined;
  /** The remote address, "host:port". */
  readonly peerAddress: string;
  /** The common name of the client's certificate that the TLS layer verified, or undefined. */
  readonly peerCommonName: string | undefined;
  /** The whole subject of that certificate on one line, such as "O=shop,CN=ann". */
  readonly peerSubject?: string | undefined;
  /** True once the caller cancelled, the deadline passed or the connection ended. */
  readonly cancelled: boolean;
  /**
   * Calls `listener` when `cancelled` becomes true, at once if it is already; never after the call
   * has ended. At most one listener.
   */
  onCancel(listener: () => void): void;
  /** Takes notes for the call's trace; undefined for a call that is not traced. */
  readonly trace: CallTrace | undefined;
}

/** The trace of one call, as a service sees it. */
export interface CallTrace {
  /** The call's request went to Raft; `result` settles with its outcome. */
  proposed(result: Promise<unknown>): void;
}

/** The context of a call from this process: no metadata, no deadline, never cancelled. */
export const LOCAL_CALL: Omit<CallContext, "path"> = {
  metadata: () => undefined,
  deadlineMs: undefined,
  peerAddress: "",
  peerCommonName: undefined,
  cancelled: false,
  onCancel: () => {},
  trace: undefined,
};

/** Takes a result that comes later: one of the two is called, once. Neither throws. */
export interface Receiver<T> {
  resolved(value: T): void;
  rejected(error: unknown): void;
}

/**
 * A result that comes later, for one receiver. `await` makes a promise of it. A promise, its
 * reaction, its closures and its microtask are half of what a short call allocates, and live for as
 * long as the call waits; on the paths of most calls a `Later` stands in their place.
 */
export class Later<T> implements Receiver<T>, PromiseLike<T> {
  #receiver: Receiver<T> | undefined = undefined;
  /** Hands on what came before there was a receiver. */
  #early: ((receiver: Receiver<T>) => void) | undefined = undefined;

  /** Has the receiver get the result. Called once. */
  deliver(receiver: Receiver<T>): void {
    if (this.#early === undefined) this.#receiver = receiver;
    else this.#early(receiver);
  }

  resolved(value: T): void {
    if (this.#receiver !== undefined) this.#receiver.resolved(value);
    else this.#early = (receiver) => receiver.resolved(value);
  }

  rejected(error: unknown): void {
    if (this.#receiver !== undefined) this.#receiver.rejected(error);
    else this.#early = (receiver) => receiver.rejected(error);
  }

  // biome-ignore lint/suspicious/noThenProperty: `await` is what makes a promise of it
  then<Resolved = T, Rejected = never>(
    onResolved?: ((value: T) => Resolved | PromiseLike<Resolved>) | null,
    onRejected?: ((error: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Resolved | Rejected> {
    return this.promise().then(onResolved, onRejected);
  }

  /** A promise of the result, in the place of `deliver`. */
  promise(): Promise<T> {
    return new Promise((resolved, rejected) => this.deliver({ resolved, rejected }));
  }
}

/** What a unary handler returns, at once or later. */
export type UnaryResult = UnaryResponse | Promise<UnaryResponse> | Later<UnaryResponse>;

/**
 * Handles one request: returns the response's bytes, or what brings them later. Throws (or rejects
 * with) StatusError.
 */
export type UnaryHandler = (request: Uint8Array, context: CallContext) => UnaryResult;

type LateResponse = Promise<UnaryResponse> | Later<UnaryResponse>;

/** Whether a handler's result is not there yet. */
export function isLate(result: UnaryResult): result is LateResponse {
  return result instanceof Later || result instanceof Promise;
}

/** Has a receiver get a handler's result. */
export function deliver(result: LateResponse, receiver: Receiver<UnaryResponse>): void {
  if (result instanceof Later) result.deliver(receiver);
  else
    result.then(
      (response) => receiver.resolved(response),
      (error: unknown) => receiver.rejected(error),
    );
}

/** A handler's result for who adds something to it when it is there. */
export function promised(result: UnaryResult): UnaryResponse | Promise<UnaryResponse> {
  return result instanceof Later ? result.promise() : result;
}

/** A message that goes to many streams, but for a part of each one's own in its middle. */
export interface CommonMessage {
  readonly before: Uint8Array;
  readonly after: readonly Uint8Array[];
  /** Of what is before and after together. */
  readonly sizeBytes: number;
}

/** The server's side of a stream of messages. */
export interface StreamCall {
  readonly context: CallContext;
  /**
   * Sends one message. False when more than the stream's send budget is waiting: send no more until
   * `drained`.
   */
  send(message: MessageBytes): boolean;
  /**
   * As `send`. Streams that are sent the same object share it on their way to an engine that runs
   * elsewhere. Undefined where nothing is shared: those of an engine that runs here, and those
   * whose messages are looked at on their way.
   */
  readonly sendCommon?: ((message: CommonMessage, own: Uint8Array) => boolean) | undefined;
  /** Bytes that were passed to `send` and are not yet written to the socket. */
  readonly bufferedBytes: number;
  /** Ends the call after the messages already sent. Without a status it is OK. */
  end(status?: Status): void;
  /** Stops and restarts the delivery of messages (backpressure to the client). */
  pause(): void;
  resume(): void;
}

/** Callbacks of a stream handler; all are optional. */
export interface StreamListener {
  message?(bytes: Uint8Array): void;
  /** The client has sent its last message. */
  halfClosed?(): void;
  /** The send budget is free again. */
  drained?(): void;
  /** The call ended without `end`: cancelled, deadline, connection lost. No more can be sent. */
  cancelled?(): void;
}

/** Starts a stream; a throw ends it with that status. */
export type StreamHandler = (call: StreamCall) => StreamListener;

/**
 * The methods of a server, by path. A path in neither map gets UNIMPLEMENTED with grpc-go's text.
 */
export interface ServiceTable {
  readonly unary: ReadonlyMap<string, UnaryHandler>;
  readonly stream: ReadonlyMap<string, StreamHandler>;
}

/** Called by an engine about its work; on the hot path, so without allocations. */
export interface RpcObserver {
  started(path: string): void;
  /** `startedMs` is the monotonic time of the start. */
  handled(path: string, code: number, startedMs: number): void;
  messageReceived(path: string, sizeBytes: number): void;
  messageSent(path: string, sizeBytes: number): void;
}

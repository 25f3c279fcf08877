/** What a unary call and a stream have in common: the context that a service sees, and the ways in which a call can end. */
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream, ServerStreamResponseOptions } from "node:http2";
import type { Clock } from "@quorate/host";
import { GrpcCode } from "../src/codes.ts";
import type { DeadlineQueue, Expiring } from "../src/deadlines.ts";
import type { CallContext, RpcObserver, Status } from "../src/service.ts";
import { StatusError } from "../src/service.ts";
import { encodeGrpcMessage } from "../src/text.ts";
import type { ResolvedOptions } from "./options.ts";

/** What the calls of one server share. */
export interface Engine {
  readonly options: ResolvedOptions;
  readonly clock: Clock;
  readonly deadlines: DeadlineQueue;
  readonly observer: RpcObserver | undefined;
  /** Bytes of gRPC messages, without prefixes and headers. */
  receivedMessageBytes: number;
  sentMessageBytes: number;
}

/** What a call needs to know of its connection. */
export interface CallConnection {
  readonly peerAddress: string;
  readonly peerCommonName: string | undefined;
  /** Tells that frames of substance go out, which clears a client of the suspicion of pinging too much. */
  sending(): void;
  /** Tells that the stream of a call is gone. */
  streamClosed(): void;
}

export type RawHeaders = readonly string[];

/** A stream that knows its call, so that listeners are shared functions instead of closures. */
export interface CallStream extends ServerHttp2Stream {
  [CALL]: Call;
}

export const CALL: unique symbol = Symbol("call");

export const OK_HEADERS: OutgoingHttpHeaders = { ":status": 200, "content-type": "application/grpc" };
export const WITH_TRAILERS: ServerStreamResponseOptions & { sendDate: boolean } = { waitForTrailers: true, sendDate: false };
const HEADERS_ONLY: ServerStreamResponseOptions & { sendDate: boolean } = { endStream: true, sendDate: false };
const OK_TRAILERS: OutgoingHttpHeaders = { "grpc-status": "0" };
const NO_ERROR = 0;

/** The status that an error thrown by a service stands for. */
export function statusOf(error: unknown): Status {
  if (error instanceof StatusError) return error;
  return { code: GrpcCode.Unknown, message: error instanceof Error ? error.message : String(error) };
}

function statusHeaders(status: Status): OutgoingHttpHeaders {
  return { "grpc-status": String(status.code), "grpc-message": encodeGrpcMessage(status.message) };
}

/** How long a client may go on sending after it was told how its call ended. */
const LINGER_MS = 5000;

/** A stream that is done, while its client is not. */
class Lingering implements Expiring {
  readonly deadlineMs: number;
  readonly #stream: ServerHttp2Stream;

  constructor(deadlineMs: number, stream: ServerHttp2Stream) {
    this.deadlineMs = deadlineMs;
    this.#stream = stream;
  }

  expired(): void {
    if (!this.#stream.destroyed) this.#stream.close(NO_ERROR);
  }
}

/**
 * Drops what the client still sends on an answered stream until it is through; one that does not come to an end is reset. A reset at once
 * would be shorter, but it overtakes headers that wait for the socket, and the client would miss its status.
 */
export function dropRest(engine: Engine, stream: ServerHttp2Stream): void {
  if (stream.readableEnded || stream.destroyed) return;
  const lingering = new Lingering(engine.clock.monotonicMs() + LINGER_MS, stream);
  engine.deadlines.add(lingering);
  stream.on("close", () => engine.deadlines.remove(lingering));
  stream.resume();
}

/** Ends a stream on which nothing was sent with a status alone. */
export function refuse(engine: Engine, stream: ServerHttp2Stream, status: Status, httpStatus = 200, more?: OutgoingHttpHeaders): void {
  if (stream.destroyed || stream.closed) return;
  stream.respond({ ...OK_HEADERS, ":status": httpStatus, ...statusHeaders(status), ...more }, HEADERS_ONLY);
  dropRest(engine, stream);
}

function onClose(this: CallStream): void {
  this[CALL].closed();
}

function onData(this: CallStream, chunk: Uint8Array): void {
  this[CALL].data(chunk);
}

function onEnd(this: CallStream): void {
  // Node also ends the readable side of a stream that was reset, or whose connection is gone; such a stream counts as closed by then.
  if (!this.closed) this[CALL].halfClosed();
}

function onWantTrailers(this: CallStream): void {
  this.sendTrailers(this[CALL].trailers);
}

export abstract class Call implements CallContext, Expiring {
  readonly path: string;
  readonly deadlineMs: number | undefined;
  readonly startedMs: number;
  /** Sent behind the last message. */
  trailers: OutgoingHttpHeaders = OK_TRAILERS;
  protected readonly engine: Engine;
  protected readonly connection: CallConnection;
  protected readonly stream: ServerHttp2Stream;
  /** True once it is settled how the call ends; nothing is taken from the service any more. */
  protected ended = false;
  readonly #rawHeaders: RawHeaders;
  #cancelled = false;
  #onCancel: (() => void) | undefined;

  constructor(
    engine: Engine,
    connection: CallConnection,
    stream: ServerHttp2Stream,
    path: string,
    deadlineMs: number | undefined,
    rawHeaders: RawHeaders,
  ) {
    this.engine = engine;
    this.connection = connection;
    this.stream = stream;
    this.path = path;
    this.deadlineMs = deadlineMs;
    this.#rawHeaders = rawHeaders;
    this.startedMs = engine.clock.monotonicMs();
    (stream as CallStream)[CALL] = this;
    stream.on("close", onClose);
    stream.on("wantTrailers", onWantTrailers);
    engine.deadlines.add(this);
    engine.observer?.started(path);
  }

  /** Lets messages come in. */
  listen(): void {
    this.stream.on("data", onData);
    this.stream.on("end", onEnd);
  }

  metadata(key: string): string | undefined {
    const raw = this.#rawHeaders;
    for (let i = 0; i + 1 < raw.length; i += 2) {
      if (raw[i] !== key) continue;
      if (!key.endsWith("-bin")) return raw[i + 1];
      // Several binary values may come in one header, separated by commas.
      const value = raw[i + 1].split(",", 1)[0].trim();
      return Buffer.from(value, "base64").toString("latin1");
    }
    return undefined;
  }

  get peerAddress(): string {
    return this.connection.peerAddress;
  }

  get peerCommonName(): string | undefined {
    return this.connection.peerCommonName;
  }

  get cancelled(): boolean {
    return this.#cancelled;
  }

  onCancel(listener: () => void): void {
    if (this.#cancelled) listener();
    else if (!this.ended) this.#onCancel = listener;
  }

  /** A chunk of the request's body. */
  abstract data(chunk: Uint8Array): void;

  /** The request's body is complete. */
  abstract halfClosed(): void;

  /** The deadline has passed. */
  expired(): void {
    if (!this.ended) this.#cancel({ code: GrpcCode.DeadlineExceeded, message: "context deadline exceeded" });
  }

  /** The stream is gone. */
  closed(): void {
    this.connection.streamClosed();
    if (!this.ended) this.#cancel({ code: GrpcCode.Canceled, message: "context canceled" });
  }

  /** Ends the call with a status; messages that were sent before still leave. The first end counts. */
  finish(status: Status): void {
    if (!this.#settle(status.code)) return;
    const stream = this.stream;
    if (stream.destroyed || stream.closed) return;
    this.connection.sending();
    if (!stream.headersSent) {
      refuse(this.engine, stream, status);
      return;
    }
    if (status.code !== GrpcCode.OK || status.message !== "") this.trailers = statusHeaders(status);
    stream.end();
    dropRest(this.engine, stream);
  }

  /** Settles that the call has ended with `code`; false if it had ended before. */
  #settle(code: number): boolean {
    if (this.ended) return false;
    this.ended = true;
    this.#onCancel = undefined;
    this.engine.deadlines.remove(this);
    this.engine.observer?.handled(this.path, code, this.startedMs);
    return true;
  }

  /** As finish, for an answer that the caller writes. */
  protected settleOk(): boolean {
    return this.#settle(GrpcCode.OK);
  }

  /** Told when the call ends without the service's doing. */
  protected abandoned(): void {}

  #cancel(status: Status): void {
    this.#cancelled = true;
    const listener = this.#onCancel;
    this.finish(status);
    listener?.();
    this.abandoned();
  }
}

/** Whether a content type is gRPC's; "application/grpc-web" is another protocol. */
export function isGrpc(headers: IncomingHttpHeaders): boolean {
  const type = headers["content-type"];
  if (type === undefined || !type.startsWith("application/grpc")) return false;
  const next = type.charAt("application/grpc".length);
  return next === "" || next === "+" || next === ";";
}

/** One request, one answer. */
import type { ServerHttp2Stream } from "node:http2";
import { GrpcCode } from "../src/codes.ts";
import { framed, MessageAssembler, messageSize, soleMessage } from "../src/messages.ts";
import { type MessageBytes, StatusError, type UnaryHandler } from "../src/service.ts";
import { Call, type CallConnection, type Engine, OK_HEADERS, type RawHeaders, statusOf, WITH_TRAILERS } from "./call.ts";
import { gunzip } from "./gunzip.ts";

export class UnaryCall extends Call {
  readonly #handler: UnaryHandler;
  readonly #gzip: boolean;
  #request: Uint8Array | undefined;
  #assembler: MessageAssembler | undefined;

  constructor(
    engine: Engine,
    connection: CallConnection,
    stream: ServerHttp2Stream,
    path: string,
    deadlineMs: number | undefined,
    rawHeaders: RawHeaders,
    gzip: boolean,
    handler: UnaryHandler,
  ) {
    super(engine, connection, stream, path, deadlineMs, rawHeaders);
    this.#handler = handler;
    this.#gzip = gzip;
    this.listen();
  }

  override data(chunk: Uint8Array): void {
    if (this.ended) return;
    const maxBytes = this.engine.options.maxRequestBytes;
    if (this.#request === undefined && this.#assembler === undefined) {
      this.#request = soleMessage(chunk, maxBytes);
      if (this.#request !== undefined) return;
    }
    this.#assembler ??= new MessageAssembler(maxBytes);
    try {
      this.#assembler.push(chunk);
      const message = this.#assembler.take();
      if (message === undefined) return;
      if (this.#request !== undefined) throw new StatusError(GrpcCode.Internal, "more than one message in a call that takes one");
      this.#request = this.#assembler.compressed ? gunzip(message, this.#gzip, maxBytes) : message;
    } catch (error) {
      this.finish(statusOf(error));
    }
  }

  override halfClosed(): void {
    if (this.ended) return;
    const request = this.#request;
    if (request === undefined || (this.#assembler !== undefined && this.#assembler.bufferedBytes > 0)) {
      this.finish({ code: GrpcCode.Internal, message: "unexpected EOF" });
      return;
    }
    this.engine.receivedMessageBytes += request.length;
    this.engine.observer?.messageReceived(this.path, request.length);
    // The bytes live on only where the service keeps them.
    this.#request = undefined;
    this.#assembler = undefined;
    let answer: MessageBytes | Promise<MessageBytes>;
    try {
      answer = this.#handler(request, this);
    } catch (error) {
      this.finish(statusOf(error));
      return;
    }
    if (answer instanceof Promise) {
      answer.then(
        (message) => this.#answer(message),
        (error) => this.finish(statusOf(error)),
      );
    } else this.#answer(answer);
  }

  #answer(message: MessageBytes): void {
    if (!this.settleOk()) return;
    const stream = this.stream;
    if (stream.destroyed || stream.closed) return;
    const size = messageSize(message);
    this.engine.sentMessageBytes += size;
    this.engine.observer?.messageSent(this.path, size);
    this.connection.sending();
    stream.respond(OK_HEADERS, WITH_TRAILERS);
    const pieces = framed(message, size);
    const last = pieces.length - 1;
    if (last > 0) {
      stream.cork();
      for (let i = 0; i < last; i++) stream.write(pieces[i]);
    }
    stream.end(pieces[last]);
  }
}

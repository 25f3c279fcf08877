/** Messages in both directions, as many as each side likes. */
import type { ServerHttp2Stream } from "node:http2";
import { GrpcCode } from "../src/codes.ts";
import { framed, MessageAssembler, messageSize } from "../src/messages.ts";
import type { CallContext, MessageBytes, Status, StreamCall, StreamHandler, StreamListener } from "../src/service.ts";
import { Call, type CallConnection, type Engine, OK_HEADERS, type RawHeaders, statusOf, WITH_TRAILERS } from "./call.ts";
import { gunzip } from "./gunzip.ts";

const OK: Status = { code: GrpcCode.OK, message: "" };

export class StreamingCall extends Call implements StreamCall {
  readonly #gzip: boolean;
  readonly #assembler: MessageAssembler;
  #listener: StreamListener = {};
  #paused = false;
  /** The body is complete, but messages of it may still wait for `resume`. */
  #bodyEnded = false;
  #toldHalfClosed = false;
  #overBudget = false;

  constructor(
    engine: Engine,
    connection: CallConnection,
    stream: ServerHttp2Stream,
    path: string,
    deadlineMs: number | undefined,
    rawHeaders: RawHeaders,
    gzip: boolean,
    handler: StreamHandler,
  ) {
    super(engine, connection, stream, path, deadlineMs, rawHeaders);
    this.#gzip = gzip;
    this.#assembler = new MessageAssembler(engine.options.maxRequestBytes);
    try {
      this.#listener = handler(this);
    } catch (error) {
      this.finish(statusOf(error));
    }
    this.listen();
  }

  get context(): CallContext {
    return this;
  }

  get bufferedBytes(): number {
    return this.stream.destroyed ? 0 : this.stream.writableLength;
  }

  send(message: MessageBytes): boolean {
    const stream = this.stream;
    if (this.ended || stream.destroyed || stream.closed) return false;
    const size = messageSize(message);
    this.engine.sentMessageBytes += size;
    this.engine.observer?.messageSent(this.path, size);
    this.connection.sending();
    if (!stream.headersSent) stream.respond(OK_HEADERS, WITH_TRAILERS);
    const pieces = framed(message, size);
    if (pieces.length === 1) stream.write(pieces[0], this.#written);
    else {
      stream.cork();
      for (const piece of pieces) stream.write(piece, this.#written);
      stream.uncork();
    }
    this.#overBudget = stream.writableLength > this.engine.options.sendBudgetBytes;
    return !this.#overBudget;
  }

  end(status: Status = OK): void {
    this.finish(status);
  }

  pause(): void {
    this.#paused = true;
    this.stream.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#deliver();
    if (!this.#paused && !this.stream.destroyed) this.stream.resume();
  }

  override data(chunk: Uint8Array): void {
    if (this.ended) return;
    this.#assembler.push(chunk);
    this.#deliver();
  }

  override halfClosed(): void {
    this.#bodyEnded = true;
    this.#deliver();
  }

  protected override abandoned(): void {
    this.#call(() => this.#listener.cancelled?.());
  }

  /** Hands over what is whole, until the service pauses; then tells of the end of the body, if it is there. */
  #deliver(): void {
    try {
      while (!this.#paused && !this.ended) {
        const message = this.#assembler.take();
        if (message === undefined) break;
        const plain = this.#assembler.compressed ? gunzip(message, this.#gzip, this.engine.options.maxRequestBytes) : message;
        this.engine.receivedMessageBytes += plain.length;
        this.engine.observer?.messageReceived(this.path, plain.length);
        this.#listener.message?.(plain);
      }
    } catch (error) {
      this.finish(statusOf(error));
    }
    if (!this.#bodyEnded || this.#paused || this.ended || this.#toldHalfClosed) return;
    this.#toldHalfClosed = true;
    if (this.#assembler.bufferedBytes > 0) this.finish({ code: GrpcCode.Internal, message: "unexpected EOF" });
    else this.#call(() => this.#listener.halfClosed?.());
  }

  /** Told for each piece that has left. Half the budget free is enough to go on, so that the stream does not run dry meanwhile. */
  readonly #written = (): void => {
    if (!this.#overBudget || this.ended || this.bufferedBytes * 2 > this.engine.options.sendBudgetBytes) return;
    this.#overBudget = false;
    this.#call(() => this.#listener.drained?.());
  };

  #call(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.finish(statusOf(error));
    }
  }
}

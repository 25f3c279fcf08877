/** One gRPC call of a client: a stream of the connection, with its messages in both directions. */
import { GrpcCode } from "@quorate/proto";
import { prefixOf } from "../grpc/responses.ts";
import { HeaderField } from "../hpack/header-field.ts";
import type { RequestHead } from "../http2/request-head.ts";
import { Http2Stream } from "../http2/stream.ts";
import { MessageAssembler, PREFIX_BYTES } from "../messages.ts";
import { type Status, StatusError } from "../service.ts";
import type { ClientState, OpenCall } from "./client-state.ts";
import { refusedHead, responseFields, statusOf } from "./response-head.ts";

/** Callbacks of a call, within the connection's `receive`, `sweep` or `lost`. */
export interface ClientCallEvents {
  /** A whole message; it stays valid and does not change. */
  message(bytes: Uint8Array): void;
  /**
   * The call has ended. Called once, and not after `cancel`.
   * @param wasSent false if the server certainly did not begin to process the call
   */
  ended(status: Status, wasSent: boolean): void;
  /** The bytes that were sent have left, down to half of the send budget. */
  drained?(): void;
}

/** A stream's head is the server's view of a request; a client has no use for it. */
const NO_HEAD: RequestHead = {
  method: "POST",
  scheme: "http",
  authority: undefined,
  path: new HeaderField(":path", "/"),
  fields: [],
  contentType: undefined,
  contentLength: -1,
  grpcTimeout: undefined,
  grpcEncoding: undefined,
};

/** Bytes of a call that may wait to be sent before `send` returns false. */
const SEND_BUDGET_BYTES = 1024 * 1024;

export class ClientCall implements OpenCall {
  /** @internal */
  readonly stream: Http2Stream;
  readonly #connection: ClientState;
  readonly #events: ClientCallEvents;
  readonly #assembler: MessageAssembler;
  /** Bytes that count in the connection's budget of held bytes. */
  #heldBytes = 0;
  #owedBytes = 0;
  #isPaused = false;
  #hasHead = false;
  /** The status that came while messages wait for `resume`. */
  #status: Status | undefined = undefined;
  isEnded = false;

  /** @internal Made by ClientConnection.call. */
  constructor(connection: ClientState, id: number, events: ClientCallEvents) {
    const { limits, sender } = connection;
    this.#connection = connection;
    this.#events = events;
    this.#assembler = new MessageAssembler(limits.maxMessageBytes);
    this.stream = new Http2Stream(id, NO_HEAD, limits.streamWindowBytes, sender.streamWindowBytes);
    this.stream.consumer = {
      data() {},
      ended() {},
      aborted() {},
      drained: () => events.drained?.(),
    };
  }

  /**
   * Sends one message, which must not change any more. Returns false when more than 1 MiB waits:
   * send no more until `drained`.
   * @param isLast half-closes the call behind it
   */
  send(message: Uint8Array, isLast = false): boolean {
    if (this.isEnded) return false;
    const sizeBytes = PREFIX_BYTES + message.length;
    const pieces = [prefixOf(message.length, false), message];
    if (!this.#connection.write(this.stream, pieces, sizeBytes, isLast)) {
      this.#fail({
        code: GrpcCode.ResourceExhausted,
        message: "requests that wait for the server hold too much memory",
      });
      return false;
    }
    if (this.stream.pendingBytes <= SEND_BUDGET_BYTES) return true;
    this.stream.drainBytes = SEND_BUDGET_BYTES >>> 1;
    return false;
  }

  /** Half-closes the call: no message follows. */
  finish(): void {
    if (!this.isEnded) this.#connection.finish(this.stream);
  }

  /** Abandons the call. Nothing is called any more. */
  cancel(): void {
    if (this.isEnded) return;
    this.#release();
    this.isEnded = true;
    this.#connection.cancel(this);
  }

  /** Stops the delivery of messages; the server may send one window more. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Continues the delivery. */
  resume(): void {
    if (!this.#isPaused || this.isEnded) return;
    this.#isPaused = false;
    this.#deliver();
    if (this.#isPaused || this.isEnded) return;
    if (this.#owedBytes > 0) this.#connection.credit(this.stream, this.#owedBytes);
    this.#owedBytes = 0;
    this.#connection.touched();
  }

  /** @internal A header block. */
  headers(fields: Parameters<typeof responseFields>[0], end: boolean): void {
    const read = responseFields(fields);
    if (!this.#hasHead) {
      // An informational response (RFC 9113 section 8.1) is passed over.
      if (!end && /^1\d\d$/.test(read.httpStatus ?? "")) return;
      this.#hasHead = true;
      const refusal = refusedHead(read);
      if (refusal !== undefined) {
        this.#fail(refusal);
        return;
      }
    } else if (!end) {
      this.#fail({ code: GrpcCode.Internal, message: "a header block within a response" });
      return;
    }
    if (end) this.#over(statusOf(read));
  }

  /** @internal Body bytes. */
  data(bytes: Uint8Array): void {
    if (!this.#hasHead) {
      this.#fail({ code: GrpcCode.Internal, message: "DATA before the response's headers" });
      return;
    }
    if (!this.#connection.held.take(bytes.length)) {
      this.#fail({
        code: GrpcCode.ResourceExhausted,
        message: "responses that are being received hold too much memory",
      });
      return;
    }
    this.#heldBytes += bytes.length;
    this.#assembler.push(bytes);
    if (this.#isPaused) this.#owedBytes += bytes.length;
    else this.#connection.credit(this.stream, bytes.length);
    this.#deliver();
  }

  /** @internal The body ended without trailers. */
  endedPlainly(): void {
    this.#over({
      code: GrpcCode.Internal,
      message: "server closed the stream without sending trailers",
    });
  }

  /** @internal The stream was reset, or the connection is gone. */
  aborted(status: Status, wasSent: boolean): void {
    this.#end(status, wasSent);
  }

  /** The server's last word: it counts once the messages before it are delivered. */
  #over(status: Status): void {
    this.#status = status;
    this.#deliver();
  }

  #deliver(): void {
    try {
      while (!this.#isPaused && !this.isEnded) {
        const message = this.#assembler.take();
        if (message === undefined) break;
        const sizeBytes = PREFIX_BYTES + message.length;
        this.#heldBytes -= sizeBytes;
        this.#connection.held.give(sizeBytes);
        if (this.#assembler.compressed)
          throw new StatusError(
            GrpcCode.Internal,
            "grpc: compressed flag set with identity or empty encoding",
          );
        this.#events.message(message);
      }
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      this.#fail(error);
      return;
    }
    if (this.#status === undefined || this.#isPaused || this.isEnded) return;
    if (this.#assembler.bufferedBytes > 0)
      this.#end({ code: GrpcCode.Internal, message: "unexpected EOF" }, true);
    else this.#end(this.#status, true);
  }

  #fail({ code, message }: Status): void {
    if (this.isEnded) return;
    this.#connection.cancel(this);
    this.#end({ code, message }, true);
  }

  #end(status: Status, wasSent: boolean): void {
    if (this.isEnded) return;
    this.#release();
    this.isEnded = true;
    this.#connection.over(this);
    this.#events.ended(status, wasSent);
  }

  #release(): void {
    if (this.#heldBytes > 0) this.#connection.held.give(this.#heldBytes);
    this.#heldBytes = 0;
  }
}

/**
 * One gRPC call of a client: a stream of the connection, with its messages in both directions. The
 * header blocks of its response are HTTP status, gRPC status and text, or become Go's texts where
 * the response is not gRPC's (grpc-go: internal/transport/http_util.go).
 */
import { fromLatin1, GrpcCode, toUtf8 } from "@quorate/proto";
import { MessageAssembler, PREFIX_BYTES, prefixOf } from "../grpc/protocol.ts";
import { HeaderField } from "../hpack/header-field.ts";
import type { RequestHead } from "../http2/request-head.ts";
import { Http2Stream } from "../http2/stream.ts";
import { type Status, StatusError } from "../service.ts";
import type { ClientState, OpenCall } from "./client-state.ts";

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

/** The fields of one header block that mean something to a call. */
export interface GrpcResponseFields {
  readonly httpStatus: string | undefined;
  readonly contentType: string | undefined;
  readonly encoding: string | undefined;
  readonly grpcStatus: string | undefined;
  readonly grpcMessage: string | undefined;
}

/** Reads the fields of a block; the last one of a name counts. */
function responseFields(fields: readonly HeaderField[]): GrpcResponseFields {
  let httpStatus: string | undefined;
  let contentType: string | undefined;
  let encoding: string | undefined;
  let grpcStatus: string | undefined;
  let grpcMessage: string | undefined;
  for (const { name, value } of fields) {
    if (name === "grpc-status") grpcStatus = value;
    else if (name === "grpc-message") grpcMessage = value;
    else if (name === ":status") httpStatus = value;
    else if (name === "content-type") contentType = value;
    else if (name === "grpc-encoding") encoding = value;
  }
  return { httpStatus, contentType, encoding, grpcStatus, grpcMessage };
}

/** gRPC's codes for HTTP statuses (grpc/grpc, doc/http-grpc-status-mapping.md). */
const BY_HTTP_STATUS: Readonly<Record<string, number>> = {
  400: GrpcCode.Internal,
  401: GrpcCode.Unauthenticated,
  403: GrpcCode.PermissionDenied,
  404: GrpcCode.Unimplemented,
  429: GrpcCode.Unavailable,
  502: GrpcCode.Unavailable,
  503: GrpcCode.Unavailable,
  504: GrpcCode.Unavailable,
};

/** The status of a response that is not gRPC's; undefined if it may be. */
function refusedHead(fields: GrpcResponseFields): Status | undefined {
  const { httpStatus, contentType, encoding } = fields;
  if (fields.grpcStatus !== undefined) return undefined;
  if (httpStatus !== "200") {
    const shown = (httpStatus ?? "none").slice(0, 16);
    return {
      code: BY_HTTP_STATUS[shown] ?? GrpcCode.Unknown,
      message: `unexpected HTTP status code received from server: ${shown}`,
    };
  }
  if (contentType?.startsWith("application/grpc") !== true) {
    const shown = JSON.stringify((contentType ?? "").slice(0, 100));
    return {
      code: GrpcCode.Unknown,
      message: `received a response of unexpected content-type ${shown}`,
    };
  }
  if (encoding !== undefined && encoding !== "identity") {
    const shown = encoding.slice(0, 100);
    return {
      code: GrpcCode.Unimplemented,
      message: `grpc: Decompressor is not installed for grpc-encoding "${shown}"`,
    };
  }
  return undefined;
}

/** The status in trailers. A code that gRPC does not know is UNKNOWN, a missing one INTERNAL. */
export function statusOf({ grpcStatus, grpcMessage }: GrpcResponseFields): Status {
  const message = decodeGrpcMessage(grpcMessage ?? "");
  if (grpcStatus === undefined) {
    return {
      code: GrpcCode.Internal,
      message: "server closed the stream without sending trailers",
    };
  }
  const isKnown = /^(?:\d|1[0-6])$/.test(grpcStatus);
  return { code: isKnown ? Number(grpcStatus) : GrpcCode.Unknown, message };
}

/** The text of grpc-message: percent-encoded UTF-8. What is not well formed stays as it is. */
function decodeGrpcMessage(text: string): string {
  if (!text.includes("%")) return text;
  const bytes = fromLatin1(
    text.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    ),
  );
  return toUtf8(bytes);
}

const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ["m", 1],
  ["S", 1000],
  ["M", 60_000],
  ["H", 3_600_000],
];

/** A time span as a grpc-timeout value: at most eight digits, rounded up. */
export function encodeTimeout(timeoutMs: number): string {
  for (const [unit, ms] of UNITS) {
    const count = Math.max(1, Math.ceil(timeoutMs / ms));
    if (count < 100_000_000) return `${count}${unit}`;
  }
  return "99999999H";
}

/**
 * A unary call, the path of most calls: one DATA frame in, one handler, three frames out, and no
 * allocated objects but the stream and this call.
 */
import { GrpcCode } from "@quorate/proto";
import type { Http2Connection } from "../http2/connection.ts";
import type { Http2Stream } from "../http2/stream.ts";
import type { Receiver } from "../later.ts";
import { MessageAssembler, messageSize, PREFIX_BYTES } from "../messages.ts";
import { statusOf } from "../served-call.ts";
import {
  deliver,
  isLate,
  StatusError,
  type UnaryHandler,
  type UnaryResponse,
  type UnaryResult,
} from "../service.ts";
import { Call } from "./call.ts";
import { checkCompressed, MAX_COMPRESSED_NOW_BYTES } from "./compressor.ts";
import { GZIP_HEADERS, OK_HEADERS, OK_TRAILERS, writeWholeResponse } from "./responses.ts";
import type { GrpcShared } from "./shared.ts";

export class UnaryCall extends Call implements Receiver<UnaryResponse> {
  readonly #handler: UnaryHandler;
  readonly #gzip: boolean;
  #request: Uint8Array | undefined = undefined;
  #isCompressed = false;
  #assembler: MessageAssembler | undefined = undefined;
  /** The service is processing the request. */
  #working = false;
  /** Counted in connection.lingeringCalls. */
  #lingering = false;

  constructor(
    shared: GrpcShared,
    connection: Http2Connection,
    stream: Http2Stream,
    deadlineMs: number | undefined,
    gzip: boolean,
    handler: UnaryHandler,
  ) {
    super(shared, connection, stream, deadlineMs);
    this.#handler = handler;
    this.#gzip = gzip;
  }

  override data(bytes: Uint8Array, start: number, end: number): void {
    if (this.isEnded || !this.hold(end - start)) return;
    const maxBytes = this.shared.limits.maxRequestBytes;
    const size = end - start - PREFIX_BYTES;
    if (
      this.#request === undefined &&
      this.#assembler === undefined &&
      size >= 0 &&
      size <= maxBytes &&
      bytes[start] === 0 &&
      ((bytes[start + 1] << 24) |
        (bytes[start + 2] << 16) |
        (bytes[start + 3] << 8) |
        bytes[start + 4]) ===
        size
    ) {
      this.#request = new Uint8Array(bytes.buffer, bytes.byteOffset + start + PREFIX_BYTES, size);
    } else this.#assemble(bytes.subarray(start, end), maxBytes);
    this.connection.credit(this.stream, end - start);
  }

  #assemble(chunk: Uint8Array, maxBytes: number): void {
    this.#assembler ??= new MessageAssembler(maxBytes);
    try {
      this.#assembler.push(chunk);
      for (
        let message = this.#assembler.take();
        message !== undefined;
        message = this.#assembler.take()
      ) {
        if (this.#request !== undefined)
          throw new StatusError(
            GrpcCode.Internal,
            "more than one message in a call that takes one",
          );
        if (this.#assembler.compressed) checkCompressed(this.#gzip);
        this.#isCompressed = this.#assembler.compressed;
        this.#request = message;
      }
    } catch (error) {
      this.finish(statusOf(error));
      this.release();
    }
  }

  override ended(): void {
    if (this.isEnded) return;
    const request = this.#request;
    if (
      request === undefined ||
      (this.#assembler !== undefined && this.#assembler.bufferedBytes > 0)
    ) {
      this.finish({ code: GrpcCode.Internal, message: "unexpected EOF" });
      this.release();
      return;
    }
    // The bytes stay in memory only if the service keeps them.
    this.#request = undefined;
    this.#assembler = undefined;
    if (this.#isCompressed) this.#decompress(request);
    else this.#handle(request);
  }

  #decompress(request: Uint8Array): void {
    const { inflater, limits } = this.shared;
    let plain: Uint8Array | undefined;
    try {
      plain = inflater.now(request, limits.maxRequestBytes);
    } catch (error) {
      this.finish(statusOf(error));
      this.release();
      return;
    }
    if (plain !== undefined) {
      this.#handle(plain);
      return;
    }
    const isWanted = () => !this.isEnded;
    inflater.later(
      this.connection,
      request,
      limits.maxRequestBytes,
      isWanted,
      (inflated, error) => {
        if (inflated === undefined) {
          this.finish(statusOf(error));
          this.release();
        } else if (this.hold(inflated.length)) this.#handle(inflated);
        this.connection.touched();
      },
    );
  }

  #handle(request: Uint8Array): void {
    this.received(request.length);
    let result: UnaryResult;
    try {
      result = this.#handler(request, this);
    } catch (error) {
      this.finish(statusOf(error));
      this.release();
      return;
    }
    if (isLate(result)) {
      this.#working = true;
      this.connection.working(this.heldBytes);
      deliver(result, this);
    } else {
      this.#respond(result);
      this.release();
    }
  }

  override drained(): void {}

  protected override abandoned(): void {
    if (!this.#working) this.release();
    else if (!this.#lingering) {
      this.#lingering = true;
      this.connection.lingeringCalls++;
    }
  }

  resolved(message: UnaryResponse): void {
    this.#stopWorking();
    this.#respond(message);
    this.connection.touched();
  }

  rejected(error: unknown): void {
    this.#stopWorking();
    this.finish(statusOf(error));
    this.connection.touched();
  }

  #stopWorking(): void {
    this.#working = false;
    if (this.#lingering) this.connection.lingeringCalls--;
    const sizeBytes = this.heldBytes;
    this.release();
    this.connection.working(-sizeBytes);
  }

  #respond(message: UnaryResponse): void {
    if (this.isEnded) return;
    const size = messageSize(message);
    if (size > this.shared.limits.maxResponseBytes) {
      this.finish({
        code: GrpcCode.ResourceExhausted,
        message: `grpc: trying to send message larger than max (${size} vs. ${this.shared.limits.maxResponseBytes})`,
      });
      return;
    }
    if (this.#gzip && size > 0) {
      this.#compress(message, size);
      return;
    }
    const sender = this.connection.sender;
    if (this.#gzip || !writeWholeResponse(sender, this.stream, message, size))
      this.#send(message, size, size, false);
    else {
      this.settle(GrpcCode.OK);
      this.sent(size);
    }
  }

  /** Sends the response in pieces, as the client's windows open. */
  #send(message: UnaryResponse, sizeBytes: number, plainBytes: number, compressed: boolean): void {
    const sender = this.connection.sender;
    sender.headers(this.stream, this.#gzip ? GZIP_HEADERS : OK_HEADERS, false);
    if (!this.sendPieces(message, sizeBytes, compressed, OK_TRAILERS)) return;
    this.settle(GrpcCode.OK);
    this.sent(plainBytes);
  }

  #compress(message: UnaryResponse, size: number): void {
    if (size <= MAX_COMPRESSED_NOW_BYTES) {
      this.#sendCompressed(this.shared.compressor.compressNow(message), size);
      return;
    }
    this.shared.compressor.compressLater(message).then(
      (bytes) => this.#sendCompressed(bytes, size),
      (error) => this.finish(statusOf(error)),
    );
  }

  #sendCompressed(bytes: Uint8Array, plainBytes: number): void {
    if (this.isEnded) return;
    this.#send(bytes, bytes.length, plainBytes, true);
    this.connection.touched();
  }
}

/** Calls by gRPC: what all have in common, unary calls, and streams. */
import { alloc, GrpcCode, readU32BE, toLatin1, writeFromBase64 } from "@quorate/proto";
import type { FieldList } from "../hpack/hpack.ts";
import type { Http2Connection } from "../http2/connection.ts";
import { FORWARDED_FOR, type Peer } from "../http2/peer.ts";
import type { Http2Stream, StreamConsumer } from "../http2/stream.ts";
import { HELD_TOO_MUCH, ServedCall, statusOf } from "../served-call.ts";
import {
  type CallContext,
  deliver,
  isLate,
  type MessageBytes,
  messageSize,
  type Receiver,
  type Status,
  StatusError,
  type StreamCall,
  type StreamHandler,
  type StreamListener,
  type UnaryHandler,
  type UnaryResponse,
  type UnaryResult,
} from "../service.ts";
import { MAX_COMPRESSED_NOW_BYTES } from "./compression.ts";
import {
  checkCompressed,
  framedPieces,
  GZIP_HEADERS,
  MessageAssembler,
  OK_HEADERS,
  OK_TRAILERS,
  PREFIX_BYTES,
  trailers,
  trailersOnly,
  writeMessage,
  writeWholeResponse,
} from "./protocol.ts";
import type { GrpcShared } from "./shared.ts";

const PENDING_TOO_MUCH: Status = {
  code: GrpcCode.ResourceExhausted,
  message: "grpc: responses waiting to be sent hold too much memory",
};

/**
 * The common part of a unary call and a stream: metadata, the request's memory, and how messages
 * and the end are sent.
 */
abstract class Call extends ServedCall<GrpcShared> implements StreamConsumer {
  protected readonly connection: Http2Connection;
  protected readonly stream: Http2Stream;
  /** Bytes taken from connection.held. */
  #heldBytes = 0;

  constructor(
    shared: GrpcShared,
    connection: Http2Connection,
    stream: Http2Stream,
    deadlineMs: number | undefined,
  ) {
    super(shared, stream.head.path.value, connection.nowMs, deadlineMs);
    this.connection = connection;
    this.stream = stream;
    stream.consumer = this;
    this.observed();
  }

  metadata(key: string): string | undefined {
    const fields = this.stream.head.fields;
    if (key === FORWARDED_FOR) return fields.findLast(({ name }) => name === key)?.value;
    for (let i = 0; i < fields.length; i++) {
      if (fields[i].name !== key) continue;
      const value = fields[i].value;
      if (!key.endsWith("-bin")) return value;
      // Several binary values may be in one field, separated by commas.
      const comma = value.indexOf(",");
      return toLatin1(decodeBase64(comma === -1 ? value : value.slice(0, comma)));
    }
    return undefined;
  }

  protected get peer(): Peer {
    return this.connection.peer;
  }

  abstract data(bytes: Uint8Array, start: number, end: number): void;
  abstract ended(): void;
  abstract drained(): void;

  override expired(): void {
    if (this.isEnded) return;
    super.expired();
    this.connection.touched();
  }

  /** Behind the messages already sent. */
  protected sendEnd(status: Status): void {
    const { stream, connection } = this;
    if (stream.headersSent) connection.sender.finish(stream, trailers(status));
    else connection.sender.headers(stream, trailersOnly(status), true);
    connection.touched();
  }

  /** Counts request bytes as held; false if over the limit, and then the call has ended. */
  protected hold(sizeBytes: number): boolean {
    if (this.connection.held.take(sizeBytes)) {
      this.#heldBytes += sizeBytes;
      return true;
    }
    this.connection.counters.heldBytesRefusals++;
    this.cancel(HELD_TOO_MUCH);
    return false;
  }

  protected get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Releases bytes, by default all that are held. */
  protected release(sizeBytes = this.#heldBytes): void {
    this.#heldBytes -= sizeBytes;
    this.connection.held.give(sizeBytes);
  }

  /**
   * Sends a message in pieces, now or later. False if too much is waiting already; the call has
   * then ended, for the service as cancelled.
   */
  protected sendPieces(
    message: UnaryResponse,
    sizeBytes: number,
    compressed: boolean,
    ending?: FieldList,
  ): boolean {
    const pieces = framedPieces(message, sizeBytes, compressed);
    if (this.connection.sender.data(this.stream, pieces, PREFIX_BYTES + sizeBytes, ending))
      return true;
    this.connection.counters.pendingBytesRefusals++;
    this.cancel(PENDING_TOO_MUCH);
    return false;
  }
}

/**
 * A unary call, the path of most calls: one DATA frame in, one handler, three frames out, and no
 * allocated objects but the stream and this call.
 */
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

const OK: Status = { code: GrpcCode.OK, message: "" };

/** A streaming call: any number of messages in both directions. */
export class StreamingCall extends Call implements StreamCall {
  readonly #gzip: boolean;
  /** Made for the first message that does not arrive alone and whole. */
  #assembler: MessageAssembler | undefined = undefined;
  #listener: StreamListener = {};
  #paused = false;
  #delivering = false;
  /** The body is complete, but messages of it may still wait for `resume`. */
  #bodyEnded = false;
  #notifiedHalfClosed = false;
  /** Body bytes that arrived while paused: credited to the client when the service resumes. */
  #owedBytes = 0;
  #overBudget = false;
  /** A message is being decompressed; the result, until it is delivered. */
  #isInflating = false;
  #inflated: Uint8Array | undefined = undefined;

  constructor(
    shared: GrpcShared,
    connection: Http2Connection,
    stream: Http2Stream,
    deadlineMs: number | undefined,
    gzip: boolean,
    handler: StreamHandler,
    bodyEnded: boolean,
  ) {
    super(shared, connection, stream, deadlineMs);
    this.#gzip = gzip;
    try {
      this.#listener = handler(this);
    } catch (error) {
      this.finish(statusOf(error));
    }
    // What the handler sent in its constructor may already be over a limit.
    if (this.cancelled) this.abandoned();
    if (bodyEnded) this.ended();
  }

  get context(): CallContext {
    return this;
  }

  /** Besides, up to outputTargetBytes of the connection may wait for the socket. */
  get bufferedBytes(): number {
    return this.stream.pendingBytes;
  }

  send(message: MessageBytes): boolean {
    if (this.isEnded) return false;
    const size = messageSize(message);
    const { sender } = this.connection;
    this.sent(size);
    if (!this.stream.headersSent)
      sender.headers(this.stream, this.#gzip ? GZIP_HEADERS : OK_HEADERS, false);
    // Messages must leave in order, so one that is too large to compress at once is sent
    // uncompressed.
    if (this.#gzip && size > 0 && size <= MAX_COMPRESSED_NOW_BYTES) {
      const compressed = this.shared.compressor.compressNow(message);
      this.sendPieces(compressed, compressed.length, true);
    } else if (writeMessage(sender, this.stream, message, size)) this.connection.progressed();
    else this.sendPieces(message, size, false);
    this.connection.touched();
    if (this.bufferedBytes <= this.shared.limits.sendBudgetBytes) return !this.isEnded;
    this.#overBudget = true;
    this.stream.drainBytes = this.shared.limits.sendBudgetBytes >>> 1;
    return false;
  }

  end(status: Status = OK): void {
    this.finish(status);
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#goOn();
  }

  #goOn(): void {
    if (!this.#isHeldUp && this.#owedBytes > 0) {
      this.connection.credit(this.stream, this.#owedBytes);
      this.#owedBytes = 0;
    }
    this.#deliver();
    this.connection.touched();
  }

  /** True while no message is delivered, and the client may send no more than its window. */
  get #isHeldUp(): boolean {
    return this.#paused || this.#isInflating;
  }

  override data(bytes: Uint8Array, start: number, end: number): void {
    const size = end - start;
    if (this.isEnded) return;
    if (this.#isMessage(bytes, start, size)) {
      this.connection.credit(this.stream, size);
      this.#deliverAtOnce(bytes.subarray(start + PREFIX_BYTES, end));
      return;
    }
    if (!this.hold(size)) return;
    if (this.#isHeldUp) this.#owedBytes += size;
    else this.connection.credit(this.stream, size);
    this.#assembler ??= new MessageAssembler(this.shared.limits.maxRequestBytes);
    this.#assembler.push(bytes.subarray(start, end));
    this.#deliver();
  }

  /** Whether there are bytes of messages that the service does not have yet. */
  get #hasPart(): boolean {
    return this.#assembler !== undefined && this.#assembler.bufferedBytes > 0;
  }

  /** Whether these bytes are one message as it is, and the next one for the service. */
  #isMessage(bytes: Uint8Array, start: number, size: number): boolean {
    return (
      size >= PREFIX_BYTES &&
      bytes[start] === 0 &&
      readU32BE(bytes, start + 1) === size - PREFIX_BYTES &&
      size - PREFIX_BYTES <= this.shared.limits.maxRequestBytes &&
      !this.#hasPart &&
      !this.#isHeldUp &&
      !this.#delivering
    );
  }

  /** Most messages of a stream arrive alone and whole: nothing is kept of them, or held. */
  #deliverAtOnce(message: Uint8Array): void {
    this.#delivering = true;
    try {
      this.#hand(message);
    } catch (error) {
      this.finish(statusOf(error));
    }
    this.#delivering = false;
  }

  override ended(): void {
    this.#bodyEnded = true;
    this.#deliver();
  }

  /** Notified at half the budget, so that the stream does not run dry meanwhile. */
  override drained(): void {
    if (!this.#overBudget || this.isEnded) return;
    this.#overBudget = false;
    this.#call(this.#listener.drained);
  }

  protected override settle(code: number): boolean {
    if (!super.settle(code)) return false;
    this.release();
    return true;
  }

  protected override abandoned(): void {
    this.#call(this.#listener.cancelled);
  }

  /**
   * Delivers complete messages until the service pauses, then the end of the body if it has
   * arrived.
   */
  #deliver(): void {
    // A listener that calls resume is inside this loop already.
    if (this.#delivering) return;
    this.#delivering = true;
    try {
      while (!this.#isHeldUp && !this.isEnded) {
        const ready = this.#inflated;
        if (ready !== undefined) {
          this.#inflated = undefined;
          this.#hand(ready);
          continue;
        }
        const message = this.#assembler?.take();
        if (message === undefined) break;
        this.release(PREFIX_BYTES + message.length);
        const plain = this.#assembler?.compressed ? this.#decompress(message) : message;
        if (plain !== undefined) this.#hand(plain);
      }
    } catch (error) {
      this.finish(statusOf(error));
    }
    this.#delivering = false;
    if (!this.#bodyEnded || this.#isHeldUp || this.isEnded || this.#notifiedHalfClosed) return;
    this.#notifiedHalfClosed = true;
    if (this.#hasPart) this.finish({ code: GrpcCode.Internal, message: "unexpected EOF" });
    else this.#call(this.#listener.halfClosed);
  }

  #hand(message: Uint8Array): void {
    this.received(message.length);
    this.#listener.message?.(message);
  }

  /**
   * The decompressed message, or undefined if it is queued: the stream continues when that is done.
   */
  #decompress(message: Uint8Array): Uint8Array | undefined {
    checkCompressed(this.#gzip);
    const { inflater, limits } = this.shared;
    const plain = inflater.now(message, limits.maxRequestBytes);
    if (plain !== undefined) return plain;
    this.#isInflating = true;
    const isWanted = () => !this.isEnded;
    inflater.later(
      this.connection,
      message,
      limits.maxRequestBytes,
      isWanted,
      (inflated, error) => {
        this.#isInflating = false;
        this.#inflated = inflated;
        if (inflated === undefined) this.finish(statusOf(error));
        this.#goOn();
      },
    );
    return undefined;
  }

  #call(listener: (() => void) | undefined): void {
    if (listener === undefined) return;
    try {
      listener.call(this.#listener);
    } catch (error) {
      this.finish(statusOf(error));
    }
  }
}

/**
 * The bytes of binary metadata (grpc/grpc, doc/PROTOCOL-HTTP2.md): base64 with or without padding,
 * and "-_" accepted for "+/", decoded up to the first character that is not base64.
 */
export function decodeBase64(text: string): Uint8Array {
  const end = text.search(/[^A-Za-z0-9+/_-]/);
  const digits = end < 0 ? text : text.slice(0, end);
  const bytes = alloc((digits.length * 3) >>> 2);
  return bytes.subarray(0, writeFromBase64(bytes, digits, 0));
}

/** A streaming call: any number of messages in both directions. */
import { GrpcCode, readU32BE } from "@quorate/proto";
import type { Http2Connection } from "../http2/connection.ts";
import type { Http2Stream } from "../http2/stream.ts";
import { MessageAssembler, messageSize, PREFIX_BYTES } from "../messages.ts";
import { statusOf } from "../served-call.ts";
import type {
  CallContext,
  MessageBytes,
  Status,
  StreamCall,
  StreamHandler,
  StreamListener,
} from "../service.ts";
import { Call } from "./call.ts";
import { checkCompressed, MAX_COMPRESSED_NOW_BYTES } from "./compressor.ts";
import { GZIP_HEADERS, OK_HEADERS, writeMessage } from "./responses.ts";
import type { GrpcShared } from "./shared.ts";

const OK: Status = { code: GrpcCode.OK, message: "" };

export class StreamingCall extends Call implements StreamCall {
  readonly #gzip: boolean;
  readonly #assembler: MessageAssembler;
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
    this.#assembler = new MessageAssembler(shared.limits.maxRequestBytes);
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
    this.#assembler.push(bytes.subarray(start, end));
    this.#deliver();
  }

  /** Whether these bytes are one message as it is, and the next one for the service. */
  #isMessage(bytes: Uint8Array, start: number, size: number): boolean {
    return (
      size >= PREFIX_BYTES &&
      bytes[start] === 0 &&
      readU32BE(bytes, start + 1) === size - PREFIX_BYTES &&
      size - PREFIX_BYTES <= this.shared.limits.maxRequestBytes &&
      this.#assembler.bufferedBytes === 0 &&
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
        const message = this.#assembler.take();
        if (message === undefined) break;
        this.release(PREFIX_BYTES + message.length);
        const plain = this.#assembler.compressed ? this.#decompress(message) : message;
        if (plain !== undefined) this.#hand(plain);
      }
    } catch (error) {
      this.finish(statusOf(error));
    }
    this.#delivering = false;
    if (!this.#bodyEnded || this.#isHeldUp || this.isEnded || this.#notifiedHalfClosed) return;
    this.#notifiedHalfClosed = true;
    if (this.#assembler.bufferedBytes > 0)
      this.finish({ code: GrpcCode.Internal, message: "unexpected EOF" });
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

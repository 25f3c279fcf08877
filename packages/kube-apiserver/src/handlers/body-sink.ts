/**
 * Writes a response's body in pieces: whole where it is small, compressed where it is large and the
 * client takes gzip, and never more than the client reads (apiserver: responsewriters/writers.go).
 */
import { EMPTY } from "@quorate/proto";
import { type Call, joined } from "./call.ts";

/** Compresses a body piece by piece, outside of the event loop. */
export interface Compressor {
  /** Resolves with what is ready to be sent, maybe nothing. */
  push(piece: Uint8Array): Promise<Uint8Array>;
  /** The rest. */
  finish(): Promise<Uint8Array>;
  /** Releases its memory; safe at any time. */
  close(): void;
}

/** Bodies above this are compressed (apiserver: defaultGzipThresholdBytes). */
export const GZIP_THRESHOLD_BYTES = 128 * 1024;
/** Pieces are gathered to this size before they are sent. */
const PIECE_BYTES = 64 * 1024;

/** Whether the client takes gzip, as Kubernetes reads Accept-Encoding. */
export function acceptsGzip(acceptEncoding: string): boolean {
  return acceptEncoding.split(",").some((token) => token.trim() === "gzip");
}

export class BodySink {
  readonly #call: Call;
  readonly #status: number;
  readonly #contentType: string;
  readonly #newCompressor: () => Compressor;
  #compressor: Compressor | undefined;
  #pieces: Uint8Array[] = [];
  #sizeBytes = 0;
  #hasStarted = false;

  constructor(call: Call, status: number, contentType: string, newCompressor: () => Compressor) {
    this.#call = call;
    this.#status = status;
    this.#contentType = contentType;
    this.#newCompressor = newCompressor;
  }

  /** The client is gone, or has got another response: further pieces are lost. */
  get isLost(): boolean {
    return this.#call.isOver || (this.#call.hasResponse && !this.#hasStarted);
  }

  /** Whether `flush` has something to send. */
  get isFull(): boolean {
    return this.#sizeBytes > (this.#hasStarted ? PIECE_BYTES : GZIP_THRESHOLD_BYTES);
  }

  /** Adds a piece, which must not change afterwards. Call `flush` when `isFull`. */
  add(piece: Uint8Array): void {
    this.#pieces.push(piece);
    this.#sizeBytes += piece.length;
  }

  /** Sends what was added. Resolves when the client can take more. */
  async flush(): Promise<void> {
    const bytes = this.#taken();
    if (!this.#hasStarted && !this.#start()) return;
    await this.#send(this.#compressor === undefined ? bytes : await this.#compressor.push(bytes));
  }

  async end(): Promise<void> {
    const bytes = this.#taken();
    if (!this.#hasStarted && bytes.length <= GZIP_THRESHOLD_BYTES) {
      this.#call.respond(this.#status, { "content-type": this.#contentType }, bytes);
      return;
    }
    if (!this.#hasStarted && !this.#start()) return;
    try {
      if (this.#compressor === undefined) await this.#send(bytes);
      else {
        await this.#send(await this.#compressor.push(bytes));
        await this.#send(await this.#compressor.finish());
      }
    } finally {
      this.#compressor?.close();
    }
    this.#call.end();
  }

  /** Cuts the response off where it has begun. */
  abort(): void {
    this.#compressor?.close();
    if (this.#hasStarted) this.#call.abort();
  }

  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  #taken(): Uint8Array {
    const bytes = joined(this.#pieces, this.#sizeBytes);
    this.#pieces = [];
    this.#sizeBytes = 0;
    return bytes;
  }

  #start(): boolean {
    const headers: Record<string, string> = { "content-type": this.#contentType };
    if (acceptsGzip(this.#call.header("accept-encoding"))) {
      headers["content-encoding"] = "gzip";
      headers["vary"] = "Accept-Encoding";
      this.#compressor = this.#newCompressor();
    }
    this.#hasStarted = this.#call.start(this.#status, headers);
    if (!this.#hasStarted) this.#compressor?.close();
    return this.#hasStarted;
  }

  #send(bytes: Uint8Array = EMPTY): Promise<void> | void {
    if (bytes.length === 0) return;
    return new Promise((resolve) => {
      if (this.#call.send(bytes, resolve)) resolve();
    });
  }
}

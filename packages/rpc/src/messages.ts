/**
 * gRPC's length-prefixed messages (grpc/grpc, doc/PROTOCOL-HTTP2.md), however the transport cut
 * them:
 *
 *   compressed flag (1 byte, 0 or 1) | length (4 bytes, big-endian) | length bytes
 */
import { alloc, concat, readU32BE } from "@quorate/proto";
import { GrpcCode } from "./codes.ts";
import { type MessageBytes, StatusError } from "./service.ts";

/** Bytes before each message. */
export const PREFIX_BYTES = 5;
/**
 * Chunks of less than this are gathered, so that a body in tiny pieces does not cost an object for
 * each.
 */
const MIN_KEPT_CHUNK_BYTES = 512;
const GATHERED_BYTES = 4096;

/** How many bytes a message has. */
export function messageSize(message: MessageBytes): number {
  if (message instanceof Uint8Array) return message.length;
  let size = 0;
  for (const part of message) size += part.length;
  return size;
}

/**
 * Puts messages together from the chunks of a body. Holds at most one message and the chunk in
 * which it ends.
 */
export class MessageAssembler {
  readonly #maxMessageBytes: number;
  #chunks: Uint8Array[] = [];
  #bufferedBytes = 0;
  // Where small chunks are gathered: its used part is the last of the chunks while this is set.
  #gathered: Uint8Array | undefined;
  /** Whether the message that `take` gave last was compressed. */
  compressed = false;

  /** @param maxMessageBytes the longest message that is taken, as it comes over the wire. */
  constructor(maxMessageBytes: number) {
    this.#maxMessageBytes = maxMessageBytes;
  }

  /** Bytes that `take` has not given yet. */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#bufferedBytes += chunk.length;
    if (this.#chunks.length > 0 && chunk.length < MIN_KEPT_CHUNK_BYTES) this.#gather(chunk);
    else {
      this.#gathered = undefined;
      this.#chunks.push(chunk);
    }
  }

  #gather(chunk: Uint8Array): void {
    const last = this.#chunks.length - 1;
    const used = this.#gathered === undefined ? 0 : this.#chunks[last].length;
    if (this.#gathered === undefined || used + chunk.length > GATHERED_BYTES) {
      this.#gathered = alloc(GATHERED_BYTES);
      this.#gathered.set(chunk);
      this.#chunks.push(this.#gathered.subarray(0, chunk.length));
      return;
    }
    this.#gathered.set(chunk, used);
    this.#chunks[last] = this.#gathered.subarray(0, used + chunk.length);
  }

  /**
   * The next whole message, a view of its chunk where it came in one, or undefined until more is
   * pushed. Throws StatusError as soon as the prefix tells of one that is too long
   * (RESOURCE_EXHAUSTED) or has a flag that is not known (INTERNAL), both with grpc-go's text.
   */
  take(): Uint8Array | undefined {
    if (this.#bufferedBytes < PREFIX_BYTES) return undefined;
    if (this.#chunks[0].length < PREFIX_BYTES) this.#join();
    const first = this.#chunks[0];
    const flag = first[0];
    const size = readU32BE(first, 1);
    if (flag > 1)
      throw new StatusError(GrpcCode.Internal, `grpc: received unexpected payload format ${flag}`);
    if (size > this.#maxMessageBytes) {
      throw new StatusError(
        GrpcCode.ResourceExhausted,
        `grpc: received message larger than max (${size} vs. ${this.#maxMessageBytes})`,
      );
    }
    const end = PREFIX_BYTES + size;
    if (this.#bufferedBytes < end) return undefined;
    if (first.length < end) this.#join();
    const whole = this.#chunks[0];
    this.compressed = flag === 1;
    this.#bufferedBytes -= end;
    if (whole.length > end) this.#chunks[0] = whole.subarray(end);
    else this.#chunks.shift();
    this.#gathered = undefined;
    return whole.subarray(PREFIX_BYTES, end);
  }

  #join(): void {
    this.#chunks = [concat(this.#chunks)];
    this.#gathered = undefined;
  }
}

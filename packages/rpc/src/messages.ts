/**
 * gRPC's length-prefixed messages (grpc/grpc, doc/PROTOCOL-HTTP2.md), independent of the frames
 * that carry them:
 *
 *   compressed flag (1 byte, 0 or 1) | length (4 bytes, big-endian) | length bytes
 */
import { alloc, ChunkQueue, GrpcCode, readU32BE } from "@quorate/proto";
import { type PieceSource, StatusError, type UnaryResponse } from "./service.ts";

/** Bytes before each message. */
export const PREFIX_BYTES = 5;
/** How many bytes a message has. */
export function messageSize(message: UnaryResponse): number {
  if (message instanceof Uint8Array) return message.length;
  if (isPieceSource(message)) return message.sizeBytes;
  let size = 0;
  for (const part of message) size += part.length;
  return size;
}

/** Whether a message's pieces are made while it is sent. */
export function isPieceSource(message: UnaryResponse): message is PieceSource {
  return "next" in message;
}

/** A message in one piece; a copy unless it is one. A source of pieces is used up. */
export function joinMessage(message: UnaryResponse): Uint8Array {
  if (message instanceof Uint8Array) return message;
  const whole = alloc(messageSize(message));
  let at = 0;
  const add = (piece: Uint8Array): void => {
    whole.set(piece, at);
    at += piece.length;
  };
  if (!isPieceSource(message)) for (const piece of message) add(piece);
  else for (let piece = message.next(); piece !== undefined; piece = message.next()) add(piece);
  return whole;
}

/** A message in one piece that no other code holds. A source of pieces is used up. */
export function ownedMessage(message: UnaryResponse): Uint8Array {
  return message instanceof Uint8Array ? message.slice() : joinMessage(message);
}

/**
 * Assembles messages from the chunks of a body. Holds at most one message and the chunk it ends in.
 */
export class MessageAssembler {
  readonly #maxMessageBytes: number;
  readonly #chunks = new ChunkQueue();
  /** Whether the message that `take` returned last was compressed. */
  compressed = false;

  /** @param maxMessageBytes the longest message that is taken, as it comes over the wire. */
  constructor(maxMessageBytes: number) {
    this.#maxMessageBytes = maxMessageBytes;
  }

  /** Bytes that `take` has not returned yet. */
  get bufferedBytes(): number {
    return this.#chunks.sizeBytes;
  }

  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
  }

  /**
   * The next whole message, a view of its chunk where it came in one, or undefined until more is
   * pushed. Throws StatusError as soon as the prefix announces one that is too long
   * (RESOURCE_EXHAUSTED) or has an unknown flag (INTERNAL), both with grpc-go's text.
   */
  take(): Uint8Array | undefined {
    const chunks = this.#chunks;
    if (chunks.sizeBytes < PREFIX_BYTES) return undefined;
    const head = chunks.peek(PREFIX_BYTES);
    const flag = head[0];
    const size = readU32BE(head, 1);
    if (flag > 1)
      throw new StatusError(GrpcCode.Internal, `grpc: received unexpected payload format ${flag}`);
    if (size > this.#maxMessageBytes) {
      throw new StatusError(
        GrpcCode.ResourceExhausted,
        `grpc: received message larger than max (${size} vs. ${this.#maxMessageBytes})`,
      );
    }
    if (chunks.sizeBytes < PREFIX_BYTES + size) return undefined;
    this.compressed = flag === 1;
    return chunks.take(PREFIX_BYTES + size).subarray(PREFIX_BYTES);
  }
}

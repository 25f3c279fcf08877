/**
 * gRPC's protocol above HTTP/2 (grpc/grpc, doc/PROTOCOL-HTTP2.md): length-prefixed messages,
 *
 *   compressed flag (1 byte, 0 or 1) | length (4 bytes, big-endian) | length bytes
 *
 * and the texts in headers: status messages, timeouts, grpc-go's words for an unknown method.
 */
import { alloc, ChunkQueue, GrpcCode, readU32BE } from "@quorate/proto";
import { type PieceSource, type ServiceTable, StatusError, type UnaryResponse } from "./service.ts";

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
    const flag = head[0] ?? 0;
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

const PLAIN_MESSAGE = /^[ -$&-~]*$/;
const PART = /[ -$&-~]+|[^ -$&-~]/gsu;

/**
 * A status message as the value of grpc-message: UTF-8, with all but printable ASCII, and "%",
 * percent-encoded.
 */
export function encodeGrpcMessage(text: string): string {
  if (PLAIN_MESSAGE.test(text)) return text;
  return text
    .toWellFormed()
    .replace(PART, (part) => (PLAIN_MESSAGE.test(part) ? part : percentEncoded(part)));
}

function percentEncoded(character: string): string {
  const code = character.codePointAt(0)!;
  // encodeURIComponent leaves some ASCII unchanged; here the character is a control character, "%",
  // or beyond ASCII.
  return code < 0x80
    ? `%${code.toString(16).toUpperCase().padStart(2, "0")}`
    : encodeURIComponent(character);
}

/** Milliseconds of the units of a grpc-timeout. */
export const TIMEOUT_UNITS_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/**
 * Milliseconds of a grpc-timeout value (1 to 8 digits and a unit), or undefined if it is malformed.
 */
export function parseTimeoutMs(value: string): number | undefined {
  const unit = TIMEOUT_UNITS_MS[value.charAt(value.length - 1)];
  const digits = value.slice(0, -1);
  return unit !== undefined && /^\d{1,8}$/.test(digits) ? Number(digits) * unit : undefined;
}

/** grpc-go's text for an unknown method, sent as UNIMPLEMENTED. */
export function unknownMethodText(services: ServiceTable, path: string): string {
  const slash = path.lastIndexOf("/");
  if (!path.startsWith("/") || slash === 0) return `malformed method name: ${JSON.stringify(path)}`;
  const prefix = path.slice(0, slash + 1);
  for (const methods of [services.unary, services.stream]) {
    for (const known of methods.keys()) {
      if (known.startsWith(prefix) && known.lastIndexOf("/") === slash) {
        return `unknown method ${path.slice(slash + 1)} for service ${path.slice(1, slash)}`;
      }
    }
  }
  return `unknown service ${path.slice(1, slash)}`;
}

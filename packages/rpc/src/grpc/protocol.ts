/**
 * gRPC's protocol on HTTP/2 (grpc/grpc, doc/PROTOCOL-HTTP2.md): length-prefixed messages,
 *
 *   compressed flag (1 byte, 0 or 1) | length (4 bytes, big-endian) | length bytes
 *
 * the texts in headers (timeouts, encodings, status messages, grpc-go's words for an unknown
 * method), and responses: their fields, and whole unary ones that are written at once.
 */
import { alloc, ChunkQueue, GrpcCode, readU32BE, writeU32BE } from "@quorate/proto";
import { constantFields, type FieldList, Indexing } from "../hpack/hpack.ts";
import { Flag, FRAME_HEADER_BYTES, FrameType } from "../http2/constants.ts";
import { type Output, putFrameHeader } from "../http2/output.ts";
import type { Sender } from "../http2/sender.ts";
import type { Http2Stream, SendPiece } from "../http2/stream.ts";
import {
  isPieceSource,
  joinMessage,
  type MessageBytes,
  type ServiceTable,
  type Status,
  StatusError,
  type UnaryResponse,
} from "../service.ts";

/** Bytes before each message. */
export const PREFIX_BYTES = 5;

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

/** Encodings that a client may use, as the value of grpc-accept-encoding. */
export const ACCEPTED_ENCODINGS = "identity,gzip";

/** The encoding named by a grpc-encoding header: gzip, none, or an unsupported one. */
export function encodingOf(value: string | undefined): "gzip" | "identity" | "unknown" {
  if (value === undefined || value === "" || value === "identity") return "identity";
  return value === "gzip" ? "gzip" : "unknown";
}

/** The status of a call with an unsupported encoding, with grpc-go's text. */
export function unknownEncoding(value: string): StatusError {
  return new StatusError(
    GrpcCode.Unimplemented,
    `grpc: Decompressor is not installed for grpc-encoding ${JSON.stringify(value)}`,
  );
}

/** Throws grpc-go's StatusError for a compressed message in a call without grpc-encoding. */
export function checkCompressed(gzip: boolean): void {
  if (!gzip)
    throw new StatusError(
      GrpcCode.Internal,
      "grpc: compressed flag set with identity or empty encoding",
    );
}

const STATUS_200 = { name: ":status", value: "200" };
const CONTENT_TYPE = { name: "content-type", value: "application/grpc", indexing: Indexing.Add };
const STATUS_OK = { name: "grpc-status", value: "0", indexing: Indexing.Add };

export const OK_HEADERS = constantFields(STATUS_200, CONTENT_TYPE);
export const GZIP_HEADERS = constantFields(STATUS_200, CONTENT_TYPE, {
  name: "grpc-encoding",
  value: "gzip",
  indexing: Indexing.Add,
});
export const OK_TRAILERS = constantFields(STATUS_OK);

const OK_ONLY = constantFields(STATUS_200, CONTENT_TYPE, STATUS_OK);

/** Trailers that end a response with a status. */
export function trailers(status: Status): FieldList {
  if (status.code === GrpcCode.OK && status.message === "") return OK_TRAILERS;
  return { fields: statusFields(status), constant: false };
}

/** The headers of a response that consists of a status only. */
export function trailersOnly(status: Status, httpStatus = 200, acceptEncoding?: string): FieldList {
  if (status.code === GrpcCode.OK && status.message === "" && httpStatus === 200) return OK_ONLY;
  const fields = [
    { name: ":status", value: String(httpStatus) },
    CONTENT_TYPE,
    ...statusFields(status),
  ];
  if (acceptEncoding !== undefined)
    fields.push({ name: "grpc-accept-encoding", value: acceptEncoding });
  return { fields, constant: false };
}

function statusFields(status: Status): { name: string; value: string }[] {
  return [
    { name: "grpc-status", value: String(status.code) },
    { name: "grpc-message", value: encodeGrpcMessage(status.message) },
  ];
}

/** The prefix of a message as a piece of its own. */
export function prefixOf(sizeBytes: number, compressed: boolean): Uint8Array {
  const prefix = alloc(PREFIX_BYTES);
  prefix[0] = compressed ? 1 : 0;
  writeU32BE(prefix, sizeBytes, 1);
  return prefix;
}

/** The pieces of a prefixed message. */
export function framedPieces(
  message: UnaryResponse,
  sizeBytes: number,
  compressed: boolean,
): SendPiece[] {
  const prefix = prefixOf(sizeBytes, compressed);
  if (message instanceof Uint8Array || isPieceSource(message)) return [prefix, message];
  return [prefix, ...message];
}

/**
 * Writes headers, one message and trailers, if the flow-control windows and the output have space
 * for all of it. False if not: then nothing was written.
 */
export function writeWholeResponse(
  sender: Sender,
  stream: Http2Stream,
  message: UnaryResponse,
  sizeBytes: number,
): boolean {
  if (!sender.takeWindow(stream, PREFIX_BYTES + sizeBytes)) return false;
  const out = sender.out;
  const id = stream.id;
  writeBlock(out, id, sender.encoder.encode(OK_HEADERS), Flag.EndHeaders);
  // It fits one frame, so it is short.
  const bytes = isPieceSource(message) ? joinMessage(message) : message;
  writeMessageFrame(out, id, bytes, sizeBytes);
  writeBlock(out, id, sender.encoder.encode(OK_TRAILERS), Flag.EndHeaders | Flag.EndStream);
  sender.finished(stream);
  return true;
}

/**
 * Writes one uncompressed message as a DATA frame, if the windows and the output have space for it.
 * False if not: then nothing was written.
 */
export function writeMessage(
  sender: Sender,
  stream: Http2Stream,
  message: MessageBytes,
  sizeBytes: number,
): boolean {
  if (!sender.takeWindow(stream, PREFIX_BYTES + sizeBytes)) return false;
  writeMessageFrame(sender.out, stream.id, message, sizeBytes);
  return true;
}

function writeBlock(out: Output, streamId: number, block: Uint8Array, flags: number): void {
  let at = out.reserve(FRAME_HEADER_BYTES + block.length);
  const bytes = out.bytes;
  at = putFrameHeader(bytes, at, block.length, FrameType.Headers, flags, streamId);
  for (let i = 0; i < block.length; i++) bytes[at++] = block[i];
}

function writeMessageFrame(
  out: Output,
  streamId: number,
  message: MessageBytes,
  sizeBytes: number,
): void {
  let at = out.reserve(FRAME_HEADER_BYTES + PREFIX_BYTES);
  const bytes = out.bytes;
  at = putFrameHeader(bytes, at, PREFIX_BYTES + sizeBytes, FrameType.Data, 0, streamId);
  bytes[at] = 0;
  writeU32BE(bytes, sizeBytes, at + 1);
  if (message instanceof Uint8Array) out.append(message, 0, message.length);
  else for (let i = 0; i < message.length; i++) out.append(message[i], 0, message[i].length);
}

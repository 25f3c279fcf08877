/**
 * Responses on the wire (grpc/grpc, doc/PROTOCOL-HTTP2.md): their fields, and whole unary responses
 * written at once.
 */
import { alloc, GrpcCode, writeU32BE } from "@quorate/proto";
import { constantFields, type FieldList, Indexing } from "../hpack/hpack.ts";
import { Flag, FRAME_HEADER_BYTES, FrameType } from "../http2/constants.ts";
import type { Output } from "../http2/output.ts";
import { putFrameHeader } from "../http2/output.ts";
import type { Sender } from "../http2/sender.ts";
import type { Http2Stream, SendPiece } from "../http2/stream.ts";
import { encodeGrpcMessage, isPieceSource, joinMessage, PREFIX_BYTES } from "../messages.ts";
import type { MessageBytes, Status, UnaryResponse } from "../service.ts";

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

/** The first fields of responses, read without decoding what follows. */
import { isPieceSource, type MessageBytes, type UnaryResponse } from "@quorate/rpc";

/** A header is first in a response and shorter than this. */
const HEAD_BYTES = 96;

const HEADER = 0x0a;
const RANGE_RESPONSE = 0x0a;
const HEADER_REVISION = 0x18;
const WATCH_ID = 0x10;
const WATCH_CREATED = 0x18;
const WATCH_CANCELED = 0x20;
/** Bytes below are the last ones of a varint. */
const SMALL = 0x80;

/** A place in bytes, moved by reading. */
interface Cursor {
  readonly bytes: Uint8Array;
  at: number;
}

/** The beginning of a message that may be in pieces. */
function headOf(message: MessageBytes): Uint8Array {
  if (message instanceof Uint8Array) return message;
  const first = message[0];
  if (first === undefined || first.length >= HEAD_BYTES || message.length === 1)
    return first ?? new Uint8Array(0);
  const head = new Uint8Array(HEAD_BYTES);
  let length = 0;
  for (const piece of message) {
    const part = piece.subarray(0, HEAD_BYTES - length);
    head.set(part, length);
    length += part.length;
    if (length === HEAD_BYTES) break;
  }
  return head.subarray(0, length);
}

/** A varint, as a number; what is beyond 53 bits loses its last digits. */
function varint(cursor: Cursor): number {
  let value = 0;
  let scale = 1;
  while (cursor.at < cursor.bytes.length) {
    const byte = cursor.bytes[cursor.at++];
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return value;
    scale *= 128;
  }
  return value;
}

/** The end of the header, with the cursor at its first field; undefined without a header. */
function enterHeader(cursor: Cursor): number | undefined {
  if (cursor.bytes[cursor.at] !== HEADER) return undefined;
  cursor.at++;
  const length = varint(cursor);
  return cursor.at + length;
}

/**
 * The revision of a unary response, and the response to send: of one whose pieces are made while it
 * is sent, the first piece is taken, which has the header.
 */
export function peekRevision(response: UnaryResponse): [revision: number, UnaryResponse] {
  if (!isPieceSource(response)) return [revisionOf(response), response];
  let first = response.next();
  const revision = first === undefined ? 0 : revisionOf(first);
  const next = (): Uint8Array | undefined => {
    if (first === undefined) return response.next();
    const piece = first;
    first = undefined;
    return piece;
  };
  return [revision, { sizeBytes: response.sizeBytes, next }];
}

/**
 * The revision in the header of a response whose first piece has it, found without making objects;
 * undefined where that does not do.
 */
export function revisionAtHand(response: UnaryResponse): number | undefined {
  let bytes: Uint8Array;
  if (response instanceof Uint8Array) bytes = response;
  else if (isPieceSource(response) || response.length === 0) return undefined;
  else bytes = response[0];
  if (bytes.length < 2 || bytes[0] !== HEADER || bytes[1] >= SMALL) return undefined;
  const end = 2 + bytes[1];
  if (end > bytes.length) return undefined;
  for (let at = 2; at < end; ) {
    const isRevision = bytes[at++] === HEADER_REVISION;
    let value = 0;
    let scale = 1;
    let byte = SMALL;
    // The ids before it have ten bytes each, which no number is made of.
    for (; byte >= SMALL && at < end; scale *= SMALL) {
      byte = bytes[at++];
      if (isRevision) value += (byte & 0x7f) * scale;
    }
    if (isRevision) return value;
  }
  return undefined;
}

/** The revision in the header of a response; 0 where there is none. */
export function revisionOf(response: MessageBytes): number {
  return headerRevision({ bytes: headOf(response), at: 0 });
}

/** The revision in a part of a range: the last part has one. 0 where there is none. */
export function revisionOfChunk(part: MessageBytes): number {
  const cursor = { bytes: headOf(part), at: 0 };
  // The part is in one field, and has a header in its own first field.
  if (cursor.bytes[cursor.at++] !== RANGE_RESPONSE) return 0;
  varint(cursor);
  return headerRevision(cursor);
}

function headerRevision(cursor: Cursor): number {
  const end = enterHeader(cursor);
  if (end === undefined) return 0;
  while (cursor.at < end && cursor.at < cursor.bytes.length) {
    const tag = cursor.bytes[cursor.at++];
    const value = varint(cursor);
    if (tag === HEADER_REVISION) return value;
  }
  return 0;
}

/** Whether a response of a watch stream says that a watch was created, or that it has ended. */
export function isAboutWatch(response: MessageBytes): boolean {
  const cursor = { bytes: headOf(response), at: 0 };
  const end = enterHeader(cursor);
  if (end !== undefined) cursor.at = end;
  if (cursor.bytes[cursor.at] === WATCH_ID) {
    cursor.at++;
    varint(cursor);
  }
  const tag = cursor.bytes[cursor.at];
  return tag === WATCH_CREATED || tag === WATCH_CANCELED;
}

/** The first fields of responses, read without decoding what follows. */
import { EMPTY, Reader, WireError } from "@quorate/proto";
import { isPieceSource, type MessageBytes, type UnaryResponse } from "@quorate/rpc";

/** A header is first in a response and shorter than this. */
const HEAD_BYTES = 96;

const HEADER = 0x0a;
const RANGE_RESPONSE = 0x0a;
const HEADER_REVISION = 0x18;
const WATCH_ID = 0x10;
const WATCH_CREATED = 0x18;
const WATCH_CANCELED = 0x20;

/** One for all responses: none is read while another one is. */
const reader = new Reader(EMPTY);

/** The beginning of a message that may be in pieces. */
function headOf(message: MessageBytes): Uint8Array {
  if (message instanceof Uint8Array) return message;
  const first = message[0];
  if (first === undefined || first.length >= HEAD_BYTES || message.length === 1)
    return first ?? EMPTY;
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

/** What `read` finds in the bytes, which the reader begins with; undefined for malformed ones. */
function found<T>(bytes: Uint8Array, read: () => T): T | undefined {
  reader.reset(bytes);
  try {
    return read();
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}

/** The revision in the header at which the reader is; undefined where there is none. */
function headerRevision(): number | undefined {
  if (reader.pos === reader.end || reader.tag() !== HEADER) return undefined;
  reader.enter();
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    if (tag === HEADER_REVISION) return reader.uint64();
    reader.skip(tag, {});
  }
  return undefined;
}

function chunkRevision(): number | undefined {
  // The part is in one field, and has a header in its own first field.
  if (reader.pos === reader.end || reader.tag() !== RANGE_RESPONSE) return undefined;
  reader.varint();
  return headerRevision();
}

function readIsAboutWatch(): boolean {
  let tag = reader.tag();
  for (const before of [HEADER, WATCH_ID]) {
    if (tag !== before) continue;
    reader.skip(tag, {});
    tag = reader.tag();
  }
  return tag === WATCH_CREATED || tag === WATCH_CANCELED;
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
  if (response instanceof Uint8Array) return found(response, headerRevision);
  const first = isPieceSource(response) ? undefined : response[0];
  return first === undefined ? undefined : found(first, headerRevision);
}

/** The revision in the header of a response; 0 where there is none. */
export function revisionOf(response: MessageBytes): number {
  return found(headOf(response), headerRevision) ?? 0;
}

/** The revision in a part of a range: the last part has one. 0 where there is none. */
export function revisionOfChunk(part: MessageBytes): number {
  return found(headOf(part), chunkRevision) ?? 0;
}

/** Whether a response of a watch stream says that a watch was created, or that it has ended. */
export function isAboutWatch(response: MessageBytes): boolean {
  return found(headOf(response), readIsAboutWatch) ?? false;
}

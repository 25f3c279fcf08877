/**
 * What the messages of the two rings mean. A call has a number that the front-end chose; it is free
 * again when the member has sent the call's end, which it does once for each call.
 *
 *     from the front-end              to it
 *     Identity  value: slot           End       detail: status, payload: its text
 *               payload: texts        Response  payload: of a unary call, which ends with it
 *     Unary     detail: method        Message   payload
 *               value: slot           Paused    takes no more messages for now
 *               time: left, or none   Resumed
 *               payload: request      Taken     value: bytes of messages
 *     Stream    the same              Head      detail: HTTP status, payload: texts
 *               without a payload     Answer    detail: HTTP status, value: bytes of texts,
 *     Exchange  value: organizations            payload: texts, then the body
 *               payload: texts        Cut       an HTTP response ends in its middle
 *     Message   payload                   Common    detail: bytes that are before,
 *     HalfClosed                                    value: bytes of targets,
 *     Cancelled                                     payload: targets, before, after
 *     Taken     value: bytes of messages
 *     Again     payload: calls (u32)
 *
 * Each call of Again has sent its last message once more, which had MAX_REPEATED_BYTES at most:
 * clients keep leases alive by the same few bytes.
 *
 * A common message goes to many streams: each target is a call (u32), the bytes of a part (u8), and
 * that part. The call's message is what is before, its part, and what is after.
 *
 * Texts are a list: of each the bytes of its UTF-8 and one more, as u32, then those bytes; 0 stands
 * for undefined. Those of an identity are the address, common name and subject of the client, then
 * the metadata fields that services read, in an order that both ends know. Those of an exchange are
 * method, path, query, address, common name, subject, hash and error of the certificate, whether
 * the connection is secure ("1"), the organizations, and then names and values of headers.
 *
 * Messages of a call are bounded by what the other end has taken: a sender stops at WINDOW_BYTES.
 * An end that is sent more breaks the link.
 */
import { alloc, readU32LE, toUtf8, utf8Length, writeU32LE, writeUtf8 } from "@quorate/proto";
import { type RecordHead, RingError } from "./ring.ts";

export const ToMember = {
  Identity: 1,
  Unary: 2,
  Stream: 3,
  Exchange: 4,
  Message: 5,
  HalfClosed: 6,
  Cancelled: 7,
  Taken: 8,
  Again: 9,
} as const;

export const ToFront = {
  End: 1,
  Response: 2,
  Message: 3,
  Paused: 4,
  Resumed: 5,
  Taken: 6,
  Head: 7,
  Answer: 8,
  Cut: 9,
  Common: 10,
} as const;

/** Of one kind, with nothing else: a record's fields are written at once. */
const head: RecordHead = { kind: 0, detail: 0, call: 0, value: 0, timeMs: 0 };

/** The head of a record to a front-end; it is another one at the next call. */
export function toFront(kind: number, call: number, detail = 0, value = 0): RecordHead {
  head.kind = kind;
  head.detail = detail;
  head.call = call;
  head.value = value;
  return head;
}

/** Identities that a front-end has at a time; a new one takes the slot of the oldest. */
export const MAX_IDENTITIES = 16_384;
/** Calls of a front-end at a time. */
export const MAX_CALLS: number = 128 * 1024;
/** Bytes of a call's messages that the other end has not taken; one message may go beyond. */
export const WINDOW_BYTES: number = 1024 * 1024;
/** The other end is told about taken bytes when there are so many. */
export const TAKEN_STEP_BYTES: number = 64 * 1024;
/** What a message costs of a window beside its bytes. */
export const MESSAGE_BYTES = 32;
/** The longest message that both ends remember, so that it can come again by its call alone. */
export const MAX_REPEATED_BYTES = 32;
/** Calls of one record that have sent their last message again. */
export const MAX_AGAIN_CALLS = 4096;
/** Bytes of a target of a common message before its part. */
export const TARGET_BYTES = 5;
/** The longest part of a target. */
export const MAX_OWN_BYTES = 0xff;
/** The most bytes that may be before the parts. */
export const MAX_BEFORE_BYTES = 0xffff;
/** Stands for no deadline. */
export const NO_TIME = -1;
/** The fields of an identity before its metadata. */
export const PEER_TEXTS = 3;
/** The fields of an exchange before its organizations and headers. */
export const EXCHANGE_TEXTS = 9;
/** The longest message from a front-end beside a request: the head of an exchange. */
export const MAX_HEAD_BYTES: number = 1024 * 1024;
/** More texts than a head within its limits has. */
const MAX_TEXTS = 64 * 1024;

type Text = string | undefined;

/** The bytes of a list of texts. */
export function encodeTexts(texts: readonly Text[]): Uint8Array {
  let size = 0;
  for (const text of texts) size += 4 + (text === undefined ? 0 : utf8Length(text));
  const bytes = alloc(size);
  let at = 0;
  for (const text of texts) {
    const start = at + 4;
    const end = text === undefined ? start : start + writeUtf8(bytes, text, start);
    const length = text === undefined ? 0 : end - start + 1;
    writeU32LE(bytes, at, length);
    at = end;
  }
  return bytes;
}

/** A list of texts again. @throws RingError if the bytes are none */
export function decodeTexts(bytes: Uint8Array): Text[] {
  const texts: Text[] = [];
  for (let at = 0; at < bytes.length; ) {
    const start = at + 4;
    const length = readU32LE(bytes, at);
    const end = length === 0 ? start : start + length - 1;
    if (end > bytes.length || texts.length === MAX_TEXTS) throw new RingError("a list of texts");
    texts.push(length === 0 ? undefined : toUtf8(bytes, start, end));
    at = end;
  }
  return texts;
}

/** A text that must be there. @throws RingError */
export function given(text: Text): string {
  if (text === undefined) throw new RingError("a text is missing");
  return text;
}

/** A message as an end remembers it, to come again; undefined if it is too long for that. */
export function repeatable(message: Uint8Array): Uint8Array | undefined {
  // A copy: what it is a view of is far larger.
  return message.length > MAX_REPEATED_BYTES ? undefined : message.slice();
}

/** What an end may still send of a call's messages. */
export class SendWindow {
  #sentBytes = 0;
  #isBlocked = false;

  /** Bytes that the other end has not taken. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** Counts a message. False if no more may be sent before `taken` returns true. */
  sent(sizeBytes: number): boolean {
    this.#sentBytes += sizeBytes + MESSAGE_BYTES;
    if (this.#sentBytes > WINDOW_BYTES) this.#isBlocked = true;
    return !this.#isBlocked;
  }

  /** The other end has taken bytes. True if more may be sent again. @throws RingError */
  taken(sizeBytes: number): boolean {
    if (sizeBytes > this.#sentBytes) throw new RingError("more is taken than was sent");
    this.#sentBytes -= sizeBytes;
    if (!this.#isBlocked || this.#sentBytes > WINDOW_BYTES / 2) return false;
    this.#isBlocked = false;
    return true;
  }
}

/** What an end has been sent of a call's messages and has not reported as taken. */
export class ReceiveWindow {
  #owedBytes = 0;

  /** Counts a message. */
  count(sizeBytes: number): void {
    this.#owedBytes += sizeBytes + MESSAGE_BYTES;
  }

  /** Counts a message. @throws RingError if the other end should have stopped before */
  received(sizeBytes: number): void {
    if (this.#owedBytes > WINDOW_BYTES) throw new RingError("more messages than the window has");
    this.count(sizeBytes);
  }

  /** Bytes to report now, 0 for none. @param isAll also when they are few */
  take(isAll: boolean): number {
    if (!isAll && this.#owedBytes < TAKEN_STEP_BYTES) return 0;
    const taken = this.#owedBytes;
    this.#owedBytes = 0;
    return taken;
  }
}

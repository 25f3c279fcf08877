/**
 * An HTTP/2 connection (RFC 9113) that carries one stream: what two members need for their messages
 * and no more. Bytes in, events and bytes out; the sockets are elsewhere.
 *
 *     dialler                                                     acceptor
 *     preface, SETTINGS, WINDOW_UPDATE, HEADERS (POST path)  -->
 *                        <--  SETTINGS, its ack, WINDOW_UPDATE, HEADERS (200), or HEADERS, DATA
 *                             with the reason, END_STREAM
 *     DATA, DATA, ... and PING now and then                  -->
 *                        <--  the answer to each PING, WINDOW_UPDATE now and then
 *
 * The streams of Node's own HTTP/2 cost ten times as much for each message as the frames do, and
 * send it a turn of the loop later. Both sides open their windows as far as they go: what waits for
 * the network is bounded by the sender's queue and TCP, not by HTTP/2.
 */
import { alloc, concat, defined, equals, fromLatin1, http2, readU32BE } from "@quorate/proto";
import { FrameError } from "./frames.ts";

/** The first bytes of a client. */
export const PREFACE: Uint8Array = fromLatin1(http2.PREFACE);
export const FRAME_HEAD_BYTES: number = http2.FRAME_HEADER_BYTES;
/** A head, and every other frame but DATA, is no longer. */
export const MAX_HEAD_BYTES = 16 * 1024;

const {
  DEFAULT_MAX_FRAME_BYTES,
  DEFAULT_WINDOW_BYTES,
  decodePlainFields,
  encodePlainFields,
  Flag,
  FrameType,
  frame,
  LARGEST_MAX_FRAME_BYTES,
  MAX_WINDOW_BYTES,
  putFrameHeader,
  Setting,
  settingsFrame,
  windowUpdateFrame,
  words,
} = http2;

const STREAM = 1;
/** How an answer in HTTP/1.1 begins: as a frame it would be longer than any. */
const HTTP1: Uint8Array = fromLatin1("HTTP/1.");

/**
 * The other side speaks HTTP/1.1, or compresses its heads as gRPC does: no member of Quorate, but
 * members of etcd.
 */
export class ForeignHeadError extends FrameError {
  constructor() {
    super("head that no member of Quorate writes; members of etcd do");
  }
}

/** So much is received before the sender's windows are opened again. */
const WINDOW_REFILL_BYTES = 1 << 30;

/** Fields by lower-case name, in order. Characters up to U+00FF. */
export type Fields = Readonly<Record<string, string>>;

/** What comes in. */
export interface TunnelEvents {
  /** The other side's head: of the request, or of the answer. */
  head(fields: Fields): void;
  /** Bytes of the stream, a view of the chunk. */
  data(bytes: Uint8Array): void;
  /** The answer to a ping. */
  pong(): void;
  /** Nothing more will come: the other side has ended the stream, or the connection. */
  ended(): void;
}

/** The frames of one side of a tunnel. */
export class Tunnel {
  readonly #events: TunnelEvents;
  readonly #head = new Uint8Array(FRAME_HEAD_BYTES);
  #headBytes = 0;
  #type = -1;
  #flags = 0;
  #stream = 0;
  /** Payload of the current frame that has not come yet. */
  #awaitedBytes = 0;
  /** Payload of a frame that is not DATA, as far as it has come. */
  #payload: Uint8Array[] = [];
  #paddingBytes = -1;
  #sinceRefillBytes = 0;
  #connectionWindowBytes = DEFAULT_WINDOW_BYTES;
  #streamWindowBytes = DEFAULT_WINDOW_BYTES;
  #initialWindowBytes = DEFAULT_WINDOW_BYTES;
  #maxFrameBytes = DEFAULT_MAX_FRAME_BYTES;
  #replies: Uint8Array[] = [];

  constructor(events: TunnelEvents) {
    this.#events = events;
  }

  /** The dialler's first bytes, with the head of its request. */
  static request(fields: Fields): Uint8Array {
    return concat([
      PREFACE,
      settings(),
      windowUpdateFrame(0, MAX_WINDOW_BYTES - DEFAULT_WINDOW_BYTES),
      headers(fields),
    ]);
  }

  /** The acceptor's first bytes: an answer whose stream stays open. */
  static agreement(fields: Fields): Uint8Array {
    return concat([
      settings(),
      windowUpdateFrame(0, MAX_WINDOW_BYTES - DEFAULT_WINDOW_BYTES),
      headers(fields),
    ]);
  }

  /** The acceptor's first and last bytes: an answer with a text. */
  static refusal(fields: Fields, text: Uint8Array): Uint8Array {
    const body = frame(FrameType.Data, Flag.EndStream, STREAM, text);
    const goAway = frame(FrameType.GoAway, 0, 0, words(STREAM, http2.ErrorCode.NoError));
    return concat([settings(), headers(fields), body, goAway]);
  }

  /** A ping; its reply calls `pong`. */
  static ping(): Uint8Array {
    return frame(FrameType.Ping, 0, 0, new Uint8Array(8));
  }

  /**
   * Puts `bytes` bytes of data into frames: `pieces` are these bytes, with FRAME_HEAD_BYTES free
   * bytes before them in the first piece. Throws FrameError if the other side's window has no space
   * for them.
   */
  wrap(pieces: Uint8Array[], bytes: number): Uint8Array[] {
    if (bytes > Math.min(this.#connectionWindowBytes, this.#streamWindowBytes))
      throw new FrameError("the peer's window is closed");
    const first = defined(pieces[0], "the first piece");
    this.#connectionWindowBytes -= bytes;
    this.#streamWindowBytes -= bytes;
    if (bytes <= this.#maxFrameBytes) {
      putFrameHeader(first, 0, bytes, FrameType.Data, 0, STREAM);
      return pieces;
    }
    const framed: Uint8Array[] = [];
    pieces[0] = first.subarray(FRAME_HEAD_BYTES);
    let leftBytes = bytes;
    let frameLeftBytes = 0;
    for (const piece of pieces) {
      for (let at = 0; at < piece.length; ) {
        if (frameLeftBytes === 0) {
          frameLeftBytes = Math.min(leftBytes, this.#maxFrameBytes);
          const head = alloc(FRAME_HEAD_BYTES);
          putFrameHeader(head, 0, frameLeftBytes, FrameType.Data, 0, STREAM);
          framed.push(head);
        }
        const part = piece.subarray(at, at + frameLeftBytes);
        framed.push(part);
        at += part.length;
        frameLeftBytes -= part.length;
        leftBytes -= part.length;
      }
    }
    return framed;
  }

  /** What has to be written in answer to what came in: acknowledgements and windows. */
  takeReplies(): Uint8Array | undefined {
    if (this.#replies.length === 0) return undefined;
    const replies = concat(this.#replies);
    this.#replies = [];
    return replies;
  }

  /**
   * Takes the next bytes of the connection (an acceptor's without the preface). Throws FrameError
   * for what no HTTP/2 peer sends.
   */
  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length || (this.#type !== -1 && this.#awaitedBytes === 0)) {
      if (this.#type === -1) {
        const part = chunk.subarray(at, at + FRAME_HEAD_BYTES - this.#headBytes);
        this.#head.set(part, this.#headBytes);
        this.#headBytes += part.length;
        at += part.length;
        if (this.#headBytes < FRAME_HEAD_BYTES) return;
        this.#begin();
        continue;
      }
      const part = chunk.subarray(at, at + this.#awaitedBytes);
      at += part.length;
      this.#awaitedBytes -= part.length;
      if (this.#type === FrameType.Data) this.#data(part);
      else if (part.length > 0) this.#payload.push(part);
      if (this.#awaitedBytes === 0) this.#end();
    }
  }

  #begin(): void {
    if (equals(this.#head.subarray(0, HTTP1.length), HTTP1)) throw new ForeignHeadError();
    const word = readU32BE(this.#head, 0);
    this.#awaitedBytes = word >>> 8;
    this.#type = word & 0xff;
    this.#flags = this.#head[4] ?? 0;
    this.#stream = readU32BE(this.#head, 5) & 0x7fff_ffff;
    this.#headBytes = 0;
    this.#payload = [];
    this.#paddingBytes = -1;
    if (this.#type !== FrameType.Data) {
      if (this.#awaitedBytes > MAX_HEAD_BYTES)
        throw new FrameError(`HTTP/2 frame of ${this.#awaitedBytes} bytes, type ${this.#type}`);
      return;
    }
    if (this.#stream !== STREAM) throw new FrameError(`HTTP/2 data for stream ${this.#stream}`);
    this.#sinceRefillBytes += this.#awaitedBytes;
    if (this.#sinceRefillBytes < WINDOW_REFILL_BYTES) return;
    this.#replies.push(
      windowUpdateFrame(0, this.#sinceRefillBytes),
      windowUpdateFrame(STREAM, this.#sinceRefillBytes),
    );
    this.#sinceRefillBytes = 0;
  }

  /** A part of a DATA frame. Members do not pad; who does is understood. */
  #data(part: Uint8Array): void {
    if ((this.#flags & Flag.Padded) === 0) {
      if (part.length > 0) this.#events.data(part);
      return;
    }
    let bytes = part;
    if (this.#paddingBytes === -1) {
      const [paddingBytes] = part;
      if (paddingBytes === undefined) return;
      this.#paddingBytes = paddingBytes;
      bytes = part.subarray(1);
    }
    // What still comes, and of this part what lies beyond the data, is padding.
    const beyond = Math.max(0, this.#paddingBytes - this.#awaitedBytes);
    if (beyond < bytes.length) this.#events.data(bytes.subarray(0, bytes.length - beyond));
  }

  #end(): void {
    const type = this.#type;
    this.#type = -1;
    const payload = concat(this.#payload);
    const isAck = (this.#flags & Flag.Ack) !== 0;
    if (type === FrameType.Settings && !isAck) this.#settings(payload);
    else if (type === FrameType.Ping) this.#ping(payload, isAck);
    else if (type === FrameType.WindowUpdate) this.#windowUpdate(payload);
    else if (type === FrameType.Headers) this.#headers(payload);
    else if (type === FrameType.RstStream || type === FrameType.GoAway) this.#events.ended();
    else if (type === FrameType.PushPromise || type === FrameType.Continuation)
      throw new FrameError(`HTTP/2 frame of type ${type}`);
    if (
      (type === FrameType.Data || type === FrameType.Headers) &&
      (this.#flags & Flag.EndStream) !== 0
    )
      this.#events.ended();
  }

  #settings(payload: Uint8Array): void {
    if (payload.length % 6 !== 0) throw new FrameError("HTTP/2 settings that are cut");
    for (let at = 0; at < payload.length; at += 6) {
      const name = readU32BE(payload, at) >>> 16;
      const value = readU32BE(payload, at + 2);
      if (name === Setting.InitialWindowSize) {
        if (value > MAX_WINDOW_BYTES) throw new FrameError(`HTTP/2 window of ${value} bytes`);
        this.#streamWindowBytes += value - this.#initialWindowBytes;
        this.#initialWindowBytes = value;
      } else if (name === Setting.MaxFrameSize) {
        if (value < DEFAULT_MAX_FRAME_BYTES || value > LARGEST_MAX_FRAME_BYTES)
          throw new FrameError(`HTTP/2 frame size of ${value} bytes`);
        this.#maxFrameBytes = value;
      }
    }
    this.#replies.push(frame(FrameType.Settings, Flag.Ack, 0));
  }

  #ping(payload: Uint8Array, isAck: boolean): void {
    if (payload.length !== 8) throw new FrameError(`HTTP/2 ping of ${payload.length} bytes`);
    if (isAck) {
      this.#events.pong();
      return;
    }
    this.#replies.push(frame(FrameType.Ping, Flag.Ack, 0, payload));
  }

  #windowUpdate(payload: Uint8Array): void {
    if (payload.length !== 4)
      throw new FrameError(`HTTP/2 window update of ${payload.length} bytes`);
    const bytes = readU32BE(payload, 0) & MAX_WINDOW_BYTES;
    if (this.#stream === 0) this.#connectionWindowBytes += bytes;
    else this.#streamWindowBytes += bytes;
    const most = Math.max(this.#connectionWindowBytes, this.#streamWindowBytes);
    if (bytes === 0 || most > MAX_WINDOW_BYTES)
      throw new FrameError(`HTTP/2 window update by ${bytes} bytes`);
  }

  #headers(payload: Uint8Array): void {
    const other = Flag.Padded | Flag.Priority;
    if (
      this.#stream !== STREAM ||
      (this.#flags & Flag.EndHeaders) === 0 ||
      (this.#flags & other) !== 0
    )
      throw new ForeignHeadError();
    const fields = decodePlainFields(payload);
    if (fields === undefined) throw new ForeignHeadError();
    this.#events.head(fields);
  }
}

/**
 * What the first bytes of an HTTP/2 connection are: a member's request for a stream, something
 * else, or not enough to decide.
 */
export type Opening =
  | { readonly kind: "member"; readonly fields: Fields }
  | { readonly kind: "other" }
  | { readonly kind: "unclear" };

/** Looks at the first bytes of a connection, as far as they have come. */
export function openingOf(bytes: Uint8Array): Opening {
  const prefaceBytes = Math.min(bytes.length, PREFACE.length);
  if (!equals(bytes.subarray(0, prefaceBytes), PREFACE.subarray(0, prefaceBytes)))
    return { kind: "other" };
  for (let at = PREFACE.length; at + FRAME_HEAD_BYTES <= bytes.length; ) {
    const word = readU32BE(bytes, at);
    const [length, type, flags] = [word >>> 8, word & 0xff, bytes[at + 4]];
    const next = at + FRAME_HEAD_BYTES + length;
    if (length > MAX_HEAD_BYTES) return { kind: "other" };
    if (type === FrameType.Headers) {
      if (readU32BE(bytes, at + 5) !== STREAM || flags !== Flag.EndHeaders)
        return { kind: "other" };
      if (next > bytes.length) return { kind: "unclear" };
      const fields = decodePlainFields(bytes.subarray(at + FRAME_HEAD_BYTES, next));
      return fields === undefined ? { kind: "other" } : { kind: "member", fields };
    }
    if (type !== FrameType.Settings && type !== FrameType.WindowUpdate) return { kind: "other" };
    at = next;
  }
  return bytes.length > 2 * MAX_HEAD_BYTES ? { kind: "other" } : { kind: "unclear" };
}

function settings(): Uint8Array {
  return settingsFrame(
    [Setting.HeaderTableSize, 0],
    [Setting.EnablePush, 0],
    [Setting.MaxConcurrentStreams, 1],
    [Setting.InitialWindowSize, MAX_WINDOW_BYTES],
    [Setting.MaxFrameSize, LARGEST_MAX_FRAME_BYTES],
  );
}

function headers(fields: Fields): Uint8Array {
  const block = encodePlainFields(Object.entries(fields));
  return frame(FrameType.Headers, Flag.EndHeaders, STREAM, block);
}

/**
 * HTTP/2 (RFC 9113) as bytes: its frames, written and split again, its numbers, and header fields
 * in the plainest form that HPACK has (RFC 7541 section 6.2.2): each a literal that enters no
 * table, its name spelt out, and neither part Huffman coded. Members write the head of a stream of
 * messages so; what is written otherwise is no member's.
 */
import { concat, EMPTY, fromLatin1, toLatin1, writeU32BE } from "../wire/bytes.ts";

/** Writes a frame's header at bytes[at], and returns the offset behind it. */
export function putFrameHeader(
  bytes: Uint8Array,
  at: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): number {
  bytes[at] = length >>> 16;
  bytes[at + 1] = length >>> 8;
  bytes[at + 2] = length;
  bytes[at + 3] = type;
  bytes[at + 4] = flags;
  bytes[at + 5] = streamId >>> 24;
  bytes[at + 6] = streamId >>> 16;
  bytes[at + 7] = streamId >>> 8;
  bytes[at + 8] = streamId;
  return at + FRAME_HEADER_BYTES;
}

/** A frame with a copy of its payload. */
export function frame(
  type: number,
  flags: number,
  streamId: number,
  payload: Uint8Array = EMPTY,
): Uint8Array {
  const bytes = new Uint8Array(FRAME_HEADER_BYTES + payload.length);
  bytes.set(payload, putFrameHeader(bytes, 0, payload.length, type, flags, streamId));
  return bytes;
}

/** SETTINGS: pairs of an id (Setting) and its value. */
export function settingsFrame(
  ...settings: readonly (readonly [id: number, value: number])[]
): Uint8Array {
  const payload = new Uint8Array(6 * settings.length);
  for (const [i, [id, value]] of settings.entries()) {
    payload[6 * i] = id >>> 8;
    payload[6 * i + 1] = id;
    writeU32BE(payload, value, 6 * i + 2);
  }
  return frame(FrameType.Settings, 0, 0, payload);
}

/** @param streamId 0 for the connection */
export function windowUpdateFrame(streamId: number, incrementBytes: number): Uint8Array {
  return frame(FrameType.WindowUpdate, 0, streamId, words(incrementBytes));
}

/** 32-bit words, big-endian: the payload of RST_STREAM, and the beginning of GOAWAY. */
export function words(...values: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(4 * values.length);
  for (const [i, value] of values.entries()) writeU32BE(bytes, value, 4 * i);
  return bytes;
}

/** Section 6. */
export const FrameType = {
  Data: 0,
  Headers: 1,
  Priority: 2,
  RstStream: 3,
  Settings: 4,
  PushPromise: 5,
  Ping: 6,
  GoAway: 7,
  WindowUpdate: 8,
  Continuation: 9,
} as const;

export const Flag = {
  /** DATA, HEADERS: the last frame of its kind on the stream. */
  EndStream: 0x1,
  /** SETTINGS, PING. */
  Ack: 0x1,
  EndHeaders: 0x4,
  Padded: 0x8,
  Priority: 0x20,
} as const;

/** Section 6.5.2. */
export const Setting = {
  HeaderTableSize: 1,
  EnablePush: 2,
  MaxConcurrentStreams: 3,
  InitialWindowSize: 4,
  MaxFrameSize: 5,
  MaxHeaderListSize: 6,
} as const;

/** Section 7. */
export const ErrorCode = {
  NoError: 0,
  ProtocolError: 1,
  InternalError: 2,
  FlowControlError: 3,
  SettingsTimeout: 4,
  StreamClosed: 5,
  FrameSizeError: 6,
  RefusedStream: 7,
  Cancel: 8,
  CompressionError: 9,
  ConnectError: 10,
  EnhanceYourCalm: 11,
} as const;

/** What a client's connection opens with (section 3.4), one char a byte. */
export const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** Length, type, flags and stream of each frame (section 4.1). */
export const FRAME_HEADER_BYTES = 9;

/**
 * The longest payload before anyone has allowed more, and the most that we allow: larger frames
 * only make a connection's calls wait for each other.
 */
export const DEFAULT_MAX_FRAME_BYTES = 16_384;
export const LARGEST_MAX_FRAME_BYTES = 16_777_215;

/** The windows before anyone has said otherwise, and the largest that there are (section 6.9). */
export const DEFAULT_WINDOW_BYTES = 65_535;
export const MAX_WINDOW_BYTES = 2 ** 31 - 1;

export const MAX_STREAM_ID = 2 ** 31 - 1;

/** Takes the frames of a connection. */
export interface FrameHandler {
  /**
   * One complete frame; its payload is bytes[start, start + length). Returns false to stop behind
   * it.
   */
  frame(
    bytes: Uint8Array,
    start: number,
    length: number,
    type: number,
    flags: number,
    streamId: number,
  ): boolean;
  /** A frame is longer than allowed. No more calls follow. */
  frameTooLong(length: number, type: number, streamId: number): void;
}

/**
 * Splits the bytes of a connection into frames (section 4.1). A frame that arrives in one chunk is
 * passed on in place, without a copy.
 */
export class FrameSplitter {
  readonly #handler: FrameHandler;
  #goesOn = true;
  /**
   * The beginning of an incomplete frame: the first #have bytes of its header, or of the whole
   * frame.
   */
  #part: Uint8Array | undefined;
  #have = 0;
  /** Number of frames that did not arrive in one chunk. */
  partsBegun = 0;

  constructor(handler: FrameHandler) {
    this.#handler = handler;
  }

  /** Whether the last chunk ended within a frame. */
  get midFrame(): boolean {
    return this.#part !== undefined;
  }

  /**
   * Processes chunk[at, end of chunk), which must not change any more. Returns where the handler
   * has had it stop; the chunk's length where it has not.
   */
  push(chunk: Uint8Array, at: number): number {
    const end = chunk.length;
    this.#goesOn = true;
    if (this.#part !== undefined) at = this.#complete(chunk, at);
    while (this.#goesOn && end - at >= FRAME_HEADER_BYTES) {
      const length = (chunk[at] << 16) | (chunk[at + 1] << 8) | chunk[at + 2];
      if (length > DEFAULT_MAX_FRAME_BYTES) {
        this.#handler.frameTooLong(length, chunk[at + 3], streamIdAt(chunk, at));
        return end;
      }
      const start = at + FRAME_HEADER_BYTES;
      if (start + length > end) break;
      this.#goesOn = this.#handler.frame(
        chunk,
        start,
        length,
        chunk[at + 3],
        chunk[at + 4],
        streamIdAt(chunk, at),
      );
      at = start + length;
    }
    if (!this.#goesOn || at === end) return at;
    this.#keep(chunk, at);
    return end;
  }

  #keep(chunk: Uint8Array, at: number): void {
    const have = chunk.length - at;
    const whole =
      have < FRAME_HEADER_BYTES ? 0 : (chunk[at] << 16) | (chunk[at + 1] << 8) | chunk[at + 2];
    this.#part = new Uint8Array(FRAME_HEADER_BYTES + whole);
    this.#part.set(chunk.subarray(at));
    this.#have = have;
    this.partsBegun++;
  }

  /**
   * Continues an incomplete frame. Returns the offset of the next frame, or the chunk's length if
   * that is used up.
   */
  #complete(chunk: Uint8Array, at: number): number {
    let part = this.#part!;
    for (;;) {
      const n = Math.min(part.length - this.#have, chunk.length - at);
      part.set(chunk.subarray(at, at + n), this.#have);
      this.#have += n;
      at += n;
      if (this.#have < part.length) return at;
      const length = (part[0] << 16) | (part[1] << 8) | part[2];
      if (part.length === FRAME_HEADER_BYTES + length) {
        this.#part = undefined;
        this.#goesOn = this.#handler.frame(
          part,
          FRAME_HEADER_BYTES,
          length,
          part[3],
          part[4],
          streamIdAt(part, 0),
        );
        return at;
      }
      if (length > DEFAULT_MAX_FRAME_BYTES) {
        this.#handler.frameTooLong(length, part[3], streamIdAt(part, 0));
        this.#goesOn = false;
        return chunk.length;
      }
      const larger = new Uint8Array(FRAME_HEADER_BYTES + length);
      larger.set(part);
      this.#part = part = larger;
    }
  }
}

function streamIdAt(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at + 5] & 0x7f) << 24) | (bytes[at + 6] << 16) | (bytes[at + 7] << 8) | bytes[at + 8]
  );
}

/** A length that fits the seven bits of its first byte is below this. */
const PREFIX_MAX = 0x7f;
/** Bytes of a length after its first one: more than any field here needs. */
const MAX_LENGTH_BYTES = 3;

/** Fields as an HPACK block. Names are in lower case; characters up to U+00FF. */
export function encodePlainFields(
  fields: Iterable<readonly [name: string, value: string]>,
): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const [name, value] of fields)
    parts.push(Uint8Array.of(0), encodeText(name), encodeText(value));
  return concat(parts);
}

function encodeText(text: string): Uint8Array {
  const bytes = fromLatin1(text);
  const length = [Math.min(bytes.length, PREFIX_MAX)];
  if (bytes.length >= PREFIX_MAX) {
    let rest = bytes.length - PREFIX_MAX;
    for (; rest >= 0x80; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
    length.push(rest);
  }
  return concat([Uint8Array.from(length), bytes]);
}

/**
 * The fields of an HPACK block, or undefined if it is damaged or not in the plain form. Of a name
 * that comes twice, the last.
 */
export function decodePlainFields(block: Uint8Array): Record<string, string> | undefined {
  const fields: Record<string, string> = {};
  let at = 0;
  const text = (): string | undefined => {
    let length = block[at++];
    if (length === undefined || length > PREFIX_MAX) return undefined;
    if (length === PREFIX_MAX) {
      for (let i = 0, more = true; more; i++) {
        const byte = block[at++];
        if (byte === undefined || i === MAX_LENGTH_BYTES) return undefined;
        length += (byte & 0x7f) << (7 * i);
        more = byte > 0x7f;
      }
    }
    at += length;
    return at > block.length ? undefined : toLatin1(block, at - length, at);
  };
  while (at < block.length) {
    if (block[at++] !== 0) return undefined;
    const name = text();
    const value = name === undefined ? undefined : text();
    if (name === undefined || value === undefined) return undefined;
    fields[name] = value;
  }
  return fields;
}

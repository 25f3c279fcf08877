/** Frames of HTTP/2 (RFC 9113 section 6) as bytes. */
import { EMPTY, writeU32BE } from "../wire/bytes.ts";
import { FRAME_HEADER_BYTES, FrameType } from "./numbers.ts";

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

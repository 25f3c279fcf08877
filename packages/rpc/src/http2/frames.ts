/** Writing frames (RFC 9113 section 6). */
import { fromLatin1 } from "@quorate/proto";
import { DEFAULT_MAX_FRAME_BYTES, Flag, FRAME_HEADER_BYTES, FrameType } from "./constants.ts";
import type { Output } from "./output.ts";

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
  return putU32(bytes, at + 5, streamId);
}

/** Writes the low 32 bits of value, and returns the offset behind them. */
export function putU32(bytes: Uint8Array, at: number, value: number): number {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
  return at + 4;
}

/** Writes the header of a frame whose payload follows. */
function header(out: Output, length: number, type: number, flags: number, streamId: number): void {
  const at = out.reserve(FRAME_HEADER_BYTES);
  putFrameHeader(out.bytes, at, length, type, flags, streamId);
}

/** Writes a header block, in as many frames as it needs. */
export function writeHeaders(
  out: Output,
  streamId: number,
  block: Uint8Array,
  endStream: boolean,
): void {
  let start = 0;
  do {
    const end = Math.min(block.length, start + DEFAULT_MAX_FRAME_BYTES);
    const type = start === 0 ? FrameType.Headers : FrameType.Continuation;
    const flags =
      (end === block.length ? Flag.EndHeaders : 0) |
      (start === 0 && endStream ? Flag.EndStream : 0);
    header(out, end - start, type, flags, streamId);
    out.append(block, start, end);
    start = end;
  } while (start < block.length);
}

/** Writes the header of a DATA frame whose payload follows. */
export function writeDataHeader(
  out: Output,
  streamId: number,
  length: number,
  endStream: boolean,
): void {
  header(out, length, FrameType.Data, endStream ? Flag.EndStream : 0, streamId);
}

/** Writes settings: pairs of an id (Setting) and its value. */
export function writeSettings(
  out: Output,
  settings: readonly (readonly [id: number, value: number])[],
): void {
  header(out, settings.length * 6, FrameType.Settings, 0, 0);
  let at = out.reserve(settings.length * 6);
  for (const [id, value] of settings) {
    out.bytes[at] = id >>> 8;
    out.bytes[at + 1] = id;
    at = putU32(out.bytes, at + 2, value);
  }
}

export function writeSettingsAck(out: Output): void {
  header(out, 0, FrameType.Settings, Flag.Ack, 0);
}

/** @param payload holds the eight bytes from `start` on. */
export function writePing(out: Output, payload: Uint8Array, start: number, ack: boolean): void {
  header(out, 8, FrameType.Ping, ack ? Flag.Ack : 0, 0);
  out.append(payload, start, start + 8);
}

export function writeRstStream(out: Output, streamId: number, code: number): void {
  header(out, 4, FrameType.RstStream, 0, streamId);
  const at = out.reserve(4);
  putU32(out.bytes, at, code);
}

/** @param reason a short text, one char a byte. */
export function writeGoAway(out: Output, lastStreamId: number, code: number, reason: string): void {
  header(out, 8 + reason.length, FrameType.GoAway, 0, 0);
  const at = out.reserve(8);
  putU32(out.bytes, putU32(out.bytes, at, lastStreamId), code);
  out.append(fromLatin1(reason), 0, reason.length);
}

/** @param streamId 0 for the connection. */
export function writeWindowUpdate(out: Output, streamId: number, incrementBytes: number): void {
  header(out, 4, FrameType.WindowUpdate, 0, streamId);
  const at = out.reserve(4);
  putU32(out.bytes, at, incrementBytes);
}

/** Reads 32 bits, big-endian, unsigned. */
export function readU32(bytes: Uint8Array, at: number): number {
  return ((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]) >>> 0;
}

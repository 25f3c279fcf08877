/** Writing frames (RFC 9113 section 6). */
import { concat, fromLatin1, http2, writeU32BE } from "@quorate/proto";
import { DEFAULT_MAX_FRAME_BYTES, Flag, FRAME_HEADER_BYTES, FrameType } from "./constants.ts";
import type { Output } from "./output.ts";

export const { putFrameHeader } = http2;
const { frame, settingsFrame, words } = http2;

/** Writes the header of a frame whose payload follows. */
function header(out: Output, length: number, type: number, flags: number, streamId: number): void {
  const at = out.reserve(FRAME_HEADER_BYTES);
  putFrameHeader(out.bytes, at, length, type, flags, streamId);
}

function append(out: Output, bytes: Uint8Array): void {
  out.append(bytes, 0, bytes.length);
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
  append(out, settingsFrame(...settings));
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
  append(out, frame(FrameType.RstStream, 0, streamId, words(code)));
}

/** @param reason a short text, one char a byte. */
export function writeGoAway(out: Output, lastStreamId: number, code: number, reason: string): void {
  const payload = concat([words(lastStreamId, code), fromLatin1(reason)]);
  append(out, frame(FrameType.GoAway, 0, 0, payload));
}

/** @param streamId 0 for the connection. */
export function writeWindowUpdate(out: Output, streamId: number, incrementBytes: number): void {
  header(out, 4, FrameType.WindowUpdate, 0, streamId);
  const at = out.reserve(4);
  writeU32BE(out.bytes, incrementBytes, at);
}

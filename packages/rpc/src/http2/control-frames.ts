/**
 * The frames that carry no part of a message: PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY and
 * WINDOW_UPDATE.
 */
import { readU32BE } from "@quorate/proto";
import type { ConnectionState } from "./connection-state.ts";
import {
  DEFAULT_MAX_FRAME_BYTES,
  ErrorCode,
  Flag,
  LARGEST_MAX_FRAME_BYTES,
  MAX_STREAM_ID,
  MAX_WINDOW_BYTES,
  Setting,
} from "./constants.ts";
import { writePing, writeSettingsAck } from "./output.ts";

/**
 * The payload of the PING behind the first GOAWAY; its acknowledgement shows that the client
 * received the GOAWAY.
 */
export const DRAIN_PING: Uint8Array = Uint8Array.of(0x64, 0x72, 0x61, 0x69, 0x6e, 0, 0, 1);

export function onPriority(
  state: ConnectionState,
  bytes: Uint8Array,
  start: number,
  length: number,
  streamId: number,
): boolean {
  if (streamId === 0) return state.fail(ErrorCode.ProtocolError, "PRIORITY of the connection");
  if (length !== 5) return state.rejectFrame(streamId, ErrorCode.FrameSizeError);
  if ((readU32BE(bytes, start) & MAX_STREAM_ID) === streamId)
    return state.rejectFrame(streamId, ErrorCode.ProtocolError);
  return state.idle(1);
}

export function onRstStream(state: ConnectionState, length: number, streamId: number): boolean {
  if (streamId === 0) return state.fail(ErrorCode.ProtocolError, "RST_STREAM of the connection");
  if (length !== 4)
    return state.fail(ErrorCode.FrameSizeError, "RST_STREAM does not have four bytes");
  if (state.streams.isIdle(streamId))
    return state.fail(ErrorCode.ProtocolError, "RST_STREAM on an idle stream");
  const stream = state.streams.get(streamId);
  if (stream === undefined) return state.idle(1);
  state.counters.resetsReceived++;
  state.remove(stream);
  state.streams.addEnded(streamId);
  stream.consumer.aborted();
  return state.chargeReset();
}

export function onSettings(
  state: ConnectionState,
  bytes: Uint8Array,
  start: number,
  length: number,
  flags: number,
  streamId: number,
): boolean {
  if (streamId !== 0) return state.fail(ErrorCode.ProtocolError, "SETTINGS on a stream");
  if ((flags & Flag.Ack) !== 0) {
    return length === 0
      ? state.idle(1)
      : state.fail(ErrorCode.FrameSizeError, "an acknowledgement of SETTINGS has a payload");
  }
  if (length % 6 !== 0)
    return state.fail(ErrorCode.FrameSizeError, "a setting does not have six bytes");
  let windowBytes = state.sender.streamWindowBytes;
  for (let at = start; at < start + length; at += 6) {
    const id = (bytes[at] << 8) | bytes[at + 1];
    const value = readU32BE(bytes, at + 2);
    if (id === Setting.InitialWindowSize) windowBytes = value;
    if (!applySetting(state, id, value)) return false;
  }
  // DATA that the new windows release comes behind the acknowledgement.
  writeSettingsAck(state.out);
  // Visits every stream, so only for the last of several sizes.
  if (!state.sender.setStreamWindow(windowBytes, state.streams.values())) {
    return state.fail(ErrorCode.FlowControlError, "a window is too large");
  }
  return state.idle(1 + Math.floor(length / 60) + Math.floor(state.streams.size / 100));
}

function applySetting(state: ConnectionState, id: number, value: number): boolean {
  switch (id) {
    case Setting.HeaderTableSize:
      state.sender.encoder.limitTable(value);
      return true;
    case Setting.EnablePush:
      return value <= 1 || state.fail(ErrorCode.ProtocolError, "ENABLE_PUSH is neither 0 nor 1");
    case Setting.InitialWindowSize:
      return (
        value <= MAX_WINDOW_BYTES || state.fail(ErrorCode.FlowControlError, "a window is too large")
      );
    case Setting.MaxFrameSize: {
      const isInRange = value >= DEFAULT_MAX_FRAME_BYTES && value <= LARGEST_MAX_FRAME_BYTES;
      return isInRange || state.fail(ErrorCode.ProtocolError, "MAX_FRAME_SIZE is out of range");
    }
    default:
      return true;
  }
}

export function onPing(
  state: ConnectionState,
  bytes: Uint8Array,
  start: number,
  length: number,
  flags: number,
  streamId: number,
): boolean {
  if (streamId !== 0) return state.fail(ErrorCode.ProtocolError, "PING on a stream");
  if (length !== 8) return state.fail(ErrorCode.FrameSizeError, "PING does not have eight bytes");
  if ((flags & Flag.Ack) !== 0) {
    const isOfDrain = DRAIN_PING.every((byte, i) => byte === bytes[start + i]);
    if (state.drainingMs !== undefined && isOfDrain) state.finishDrain();
    return !state.ending && state.idle(1);
  }
  writePing(state.out, bytes, start, true);
  if (!state.keepAlive.pinged(state.nowMs, state.streams.size)) {
    state.counters.pingFloods++;
    return state.end(ErrorCode.EnhanceYourCalm, "too_many_pings");
  }
  return state.idle(1);
}

export function onGoAway(state: ConnectionState, length: number, streamId: number): boolean {
  if (streamId !== 0) return state.fail(ErrorCode.ProtocolError, "GOAWAY on a stream");
  if (length < 8) return state.fail(ErrorCode.FrameSizeError, "GOAWAY is too short");
  return state.idle(1);
}

export function onWindowUpdate(
  state: ConnectionState,
  bytes: Uint8Array,
  start: number,
  length: number,
  streamId: number,
): boolean {
  if (length !== 4)
    return state.fail(ErrorCode.FrameSizeError, "WINDOW_UPDATE does not have four bytes");
  const increment = readU32BE(bytes, start) & MAX_WINDOW_BYTES;
  if (streamId === 0) {
    if (increment === 0) return state.fail(ErrorCode.ProtocolError, "WINDOW_UPDATE by 0");
    if (!state.sender.openWindow(increment))
      return state.fail(ErrorCode.FlowControlError, "a window is too large");
    return state.idle(1);
  }
  if (state.streams.isIdle(streamId))
    return state.fail(ErrorCode.ProtocolError, "WINDOW_UPDATE on an idle stream");
  const stream = state.streams.get(streamId);
  if (stream === undefined) return state.idle(1);
  if (increment === 0) return state.streamError(stream, ErrorCode.ProtocolError);
  if (!state.sender.openStreamWindow(stream, increment))
    return state.streamError(stream, ErrorCode.FlowControlError);
  return state.idle(1);
}

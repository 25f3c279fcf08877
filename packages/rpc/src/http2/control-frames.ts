/**
 * The frames that carry no part of a message: PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY and
 * WINDOW_UPDATE.
 */
import { readU32BE } from "@quorate/proto";
import type { Http2Connection } from "./connection.ts";
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
  connection: Http2Connection,
  bytes: Uint8Array,
  start: number,
  length: number,
  streamId: number,
): boolean {
  if (streamId === 0) return connection.fail(ErrorCode.ProtocolError, "PRIORITY of the connection");
  if (length !== 5) return connection.rejectFrame(streamId, ErrorCode.FrameSizeError);
  if ((readU32BE(bytes, start) & MAX_STREAM_ID) === streamId)
    return connection.rejectFrame(streamId, ErrorCode.ProtocolError);
  return connection.idle(1);
}

export function onRstStream(
  connection: Http2Connection,
  length: number,
  streamId: number,
): boolean {
  if (streamId === 0)
    return connection.fail(ErrorCode.ProtocolError, "RST_STREAM of the connection");
  if (length !== 4)
    return connection.fail(ErrorCode.FrameSizeError, "RST_STREAM does not have four bytes");
  if (connection.streams.isIdle(streamId))
    return connection.fail(ErrorCode.ProtocolError, "RST_STREAM on an idle stream");
  const stream = connection.streams.get(streamId);
  if (stream === undefined) return connection.idle(1);
  connection.counters.resetsReceived++;
  connection.remove(stream);
  connection.streams.addEnded(streamId);
  stream.consumer.aborted();
  return connection.chargeReset();
}

export function onSettings(
  connection: Http2Connection,
  bytes: Uint8Array,
  start: number,
  length: number,
  flags: number,
  streamId: number,
): boolean {
  if (streamId !== 0) return connection.fail(ErrorCode.ProtocolError, "SETTINGS on a stream");
  if ((flags & Flag.Ack) !== 0) {
    return length === 0
      ? connection.idle(1)
      : connection.fail(ErrorCode.FrameSizeError, "an acknowledgement of SETTINGS has a payload");
  }
  if (length % 6 !== 0)
    return connection.fail(ErrorCode.FrameSizeError, "a setting does not have six bytes");
  let windowBytes = connection.sender.streamWindowBytes;
  for (let at = start; at < start + length; at += 6) {
    const id = (bytes[at] << 8) | bytes[at + 1];
    const value = readU32BE(bytes, at + 2);
    if (id === Setting.InitialWindowSize) windowBytes = value;
    if (!applySetting(connection, id, value)) return false;
  }
  // DATA that the new windows release comes behind the acknowledgement.
  writeSettingsAck(connection.out);
  // Visits every stream, so only for the last of several sizes.
  if (!connection.sender.setStreamWindow(windowBytes, connection.streams.values())) {
    return connection.fail(ErrorCode.FlowControlError, "a window is too large");
  }
  return connection.idle(1 + Math.floor(length / 60) + Math.floor(connection.streams.size / 100));
}

function applySetting(connection: Http2Connection, id: number, value: number): boolean {
  switch (id) {
    case Setting.HeaderTableSize:
      connection.sender.encoder.limitTable(value);
      return true;
    case Setting.EnablePush:
      return (
        value <= 1 || connection.fail(ErrorCode.ProtocolError, "ENABLE_PUSH is neither 0 nor 1")
      );
    case Setting.InitialWindowSize:
      return (
        value <= MAX_WINDOW_BYTES ||
        connection.fail(ErrorCode.FlowControlError, "a window is too large")
      );
    case Setting.MaxFrameSize: {
      const isInRange = value >= DEFAULT_MAX_FRAME_BYTES && value <= LARGEST_MAX_FRAME_BYTES;
      return (
        isInRange || connection.fail(ErrorCode.ProtocolError, "MAX_FRAME_SIZE is out of range")
      );
    }
    default:
      return true;
  }
}

export function onPing(
  connection: Http2Connection,
  bytes: Uint8Array,
  start: number,
  length: number,
  flags: number,
  streamId: number,
): boolean {
  if (streamId !== 0) return connection.fail(ErrorCode.ProtocolError, "PING on a stream");
  if (length !== 8)
    return connection.fail(ErrorCode.FrameSizeError, "PING does not have eight bytes");
  if ((flags & Flag.Ack) !== 0) {
    const isOfDrain = DRAIN_PING.every((byte, i) => byte === bytes[start + i]);
    if (connection.drainingMs !== undefined && isOfDrain) connection.finishDrain();
    return !connection.ending && connection.idle(1);
  }
  writePing(connection.out, bytes, start, true);
  if (!connection.keepAlive.pinged(connection.nowMs, connection.streams.size)) {
    connection.counters.pingFloods++;
    return connection.end(ErrorCode.EnhanceYourCalm, "too_many_pings");
  }
  return connection.idle(1);
}

export function onGoAway(connection: Http2Connection, length: number, streamId: number): boolean {
  if (streamId !== 0) return connection.fail(ErrorCode.ProtocolError, "GOAWAY on a stream");
  if (length < 8) return connection.fail(ErrorCode.FrameSizeError, "GOAWAY is too short");
  return connection.idle(1);
}

export function onWindowUpdate(
  connection: Http2Connection,
  bytes: Uint8Array,
  start: number,
  length: number,
  streamId: number,
): boolean {
  if (length !== 4)
    return connection.fail(ErrorCode.FrameSizeError, "WINDOW_UPDATE does not have four bytes");
  const increment = readU32BE(bytes, start) & MAX_WINDOW_BYTES;
  if (streamId === 0) {
    if (increment === 0) return connection.fail(ErrorCode.ProtocolError, "WINDOW_UPDATE by 0");
    if (!connection.sender.openWindow(increment))
      return connection.fail(ErrorCode.FlowControlError, "a window is too large");
    return connection.idle(1);
  }
  if (connection.streams.isIdle(streamId))
    return connection.fail(ErrorCode.ProtocolError, "WINDOW_UPDATE on an idle stream");
  const stream = connection.streams.get(streamId);
  if (stream === undefined) return connection.idle(1);
  if (increment === 0) return connection.streamError(stream, ErrorCode.ProtocolError);
  if (!connection.sender.openStreamWindow(stream, increment))
    return connection.streamError(stream, ErrorCode.FlowControlError);
  return connection.idle(1);
}

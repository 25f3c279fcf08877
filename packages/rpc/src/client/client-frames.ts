/** The frames that a server sends to a client (RFC 9113 section 6). */
import { GrpcCode, readU32BE } from "@quorate/proto";
import { HpackDecoder } from "../hpack/decoder.ts";
import { DEFAULT_TABLE_BYTES } from "../hpack/encoder.ts";
import { HpackError } from "../hpack/errors.ts";
import {
  DEFAULT_MAX_FRAME_BYTES,
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  Flag,
  FrameType,
  MAX_STREAM_ID,
  MAX_WINDOW_BYTES,
  Setting,
} from "../http2/constants.ts";
import type { FrameHandler } from "../http2/frame-splitter.ts";
import { HeaderBlock } from "../http2/header-block.ts";
import { writePing, writeSettingsAck, writeWindowUpdate } from "../http2/output.ts";
import type { Status } from "../service.ts";
import type { ClientState } from "./client-state.ts";

/** RFC 9113 section 7, for texts. */
const CODE_NAMES: readonly string[] = Object.keys(ErrorCode);

export class ClientFrames implements FrameHandler {
  readonly #state: ClientState;
  readonly #decoder: HpackDecoder;
  #block: HeaderBlock | undefined;
  #receiveWindowBytes: number;
  #uncreditedBytes = 0;

  constructor(state: ClientState) {
    this.#state = state;
    this.#decoder = new HpackDecoder(DEFAULT_TABLE_BYTES, state.limits.maxHeaderListBytes);
    this.#receiveWindowBytes = Math.max(state.limits.connectionWindowBytes, DEFAULT_WINDOW_BYTES);
  }

  /** @internal Called by the splitter. */
  frame(
    bytes: Uint8Array,
    start: number,
    length: number,
    type: number,
    flags: number,
    streamId: number,
  ): boolean {
    if (this.#block !== undefined && type !== FrameType.Continuation)
      return this.#state.fail(ErrorCode.ProtocolError, "a header block is interrupted");
    if (!this.#state.isSettled && (type !== FrameType.Settings || (flags & Flag.Ack) !== 0))
      return this.#state.fail(ErrorCode.ProtocolError, "the server there does not speak gRPC");
    switch (type) {
      case FrameType.Data:
        return this.#data(bytes, start, length, flags, streamId);
      case FrameType.Headers:
        return this.#headers(bytes, start, length, flags, streamId);
      case FrameType.Continuation:
        return this.#continuation(bytes, start, length, flags, streamId);
      case FrameType.RstStream:
        return this.#reset(bytes, start, length, streamId);
      case FrameType.Settings:
        return this.#settings(bytes, start, length, flags);
      case FrameType.Ping:
        if (length !== 8)
          return this.#state.fail(ErrorCode.FrameSizeError, "PING has not eight bytes");
        if ((flags & Flag.Ack) === 0) writePing(this.#state.out, bytes, start, true);
        return true;
      case FrameType.GoAway:
        return this.#goAway(bytes, start, length);
      case FrameType.WindowUpdate:
        return this.#windowUpdate(bytes, start, length, streamId);
      case FrameType.PushPromise:
        return this.#state.fail(ErrorCode.ProtocolError, "the server pushes");
      default:
        return true;
    }
  }

  /** @internal Called by the splitter. */
  frameTooLong(): void {
    this.#state.fail(ErrorCode.FrameSizeError, `a frame is longer than ${DEFAULT_MAX_FRAME_BYTES}`);
  }
  #data(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    this.#receiveWindowBytes -= length;
    if (this.#receiveWindowBytes < 0)
      return this.#state.fail(ErrorCode.FlowControlError, "the connection's window is overrun");
    // A stream's window bounds what it may hold; the connection's must not make others wait.
    this.#creditConnection(length);
    let end = start + length;
    if ((flags & Flag.Padded) !== 0) {
      end -= length === 0 ? 1 : bytes[start] + 1;
      if (end < start) return this.#state.fail(ErrorCode.ProtocolError, "padding is too long");
      bytes = bytes.subarray(start + 1, end + 1);
    } else bytes = bytes.subarray(start, end);
    const call = this.#state.calls.get(streamId);
    if (call === undefined) return this.#isKnown(streamId);
    const { stream } = call;
    stream.receiveWindowBytes -= length;
    if (stream.receiveWindowBytes < 0 || stream.remoteEnded)
      return this.#state.fail(ErrorCode.FlowControlError, "a stream's window is overrun");
    stream.remoteEnded = (flags & Flag.EndStream) !== 0;
    // Padding is consumed by its arrival.
    if (bytes.length < length) this.#state.credit(stream, length - bytes.length);
    if (bytes.length > 0) call.data(bytes);
    if (stream.remoteEnded && !call.isEnded) call.endedPlainly();
    return !this.#state.ending;
  }

  #creditConnection(sizeBytes: number): void {
    this.#uncreditedBytes += sizeBytes;
    if (this.#uncreditedBytes * 2 < this.#state.limits.connectionWindowBytes) return;
    writeWindowUpdate(this.#state.out, 0, this.#uncreditedBytes);
    this.#receiveWindowBytes += this.#uncreditedBytes;
    this.#uncreditedBytes = 0;
  }

  #headers(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    let from = start;
    let to = start + length;
    if ((flags & Flag.Padded) !== 0) to -= length === 0 ? 1 : bytes[from++];
    if ((flags & Flag.Priority) !== 0) from += 5;
    if (to < from) return this.#state.fail(ErrorCode.ProtocolError, "HEADERS are too short");
    const isEnd = (flags & Flag.EndStream) !== 0;
    if ((flags & Flag.EndHeaders) !== 0) return this.#complete(streamId, bytes, from, to, isEnd);
    this.#block = new HeaderBlock(streamId, isEnd, false, 0);
    this.#block.append(bytes, from, to);
    return true;
  }

  #continuation(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    const block = this.#block;
    if (block === undefined || block.streamId !== streamId)
      return this.#state.fail(ErrorCode.ProtocolError, "CONTINUATION without an open header block");
    block.append(bytes, start, start + length);
    const { maxContinuationFrames, maxHeaderListBytes } = this.#state.limits;
    if (block.frames > maxContinuationFrames + 1 || block.sizeBytes > maxHeaderListBytes)
      return this.#state.fail(ErrorCode.EnhanceYourCalm, "a header block is too long");
    if ((flags & Flag.EndHeaders) === 0) return true;
    this.#block = undefined;
    const whole = block.join();
    return this.#complete(streamId, whole, 0, whole.length, block.endStream);
  }

  #complete(streamId: number, bytes: Uint8Array, from: number, to: number, end: boolean): boolean {
    let fields: ReturnType<HpackDecoder["decode"]>;
    try {
      fields = this.#decoder.decode(bytes, from, to);
    } catch (error) {
      if (!(error instanceof HpackError)) throw error;
      return this.#state.fail(ErrorCode.CompressionError, error.message);
    }
    const call = this.#state.calls.get(streamId);
    if (call === undefined) return this.#isKnown(streamId);
    if (call.stream.remoteEnded)
      return this.#state.fail(ErrorCode.StreamClosed, "HEADERS on a closed stream");
    if (end) call.stream.remoteEnded = true;
    call.headers(fields, end);
    return !this.#state.ending;
  }

  #reset(bytes: Uint8Array, start: number, length: number, streamId: number): boolean {
    if (length !== 4)
      return this.#state.fail(ErrorCode.FrameSizeError, "RST_STREAM does not have four bytes");
    const call = this.#state.calls.get(streamId);
    if (call === undefined) return this.#isKnown(streamId);
    this.#state.calls.delete(streamId);
    this.#state.close(call.stream);
    const code = readU32BE(bytes, start);
    call.aborted(statusOfReset(code), code !== ErrorCode.RefusedStream);
    return !this.#state.ending;
  }

  #settings(bytes: Uint8Array, start: number, length: number, flags: number): boolean {
    if ((flags & Flag.Ack) !== 0) return true;
    if (length % 6 !== 0)
      return this.#state.fail(ErrorCode.FrameSizeError, "a setting does not have six bytes");
    for (let at = start; at < start + length; at += 6) {
      const id = (bytes[at] << 8) | bytes[at + 1];
      const value = readU32BE(bytes, at + 2);
      if (id === Setting.MaxConcurrentStreams) this.#state.maxStreams = value;
      else if (id === Setting.HeaderTableSize) this.#state.sender.encoder.limitTable(value);
      else if (id === Setting.InitialWindowSize && !this.#setStreamWindow(value)) return false;
    }
    writeSettingsAck(this.#state.out);
    if (!this.#state.isSettled) {
      this.#state.isSettled = true;
      this.#state.owner.settled();
    }
    return !this.#state.ending;
  }

  #setStreamWindow(sizeBytes: number): boolean {
    const streams = [...this.#state.calls.values()].map((call) => call.stream);
    const isInRange =
      sizeBytes <= MAX_WINDOW_BYTES && this.#state.sender.setStreamWindow(sizeBytes, streams);
    return isInRange || this.#state.fail(ErrorCode.FlowControlError, "a window is too large");
  }

  /** The calls that the server has not begun end; they may be made again elsewhere. */
  #goAway(bytes: Uint8Array, start: number, length: number): boolean {
    if (length < 8) return this.#state.fail(ErrorCode.FrameSizeError, "GOAWAY is too short");
    this.#state.isDraining = true;
    const last = readU32BE(bytes, start) & MAX_STREAM_ID;
    const code = readU32BE(bytes, start + 4);
    const status = {
      code: GrpcCode.Unavailable,
      message: `the connection is draining (GOAWAY ${CODE_NAMES[code] ?? code})`,
    };
    for (const call of [...this.#state.calls.values()].filter(({ stream }) => stream.id > last)) {
      this.#state.calls.delete(call.stream.id);
      this.#state.close(call.stream);
      call.aborted(status, false);
    }
    return !this.#state.ending;
  }

  #windowUpdate(bytes: Uint8Array, start: number, length: number, streamId: number): boolean {
    if (length !== 4)
      return this.#state.fail(ErrorCode.FrameSizeError, "WINDOW_UPDATE does not have four bytes");
    const increment = readU32BE(bytes, start) & MAX_WINDOW_BYTES;
    const call = streamId === 0 ? undefined : this.#state.calls.get(streamId);
    const isInRange =
      streamId === 0
        ? this.#state.sender.openWindow(increment)
        : call === undefined || this.#state.sender.openStreamWindow(call.stream, increment);
    return isInRange || this.#state.fail(ErrorCode.FlowControlError, "a window is too large");
  }

  /** Frames of calls that have ended may still arrive; others break a rule. */
  #isKnown(streamId: number): boolean {
    if (streamId > 0 && streamId < this.#state.nextId && (streamId & 1) === 1) return true;
    return this.#state.fail(ErrorCode.ProtocolError, "a frame for a stream that was never opened");
  }
}

/** grpc-go's codes for RST_STREAM (internal/transport/http_util.go). */
function statusOfReset(code: number): Status {
  const byCode: Readonly<Record<number, number>> = {
    [ErrorCode.RefusedStream]: GrpcCode.Unavailable,
    [ErrorCode.Cancel]: GrpcCode.Canceled,
    [ErrorCode.EnhanceYourCalm]: GrpcCode.ResourceExhausted,
  };
  return {
    code: byCode[code] ?? GrpcCode.Internal,
    message: `stream terminated by RST_STREAM with error code: ${CODE_NAMES[code] ?? code}`,
  };
}

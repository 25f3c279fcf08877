/**
 * DATA (RFC 9113, section 6.1) and the flow control of the receiving side, of streams and of the
 * connection (section 6.9).
 */
import type { ConnectionState } from "./connection-state.ts";
import { DEFAULT_WINDOW_BYTES, ErrorCode, Flag } from "./constants.ts";
import { writeRstStream, writeWindowUpdate } from "./frames.ts";
import type { Http2Stream } from "./stream.ts";

export class DataFrames {
  readonly #state: ConnectionState;
  /**
   * Of the request bytes that are held, those that services process: they become free without the
   * client's doing.
   */
  #workingBytes = 0;
  /** What the client may still send on the connection. */
  #windowBytes: number;
  /** What was received and not yet credited to the client. */
  #uncreditedBytes = 0;

  /** Widens the connection's window to its limit. */
  constructor(state: ConnectionState) {
    this.#state = state;
    this.#windowBytes = Math.max(state.limits.connectionWindowBytes, DEFAULT_WINDOW_BYTES);
    const more = this.#windowBytes - DEFAULT_WINDOW_BYTES;
    if (more > 0) writeWindowUpdate(state.out, 0, more);
  }

  data(bytes: Uint8Array, start: number, length: number, flags: number, streamId: number): boolean {
    const state = this.#state;
    if (state.streams.isIdle(streamId))
      return state.fail(ErrorCode.ProtocolError, "DATA on an idle stream");
    // All of the payload counts, padding too (section 6.9.1).
    this.#windowBytes -= length;
    if (this.#windowBytes < 0)
      return state.fail(
        ErrorCode.FlowControlError,
        "more DATA than the connection's window allows",
      );
    this.#creditConnection(length);
    let from = start;
    let to = start + length;
    if ((flags & Flag.Padded) !== 0) {
      if (length === 0) return state.fail(ErrorCode.FrameSizeError, "padded DATA is empty");
      from++;
      to -= bytes[start];
      if (to < from) return state.fail(ErrorCode.ProtocolError, "padding is longer than its frame");
    }
    const stream = state.streams.get(streamId);
    if (stream === undefined) {
      if (!state.streams.wasCut(streamId))
        writeRstStream(state.out, streamId, ErrorCode.StreamClosed);
      // DATA that was in flight when the server reset the stream is not the client's fault.
      return state.idle(1);
    }
    return this.#body(stream, bytes, from, to, length, (flags & Flag.EndStream) !== 0);
  }

  /** Body bytes[from, to) of an open stream. @param length the whole payload, with padding */
  #body(
    stream: Http2Stream,
    bytes: Uint8Array,
    from: number,
    to: number,
    length: number,
    end: boolean,
  ): boolean {
    const state = this.#state;
    if (stream.remoteEnded) return state.streamError(stream, ErrorCode.StreamClosed);
    stream.receiveWindowBytes -= length;
    if (stream.receiveWindowBytes < 0) return state.streamError(stream, ErrorCode.FlowControlError);
    const size = to - from;
    if (stream.bodyLeftBytes >= 0) {
      stream.bodyLeftBytes -= size;
      if (stream.bodyLeftBytes < 0 || (end && stream.bodyLeftBytes > 0)) {
        return state.streamError(stream, ErrorCode.ProtocolError);
      }
    }
    if (end) stream.remoteEnded = true;
    else {
      if (size === 0 && !state.idle(1)) return false;
      if (size < length) this.credit(stream, length - size);
    }
    if (size > 0) stream.consumer.data(bytes, from, to);
    if (end && !stream.closed) stream.consumer.ended();
    return !state.ending;
  }

  /** Body bytes of the stream were consumed: the client may send as many more. */
  credit(stream: Http2Stream, sizeBytes: number): void {
    if (stream.remoteEnded || stream.closed) return;
    stream.uncreditedBytes += sizeBytes;
    if (stream.uncreditedBytes * 2 < this.#state.limits.streamWindowBytes) return;
    writeWindowUpdate(this.#state.out, stream.id, stream.uncreditedBytes);
    stream.receiveWindowBytes += stream.uncreditedBytes;
    stream.uncreditedBytes = 0;
  }

  /**
   * A service began, or with a negative size ended, to process a request that holds so many bytes.
   */
  working(sizeBytes: number): void {
    this.#workingBytes += sizeBytes;
    if (sizeBytes < 0 && !this.#state.ending) this.#creditConnection(0);
  }

  /**
   * Credits the connection's window as soon as bytes arrive, so that no stream blocks another; the
   * budget `held` bounds the memory. The client waits only while that budget is more than half used
   * and a service is processing a request: then there is something to wait for. Requests that are
   * still arriving must not wait for each other.
   */
  #creditConnection(sizeBytes: number): void {
    this.#uncreditedBytes += sizeBytes;
    if (this.#uncreditedBytes * 2 < this.#state.limits.connectionWindowBytes) return;
    if (this.#workingBytes > 0 && this.#state.held.isHigh) return;
    writeWindowUpdate(this.#state.out, 0, this.#uncreditedBytes);
    this.#windowBytes += this.#uncreditedBytes;
    this.#uncreditedBytes = 0;
  }
}

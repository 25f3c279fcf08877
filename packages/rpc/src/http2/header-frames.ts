/**
 * HEADERS and CONTINUATION (RFC 9113, sections 6.2 and 6.10): collects a header block, decodes it,
 * and opens a stream or ends one with trailers.
 */
import { readU32BE } from "@quorate/proto";
import { MAX_FIELD_BYTES } from "../field-limits.ts";
import { HpackError } from "../hpack/errors.ts";
import type { HeaderField } from "../hpack/header-field.ts";
import { DEFAULT_TABLE_BYTES, HpackDecoder } from "../hpack/hpack.ts";
import type { Http2Connection, RequestAcceptor } from "./connection.ts";
import { ErrorCode, Flag, MAX_STREAM_ID } from "./constants.ts";
import { HeaderBlock } from "./header-block.ts";
import { malformedTrailers, parseRequestHead, type RequestHead } from "./request-head.ts";
import { Http2Stream } from "./stream.ts";

/** Estimates of memory: an open stream besides its header block, and a field besides its bytes. */
const STREAM_BYTES = 512;
const FIELD_BYTES = 32;

export class HeaderFrames {
  readonly #connection: Http2Connection;
  readonly #acceptor: RequestAcceptor;
  readonly #decoder: HpackDecoder;
  readonly #heads = new HeadCache();

  constructor(connection: Http2Connection, acceptor: RequestAcceptor) {
    this.#connection = connection;
    this.#acceptor = acceptor;
    this.#decoder = new HpackDecoder(DEFAULT_TABLE_BYTES, connection.limits.maxHeaderListBytes);
  }

  headers(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    const connection = this.#connection;
    if ((streamId & 1) === 0)
      return connection.fail(ErrorCode.ProtocolError, "HEADERS on a stream that is not a client's");
    let from = start;
    let to = start + length;
    if ((flags & Flag.Padded) !== 0) {
      if (length === 0)
        return connection.fail(ErrorCode.FrameSizeError, "padded HEADERS are empty");
      to -= bytes[from++];
    }
    let dependsOnItself = false;
    if ((flags & Flag.Priority) !== 0) {
      if (from + 5 > start + length)
        return connection.fail(
          ErrorCode.FrameSizeError,
          "HEADERS are too short for their priority",
        );
      dependsOnItself = (readU32BE(bytes, from) & MAX_STREAM_ID) === streamId;
      from += 5;
    }
    if (to < from)
      return connection.fail(ErrorCode.ProtocolError, "padding is longer than its frame");
    const endStream = (flags & Flag.EndStream) !== 0;
    if ((flags & Flag.EndHeaders) !== 0)
      return this.#complete(streamId, bytes, from, to, endStream, dependsOnItself);
    connection.block = new HeaderBlock(streamId, endStream, dependsOnItself, connection.nowMs);
    connection.block.append(bytes, from, to);
    return true;
  }

  continuation(
    bytes: Uint8Array,
    start: number,
    length: number,
    flags: number,
    streamId: number,
  ): boolean {
    const connection = this.#connection;
    const block = connection.block;
    if (block === undefined || block.streamId !== streamId) {
      return connection.fail(ErrorCode.ProtocolError, "CONTINUATION without an open header block");
    }
    block.append(bytes, start, start + length);
    const { maxContinuationFrames, maxHeaderBlockBytes } = connection.limits;
    if (block.frames > maxContinuationFrames + 1 || block.sizeBytes > maxHeaderBlockBytes) {
      connection.counters.headerBlockFloods++;
      return connection.end(ErrorCode.EnhanceYourCalm, "a header block is too long");
    }
    if ((flags & Flag.EndHeaders) === 0) return true;
    connection.block = undefined;
    const whole = block.join();
    return this.#complete(streamId, whole, 0, whole.length, block.endStream, block.dependsOnItself);
  }

  /** A whole header block: a request, or the trailers of one. */
  #complete(
    streamId: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    endStream: boolean,
    dependsOnItself: boolean,
  ): boolean {
    const connection = this.#connection;
    if (streamId <= connection.streams.lastId)
      return this.#trailers(streamId, bytes, start, end, endStream);
    connection.streams.lastId = streamId;
    const decoder = this.#decoder;
    const version = decoder.table.version;
    let head: RequestHead | string | undefined = this.#heads.find(bytes, start, end, version);
    let truncated = false;
    if (head === undefined) {
      const fields = this.#decode(bytes, start, end);
      if (fields === undefined) return false;
      head = parseRequestHead(fields);
      truncated = decoder.truncated || fields.some(isTooLong);
      const isRepeatable =
        decoder.table.version === version && !truncated && typeof head !== "string";
      if (isRepeatable) this.#heads.add(bytes, start, end, version, head as RequestHead);
    }
    if (typeof head === "string" || dependsOnItself)
      return connection.rejectFrame(streamId, ErrorCode.ProtocolError);
    if (
      connection.drained ||
      connection.streams.size + connection.lingeringCalls >= connection.limits.maxConcurrentStreams
    ) {
      connection.counters.refusedStreams++;
      return connection.refuseStream(streamId);
    }
    if (endStream && head.contentLength > 0)
      return connection.rejectFrame(streamId, ErrorCode.ProtocolError);
    return this.#open(streamId, head, end - start, endStream, truncated);
  }

  #open(
    streamId: number,
    head: RequestHead,
    blockBytes: number,
    ended: boolean,
    truncated: boolean,
  ): boolean {
    const connection = this.#connection;
    const headBytes = STREAM_BYTES + blockBytes + head.fields.length * FIELD_BYTES;
    if (!connection.headBudget.take(headBytes)) {
      connection.counters.headBytesRefusals++;
      return connection.refuseStream(streamId);
    }
    const stream = new Http2Stream(
      streamId,
      head,
      connection.limits.streamWindowBytes,
      connection.sender.streamWindowBytes,
    );
    stream.remoteEnded = ended;
    stream.headBytes = headBytes;
    connection.streams.add(stream);
    connection.counters.streams++;
    connection.counters.openStreams++;
    if (truncated) {
      connection.counters.headerListsTooLarge++;
      this.#acceptor.refuseTooLarge(connection, stream);
    } else this.#acceptor.accept(connection, stream, ended);
    return !connection.ending;
  }

  #trailers(
    streamId: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    endStream: boolean,
  ): boolean {
    const connection = this.#connection;
    const fields = this.#decode(bytes, start, end);
    if (fields === undefined) return false;
    const stream = connection.streams.get(streamId);
    if (stream === undefined) {
      if (connection.streams.wasCut(streamId)) return connection.idle(1);
      // Streams open in rising order, so one that was passed over can never be opened (section
      // 5.1.1).
      const known = connection.streams.wasEnded(streamId);
      return connection.fail(
        known ? ErrorCode.StreamClosed : ErrorCode.ProtocolError,
        "HEADERS on a closed stream",
      );
    }
    if (stream.remoteEnded) return connection.streamError(stream, ErrorCode.StreamClosed);
    if (!endStream || malformedTrailers(fields) !== undefined || stream.bodyLeftBytes > 0) {
      return connection.streamError(stream, ErrorCode.ProtocolError);
    }
    stream.remoteEnded = true;
    stream.consumer.ended();
    return !connection.ending;
  }

  #decode(bytes: Uint8Array, start: number, end: number): HeaderField[] | undefined {
    try {
      return this.#decoder.decode(bytes, start, end);
    } catch (error) {
      if (!(error instanceof HpackError)) throw error;
      this.#connection.counters.compressionErrors++;
      this.#connection.fail(ErrorCode.CompressionError, error.message);
      return undefined;
    }
  }
}

function isTooLong({ name, value }: HeaderField): boolean {
  return name.length + value.length > MAX_FIELD_BYTES;
}

/** Number of cached heads. */
const ENTRIES = 4;
/** Larger blocks are not cached. */
const MAX_BLOCK_BYTES = 96;

interface Entry {
  readonly block: Uint8Array;
  readonly length: number;
  readonly tableVersion: number;
  readonly head: RequestHead;
}

/**
 * Caches the heads of a connection's latest requests by their header blocks. A client that repeats
 * one kind of call sends the same few bytes each time, once its fields are in the dynamic table.
 * The block decodes to the same head as long as the table does not change.
 */
class HeadCache {
  readonly #entries: Entry[] = [];
  #next = 0;

  /** The head of the block bytes[start, end) with the current table, if it is cached. */
  find(
    bytes: Uint8Array,
    start: number,
    end: number,
    tableVersion: number,
  ): RequestHead | undefined {
    const length = end - start;
    for (let i = 0; i < this.#entries.length; i++) {
      const entry = this.#entries[i];
      if (entry.length !== length || entry.tableVersion !== tableVersion) continue;
      const block = entry.block;
      let at = 0;
      while (at < length && block[at] === bytes[start + at]) at++;
      if (at === length) return entry.head;
    }
    return undefined;
  }

  /** Caches the head of a block that did not change the table. */
  add(
    bytes: Uint8Array,
    start: number,
    end: number,
    tableVersion: number,
    head: RequestHead,
  ): void {
    const length = end - start;
    if (length > MAX_BLOCK_BYTES) return;
    this.#entries[this.#next] = {
      block: new Uint8Array(bytes.subarray(start, end)),
      length,
      tableVersion,
      head,
    };
    this.#next = (this.#next + 1) % ENTRIES;
  }
}

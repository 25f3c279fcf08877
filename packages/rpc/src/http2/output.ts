/**
 * The output of a connection, collected over a turn, and the frames that are written to it (RFC
 * 9113 section 6). Short pieces are copied into one buffer, long ones are passed on in place;
 * `take` returns a list for one gathering write.
 */

import { alloc, concat, fromLatin1, http2, writeU32BE } from "@quorate/proto";
import { DEFAULT_MAX_FRAME_BYTES, Flag, FRAME_HEADER_BYTES, FrameType } from "./constants.ts";

/**
 * Pieces of at least this size are passed on instead of being copied: below, a copy costs less than
 * one more buffer in a write.
 */
const PASSED_ON_BYTES = 4096;

const FIRST_BUFFER_BYTES = 1024;
/** Maximum number of full pooled buffers that an output tracks in order to return them. */
export const MAX_AWAITED_BUFFERS = 8;

export class Output {
  /** The buffer in which `reserve` reserves. */
  bytes: Uint8Array = new Uint8Array(FIRST_BUFFER_BYTES);
  /** Bytes that `take` would return. */
  sizeBytes = 0;
  /** bytes[#from, #at) is not in #chunks yet. */
  #from = 0;
  #at = 0;
  #chunks: Uint8Array[] = [];
  readonly #pool: BufferPool;
  /** Full pooled buffers: not taken yet, and taken. */
  #full: Uint8Array[] = [];
  #taken: Uint8Array[] = [];

  /** @param pool provides the large buffers */
  constructor(pool: BufferPool = new BufferPool()) {
    this.#pool = pool;
  }

  /** Reserves n bytes, and returns their offset in `bytes`. The caller writes them at once. */
  reserve(n: number): number {
    if (this.#at + n > this.bytes.length) this.#renew(n);
    const at = this.#at;
    this.#at += n;
    this.sizeBytes += n;
    return at;
  }

  /**
   * Appends part[start, end): copied if it is short, otherwise in place; it must not change any
   * more.
   */
  append(part: Uint8Array, start: number, end: number): void {
    const size = end - start;
    if (size === 0) return;
    if (size >= PASSED_ON_BYTES) {
      this.#cut();
      this.#chunks.push(
        size === part.length ? part : new Uint8Array(part.buffer, part.byteOffset + start, size),
      );
      this.sizeBytes += size;
      return;
    }
    const at = this.reserve(size);
    copy(part, start, end, this.bytes, at);
  }

  /** Returns what was collected, in order. The chunks must not change until they have been sent. */
  take(): Uint8Array[] {
    this.#cut();
    const chunks = this.#chunks;
    this.#chunks = [];
    this.sizeBytes = 0;
    if (this.#full.length > 0) {
      // On a connection that never runs out of output, older buffers are left to the garbage
      // collector.
      this.#taken =
        this.#taken.length === 0 || this.#taken.length > MAX_AWAITED_BUFFERS
          ? this.#full
          : this.#taken.concat(this.#full);
      this.#full = [];
    }
    return chunks;
  }

  /**
   * To be called when everything that `take` returned has been sent: reuses its memory, unless
   * something was written since.
   */
  recycle(): void {
    if (this.#taken.length > 0) {
      for (const buffer of this.#taken) this.#pool.give(buffer);
      this.#taken = [];
    }
    if (this.sizeBytes > 0) return;
    this.#from = 0;
    this.#at = 0;
  }

  /** To be called now and then on an idle connection: releases a large buffer. */
  shrink(): void {
    if (this.sizeBytes > 0 || this.bytes.length === FIRST_BUFFER_BYTES) return;
    this.bytes = new Uint8Array(FIRST_BUFFER_BYTES);
    this.#from = 0;
    this.#at = 0;
  }

  #cut(): void {
    if (this.#at === this.#from) return;
    this.#chunks.push(this.bytes.subarray(this.#from, this.#at));
    this.#from = this.#at;
  }

  #renew(n: number): void {
    this.#cut();
    if (this.bytes.length === POOLED_BUFFER_BYTES) this.#full.push(this.bytes);
    const size = Math.max(n, Math.min(this.bytes.length * 2, POOLED_BUFFER_BYTES));
    this.bytes = size === POOLED_BUFFER_BYTES ? this.#pool.take() : new Uint8Array(size);
    this.#from = 0;
    this.#at = 0;
  }
}

/** Size of a pooled buffer. */
export const POOLED_BUFFER_BYTES: number = 64 * 1024;
/** Maximum bytes of free buffers that are kept. */
export const MAX_FREE_BYTES: number = 1024 * 1024;

/**
 * The free list of large output buffers, shared by all connections. A long response fills hundreds
 * of them; recently used memory is in the processor's cache, and the garbage collector has less
 * work.
 */
export class BufferPool {
  readonly #free: Uint8Array[] = [];

  /** Bytes of free buffers. */
  get freeBytes(): number {
    return this.#free.length * POOLED_BUFFER_BYTES;
  }

  /** A buffer of POOLED_BUFFER_BYTES with undefined contents. */
  take(): Uint8Array {
    return this.#free.pop() ?? alloc(POOLED_BUFFER_BYTES);
  }

  /** Returns a buffer to the pool; the caller must not refer to it any more. */
  give(buffer: Uint8Array): void {
    if (this.freeBytes < MAX_FREE_BYTES) this.#free.push(buffer);
  }
}

/**
 * Copies source[start, end) to target at `at`. A loop is faster than a call for the few bytes of
 * most pieces.
 */
function copy(
  source: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  at: number,
): void {
  if (end - start > 64) {
    target.set(start === 0 && end === source.length ? source : source.subarray(start, end), at);
    return;
  }
  for (let i = start; i < end; i++) target[at++] = source[i];
}

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

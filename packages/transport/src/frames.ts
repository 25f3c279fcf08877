/**
 * How raft messages stand in a byte stream between members:
 *
 *   length (4 bytes, big-endian, more than 0) | raftpb.Message of so many bytes | length | ...
 *
 * A snapshot is such a stream too: its message first, then the state in chunks, and a length of 0
 * as the end. Without that mark a stream that was cut could pass for a whole one.
 */
import { alloc, concat, Reader, raftpb, readU32BE, WireError, writeU32BE } from "@quorate/proto";

/** Bytes before each frame's content. */
export const PREFIX_BYTES = 4;
/**
 * Messages of up to this size are gathered in one buffer; longer ones are sent from where they are.
 */
const MAX_GATHERED_BYTES = 64 * 1024;

/**
 * Chunks of less than this are gathered, so that a frame in tiny pieces does not cost an object for
 * each.
 */
const MIN_KEPT_CHUNK_BYTES = 512;
const GATHERED_CHUNK_BYTES = 4096;

/** The end of a snapshot: a frame without content. */
export const END_FRAME: Uint8Array = new Uint8Array(PREFIX_BYTES);

const NOTHING = new Uint8Array(0);

/** Bytes from another member that are not what they should be. */
export class FrameError extends Error {
  readonly code = "ERR_FRAME";
  constructor(message: string) {
    super(message);
    this.name = "FrameError";
  }
}

/**
 * Encoded messages on their way into one stream, with as few pieces as are cheap. Reused for batch
 * after batch.
 */
export class FrameBatch {
  #frames: Uint8Array[] = [];
  #sizeBytes = 0;

  /** Bytes of all frames. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Messages in the batch. */
  get count(): number {
    return this.#frames.length;
  }

  /** Adds an encoded message. */
  add(encoded: Uint8Array): void {
    this.#frames.push(encoded);
    this.#sizeBytes += PREFIX_BYTES + encoded.length;
  }

  /**
   * All frames as pieces to be written one after the other, `freeBytes` unset ones before them; the
   * batch is empty again.
   */
  take(freeBytes = 0): Uint8Array[] {
    const pieces: Uint8Array[] = [];
    let gatheredBytes = freeBytes;
    for (const frame of this.#frames)
      gatheredBytes += PREFIX_BYTES + (frame.length <= MAX_GATHERED_BYTES ? frame.length : 0);
    const gathered = alloc(gatheredBytes);
    let start = 0;
    let at = freeBytes;
    for (const frame of this.#frames) {
      writeU32BE(gathered, frame.length, at);
      at += PREFIX_BYTES;
      if (frame.length <= MAX_GATHERED_BYTES) {
        gathered.set(frame, at);
        at += frame.length;
        continue;
      }
      pieces.push(gathered.subarray(start, at), frame);
      start = at;
    }
    if (at > start) pieces.push(gathered.subarray(start, at));
    this.#frames = [];
    this.#sizeBytes = 0;
    return pieces;
  }
}

/**
 * Puts frames together from the chunks of a stream. Holds at most one frame and the chunk in which
 * it ends.
 */
export class FrameReader {
  readonly #maxFrameBytes: number;
  #chunks: Uint8Array[] = [];
  #bufferedBytes = 0;
  /** Where small chunks are gathered: its used part is the last of the chunks while this is set. */
  #gathered: Uint8Array | undefined;
  /** Content of the frame that is being waited for, or undefined while its length is. */
  #awaitedBytes: number | undefined;

  /** @param maxFrameBytes the longest content that is taken. */
  constructor(maxFrameBytes: number) {
    this.#maxFrameBytes = maxFrameBytes;
  }

  /** Bytes that `take` has not given yet. */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#bufferedBytes += chunk.length;
    if (this.#chunks.length > 0 && chunk.length < MIN_KEPT_CHUNK_BYTES) this.#gather(chunk);
    else {
      this.#gathered = undefined;
      this.#chunks.push(chunk);
    }
  }

  #gather(chunk: Uint8Array): void {
    const last = this.#chunks.length - 1;
    const used = this.#gathered === undefined ? 0 : this.#chunks[last].length;
    if (this.#gathered === undefined || used + chunk.length > GATHERED_CHUNK_BYTES) {
      this.#gathered = alloc(GATHERED_CHUNK_BYTES);
      this.#gathered.set(chunk);
      this.#chunks.push(this.#gathered.subarray(0, chunk.length));
      return;
    }
    this.#gathered.set(chunk, used);
    this.#chunks[last] = this.#gathered.subarray(0, used + chunk.length);
  }

  /**
   * The next frame's content, a view where it came in one chunk, or undefined until more is pushed.
   * Throws FrameError for one that is too long.
   */
  take(): Uint8Array | undefined {
    if (this.#awaitedBytes === undefined) {
      if (this.#bufferedBytes < PREFIX_BYTES) return undefined;
      const length = readU32BE(this.#cut(PREFIX_BYTES), 0);
      if (length > this.#maxFrameBytes)
        throw new FrameError(`frame of ${length} bytes is longer than ${this.#maxFrameBytes}`);
      this.#awaitedBytes = length;
    }
    if (this.#bufferedBytes < this.#awaitedBytes) return undefined;
    const content = this.#cut(this.#awaitedBytes);
    this.#awaitedBytes = undefined;
    return content;
  }

  /** The first `size` bytes, which are there. */
  #cut(size: number): Uint8Array {
    if (size === 0) return NOTHING;
    this.#bufferedBytes -= size;
    this.#gathered = undefined;
    if (this.#chunks[0].length < size) this.#chunks = [concat(this.#chunks)];
    const first = this.#chunks[0];
    if (first.length > size) this.#chunks[0] = first.subarray(size);
    else this.#chunks.shift();
    return first.subarray(0, size);
  }
}

/**
 * Entries of one message. A member sends no more than 512 KiB of appends, or 20,000 proposals, at
 * once.
 */
export const MAX_MESSAGE_ENTRIES = 32_768;
/** A shorter frame cannot hold so many that counting them first would be worth it. */
const COUNT_FROM_BYTES = 128 * 1024;
/** raftpb.Message.entries. */
const ENTRIES_FIELD = 7;

/**
 * Counts the entries of a message before it is decoded: a frame of 64 MiB could hold 32 million
 * empty ones.
 */
function countEntries(frame: Uint8Array): void {
  const reader = new Reader(frame);
  let entries = 0;
  while (reader.pos < reader.end) {
    const tag = reader.tag();
    if (tag >>> 3 === ENTRIES_FIELD && ++entries > MAX_MESSAGE_ENTRIES) {
      throw new FrameError(`message of more than ${MAX_MESSAGE_ENTRIES} entries`);
    }
    reader.skip(tag, {});
  }
}

/**
 * The message in a frame; throws FrameError if it is none. `bytes` fields are views of the frame.
 */
export function decodeMessage(frame: Uint8Array): raftpb.Message {
  if (frame.length === 0) throw new FrameError("empty frame");
  try {
    if (frame.length >= COUNT_FROM_BYTES) countEntries(frame);
    return raftpb.Message.decode(frame);
  } catch (error) {
    if (error instanceof WireError) throw new FrameError(error.message);
    throw error;
  }
}

/**
 * How raft messages stand in a byte stream between members:
 *
 *   length (4 bytes, big-endian, more than 0) | raftpb.Message of so many bytes | length | ...
 *
 * A snapshot is such a stream too: its message first, then the state in chunks, and a length of 0
 * as the end. Without that mark a stream that was cut could pass for a whole one.
 *
 * Two streams lead to each peer, so that entries do not delay what keeps the cluster together.
 */
import {
  alloc,
  ChunkQueue,
  CodedError,
  Reader,
  raftpb,
  readU32BE,
  readU64BE,
  WireError,
  writeU32BE,
} from "@quorate/proto";

/** Bytes before each frame's content. */
export const PREFIX_BYTES = 4 as const;
/**
 * Messages of up to this size are gathered in one buffer; longer ones are sent from where they are.
 */
const MAX_GATHERED_BYTES = 64 * 1024;

/** The end of a snapshot: a frame without content. */
export const END_FRAME: Uint8Array = new Uint8Array(PREFIX_BYTES);

/** Bytes from another member that are not what they should be. */
export class FrameError extends CodedError<"BadFrame"> {
  constructor(message: string) {
    super("FrameError", "BadFrame", message);
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
  readonly #prefixBytes: 4 | 8;
  readonly #chunks = new ChunkQueue();
  /** Content bytes of the frame that is awaited; undefined while its length is. */
  #awaitedBytes: number | undefined;

  /**
   * @param maxFrameBytes the longest content that is taken
   * @param prefixBytes of the length before each frame
   */
  constructor(maxFrameBytes: number, prefixBytes: 4 | 8 = PREFIX_BYTES) {
    this.#maxFrameBytes = maxFrameBytes;
    this.#prefixBytes = prefixBytes;
  }

  /** Bytes that `take` has not returned yet. */
  get bufferedBytes(): number {
    return this.#chunks.sizeBytes;
  }

  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
  }

  /**
   * The next frame's content, a view where it came in one chunk, or undefined until more is pushed.
   * Throws FrameError for one that is too long.
   */
  take(): Uint8Array | undefined {
    if (this.#awaitedBytes === undefined) {
      if (this.#chunks.sizeBytes < this.#prefixBytes) return undefined;
      const length = this.#length(this.#chunks.take(this.#prefixBytes));
      if (length > this.#maxFrameBytes)
        throw new FrameError(`frame of ${length} bytes is longer than ${this.#maxFrameBytes}`);
      this.#awaitedBytes = length;
    }
    if (this.#chunks.sizeBytes < this.#awaitedBytes) return undefined;
    const content = this.#chunks.take(this.#awaitedBytes);
    this.#awaitedBytes = undefined;
    return content;
  }

  /** All that `take` has not returned, for what follows the last frame. */
  takeRest(): Uint8Array {
    return this.#chunks.take(this.#chunks.sizeBytes);
  }

  #length(prefix: Uint8Array): number {
    if (this.#prefixBytes === PREFIX_BYTES) return readU32BE(prefix, 0);
    try {
      return readU64BE(prefix);
    } catch (error) {
      throw new FrameError((error as Error).message);
    }
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

/**
 * Reads the next bytes of a stream of messages and calls `taken` for each message that is whole
 * now, in order. Throws FrameError at the first frame that is damaged; the messages before it have
 * been taken.
 * @param frame the bytes of the message, of which its `bytes` fields are views
 */
export function takeMessages(
  reader: FrameReader,
  chunk: Uint8Array,
  taken: (message: raftpb.Message, frame: Uint8Array) => void,
): void {
  reader.push(chunk);
  for (let frame = reader.take(); frame !== undefined; frame = reader.take())
    taken(decodeMessage(frame), frame);
}

/**
 * "urgent" for what is small and keeps the cluster together (votes, heartbeats, acknowledgements),
 * "bulk" for entries.
 */
export type ChannelKind = "urgent" | "bulk";

/**
 * The stream of a message. Entries, and proposals on their way to the leader, are bulk. All appends
 * use the same stream: an append that overtakes another one is refused as a gap.
 */
export function channelKindOf({ type }: raftpb.Message): ChannelKind {
  return type === raftpb.MessageType.MsgApp || type === raftpb.MessageType.MsgProp
    ? "bulk"
    : "urgent";
}

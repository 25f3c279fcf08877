/**
 * Raft's messages in the two streams of etcd's peer protocol (etcd: server/etcdserver/api/rafthttp;
 * the same in 3.4 to 3.7). All numbers are big-endian.
 *
 *     message     length u64 | raftpb.Message
 *
 *     msgapp      0                                                   the link is alive
 *                 1 | count u64 | { length u64 | raftpb.Entry }* | commit u64
 *                 2 | length u64 | raftpb.Message
 *
 * Frame 1 is an append that follows the one before it in the stream: of the same term, after an
 * entry of that term. Its sender, index and terms are not written. In the stream `message`, and
 * before a database file (POST /raft/snapshot), a message without sender and receiver says that the
 * link is alive.
 */
import {
  alloc,
  ChunkQueue,
  concat,
  raftpb,
  readU64BE,
  WireError,
  writeU64BE,
} from "@quorate/proto";
import { decodeMessage, FrameError, FrameReader, MAX_MESSAGE_ENTRIES } from "./frames.ts";

/** The streams that lead from one member of etcd to another. */
export const ETCD_STREAMS = ["message", "msgapp"] as const;
export type EtcdStream = (typeof ETCD_STREAMS)[number];

const LENGTH_BYTES = 8;
const ALIVE = 0;
const FOLLOWING = 1;
const WHOLE = 2;

const { MsgHeartbeat } = raftpb.MessageType;

/** Called with a message, and the bytes that it took in the stream. */
export type TakeMessage = (message: raftpb.Message, sizeBytes: number) => void;

/** Finds the messages in a stream's bytes, in order. Throws FrameError for what is none. */
export interface MessageDecoder {
  take(chunk: Uint8Array, taken: TakeMessage): void;
}

/** Puts messages into the bytes of one stream, which has to carry all of them in this order. */
export interface MessageEncoder {
  encode(message: raftpb.Message): Uint8Array;
  /** What says that the link is alive. */
  alive(): Uint8Array;
}

/**
 * The reader of one stream.
 * @param maxMessageBytes the longest message that is taken, of all its entries together
 */
export function etcdDecoder(
  stream: EtcdStream,
  ids: { readonly from: bigint; readonly to: bigint },
  maxMessageBytes: number,
): MessageDecoder {
  return stream === "message"
    ? new MessageStreamDecoder(maxMessageBytes)
    : new AppendStreamDecoder(ids, maxMessageBytes);
}

/** The writer of one stream. */
export function etcdEncoder(stream: EtcdStream): MessageEncoder {
  return stream === "message" ? MESSAGE_STREAM : new AppendStreamEncoder();
}

function lengthOf(bytes: Uint8Array): number {
  try {
    return readU64BE(bytes);
  } catch (error) {
    throw new FrameError((error as Error).message);
  }
}

function u64(value: number): Uint8Array {
  const bytes = alloc(LENGTH_BYTES);
  writeU64BE(bytes, value);
  return bytes;
}

/** A message with its length before it. */
export function encodeWithLength(message: raftpb.Message): Uint8Array {
  const encoded = raftpb.Message.encode(message);
  return concat([u64(encoded.length), encoded]);
}

const MESSAGE_STREAM: MessageEncoder = {
  encode: encodeWithLength,
  alive: () => encodeWithLength(raftpb.Message.create({ type: MsgHeartbeat })),
};

class MessageStreamDecoder implements MessageDecoder {
  readonly #frames: FrameReader;

  constructor(maxMessageBytes: number) {
    this.#frames = new FrameReader(maxMessageBytes, LENGTH_BYTES);
  }

  take(chunk: Uint8Array, taken: TakeMessage): void {
    this.#frames.push(chunk);
    for (let frame = this.#frames.take(); frame !== undefined; frame = this.#frames.take()) {
      const message = decodeMessage(frame);
      const isAlive = message.type === MsgHeartbeat && message.from === 0n && message.to === 0n;
      if (!isAlive) taken(message, LENGTH_BYTES + frame.length);
    }
  }
}

/** The term and index of the last entry of a stream of appends. */
interface Place {
  readonly term: number;
  readonly index: number;
}

function placeAfter({ term, index, entries }: raftpb.Message): Place {
  return { term, index: entries.at(-1)?.index ?? index };
}

class AppendStreamEncoder implements MessageEncoder {
  #place: Place = { term: 0, index: 0 };

  encode(append: raftpb.Message): Uint8Array {
    const { index, logTerm, term, entries, commit } = append;
    const follows = index === this.#place.index && logTerm === this.#place.term && logTerm === term;
    this.#place = placeAfter(append);
    if (!follows) return concat([new Uint8Array([WHOLE]), encodeWithLength(append)]);
    const parts = [new Uint8Array([FOLLOWING]), u64(entries.length)];
    for (const entry of entries) {
      const encoded = raftpb.Entry.encode(entry);
      parts.push(u64(encoded.length), encoded);
    }
    parts.push(u64(commit));
    return concat(parts);
  }

  alive(): Uint8Array {
    return new Uint8Array([ALIVE]);
  }
}

/** What is read next. */
type Part = "kind" | "message length" | "message" | "count" | "entry length" | "entry" | "commit";

/** Holds at most one message and the chunk in which it ends. */
class AppendStreamDecoder implements MessageDecoder {
  readonly #ids: { readonly from: bigint; readonly to: bigint };
  readonly #maxMessageBytes: number;
  readonly #chunks = new ChunkQueue();
  #part: Part = "kind";
  #partBytes = 1;
  #place: Place = { term: 0, index: 0 };
  #entries: raftpb.Entry[] = [];
  /** Entries that the message still has. */
  #left = 0;
  /** Bytes of the message so far. */
  #sizeBytes = 0;

  constructor(ids: { readonly from: bigint; readonly to: bigint }, maxMessageBytes: number) {
    this.#ids = ids;
    this.#maxMessageBytes = maxMessageBytes;
  }

  take(chunk: Uint8Array, taken: TakeMessage): void {
    this.#chunks.push(chunk);
    while (this.#chunks.sizeBytes >= this.#partBytes) {
      const bytes = this.#chunks.take(this.#partBytes);
      this.#sizeBytes += bytes.length;
      const message = this.#read(bytes);
      if (message === undefined) continue;
      const sizeBytes = this.#sizeBytes;
      this.#await("kind", 1);
      this.#entries = [];
      this.#sizeBytes = 0;
      this.#place = placeAfter(message);
      taken(message, sizeBytes);
    }
  }

  #await(part: Part, bytes: number): void {
    if (this.#sizeBytes + bytes > this.#maxMessageBytes + LENGTH_BYTES)
      throw new FrameError(`message of more than ${this.#maxMessageBytes} bytes`);
    this.#part = part;
    this.#partBytes = bytes;
  }

  /** Reads one part; the message, where that is its end. */
  #read(bytes: Uint8Array): raftpb.Message | undefined {
    switch (this.#part) {
      case "kind":
        this.#begin(bytes[0]);
        return undefined;
      case "message length":
        this.#await("message", lengthOf(bytes));
        return undefined;
      case "message":
        return decodeMessage(bytes);
      case "count":
        this.#left = lengthOf(bytes);
        if (this.#left > MAX_MESSAGE_ENTRIES)
          throw new FrameError(`message of more than ${MAX_MESSAGE_ENTRIES} entries`);
        this.#awaitEntry();
        return undefined;
      case "entry length":
        this.#await("entry", lengthOf(bytes));
        return undefined;
      case "entry":
        this.#entries.push(decodeEntry(bytes));
        this.#left--;
        this.#awaitEntry();
        return undefined;
      case "commit":
        return this.#following(lengthOf(bytes));
    }
  }

  #begin(kind: number | undefined): void {
    if (kind === WHOLE) this.#await("message length", LENGTH_BYTES);
    else if (kind === FOLLOWING) this.#await("count", LENGTH_BYTES);
    else if (kind === ALIVE) this.#sizeBytes = 0;
    else throw new FrameError(`frame of the kind ${kind} in a stream of appends`);
  }

  #awaitEntry(): void {
    this.#await(this.#left > 0 ? "entry length" : "commit", LENGTH_BYTES);
  }

  #following(commit: number): raftpb.Message {
    const { term, index } = this.#place;
    const { MsgApp: type } = raftpb.MessageType;
    const entries = this.#entries;
    const append = { ...this.#ids, type, term, logTerm: term, index, entries, commit };
    return raftpb.Message.create(append);
  }
}

function decodeEntry(bytes: Uint8Array): raftpb.Entry {
  try {
    return raftpb.Entry.decode(bytes);
  } catch (error) {
    if (error instanceof WireError) throw new FrameError(error.message);
    throw error;
  }
}

/**
 * The parts of a body of POST /raft/snapshot: first the message, then bytes of the database file as
 * they come. The file has no end mark: it ends where the body does.
 */
export class SnapshotBodyReader {
  readonly #frames: FrameReader;
  readonly #chunks: Uint8Array[] = [];
  #hasMessage = false;

  constructor(maxMessageBytes: number) {
    this.#frames = new FrameReader(maxMessageBytes, LENGTH_BYTES);
  }

  /** Whether the message has come whole: then the body may end. */
  get hasMessage(): boolean {
    return this.#hasMessage;
  }

  push(chunk: Uint8Array): void {
    if (this.#hasMessage) this.#chunks.push(chunk);
    else this.#frames.push(chunk);
  }

  /** The next part; undefined until more is pushed. Throws FrameError. */
  take(): Uint8Array | undefined {
    if (this.#hasMessage) return this.#chunks.shift();
    const message = this.#frames.take();
    if (message === undefined) return undefined;
    this.#hasMessage = true;
    const rest = this.#frames.takeRest();
    if (rest.length > 0) this.#chunks.push(rest);
    return message;
  }
}

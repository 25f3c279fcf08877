/**
 * A stream of messages. It begins as a request on an HTTP/2 connection of its own (src/tunnel.ts),
 * with the headers by which members introduce themselves; then a Carrier writes the messages of one
 * side and a MessageReader reads those of the other. What speaks HTTP/2 to the peer port and is no
 * member's stream goes to Node's own HTTP/2.
 */
import type { Socket } from "node:net";
import type { Clock } from "@quorate/host";
import { sniff } from "@quorate/host/node";
import { fromUtf8, idToHex, type raftpb, toUtf8 } from "@quorate/proto";
import type { MessageDecoder, TakeMessage } from "../src/etcd-frames.ts";
import {
  type FrameBatch,
  FrameError,
  FrameReader,
  PREFIX_BYTES,
  takeMessages,
} from "../src/frames.ts";
import type { RareLog } from "../src/rare-log.ts";
import {
  type Fields,
  ForeignHeadError,
  FRAME_HEAD_BYTES,
  openingOf,
  PREFACE,
  Tunnel,
} from "../src/tunnel.ts";
import { DialError } from "./dial.ts";
import { answerHeaders, requestHeaders, STREAM_PATH } from "./headers.ts";
import { peerFields, type ResolvedOptions, type Shared, type Traffic } from "./options.ts";
import type { Answer } from "./request.ts";

/** In a request: its sender reads messages on this stream too. Members before 0.2 do not. */
const TWO_WAY = "x-quorate-two-way";
/** More of a refusal's text is not read. */
const MAX_ERROR_BYTES = 1024;
/** Answers that a peer does not read; one that leaves more of them lying is given up. */
const MAX_UNREAD_REPLY_BYTES = 64 * 1024;

/** A stream on which the peer has agreed to take messages. */
export interface OutgoingStream extends StreamWriter {
  readonly answer: Answer;
}

/** Which stream is requested, and on which connection. */
interface StreamRequest {
  readonly socket: Socket;
  readonly to: bigint;
  readonly path: string;
  /** Whether the connection uses TLS. */
  readonly secure: boolean;
  /** Called with the bytes that the peer sends once it has agreed; it may send them at once. */
  received(bytes: Uint8Array): void;
}

/**
 * Requests a stream of the peer at the other end of a connection; status 200: it has agreed.
 * Rejects with DialError if it does not answer.
 */
export function requestStream(shared: Shared, request: StreamRequest): Promise<OutgoingStream> {
  const { socket, to, path, secure } = request;
  return new Promise((resolve, reject) => {
    let status = 0;
    let headers: Fields = {};
    let text = "";
    const pings = new Pings(socket);
    const settle = () => {
      if (status === 0) return;
      resolve({
        answer: { status, headers, text: text.trimEnd() },
        wrap: (pieces, bytes) => tunnel.wrap(pieces, bytes),
        ping: (whenAnswered) => pings.send(whenAnswered),
      });
    };
    const tunnel = new Tunnel({
      head(fields) {
        status = Number(fields[":status"]) || 0;
        headers = fields;
        if (status === 200) settle();
      },
      data(bytes) {
        if (status === 200) request.received(bytes);
        else if (text.length < MAX_ERROR_BYTES)
          text += toUtf8(bytes, 0, Math.min(bytes.length, MAX_ERROR_BYTES - text.length));
      },
      pong: () => pings.answered(),
      ended() {
        settle();
        socket.destroy();
      },
    });
    receive(socket, tunnel, (error) => {
      const code = error instanceof ForeignHeadError ? "Etcd" : "Failed";
      reject(new DialError(code, error.message));
    });
    socket.on("close", () => {
      settle();
      reject(new DialError("Failed", "connection closed before the peer answered"));
    });
    const {
      ":method": _method,
      ":path": _path,
      ...others
    } = requestHeaders(shared.options, to, path);
    const pseudo = {
      ":method": "POST",
      ":scheme": secure ? "https" : "http",
      ":authority": "peer",
      ":path": path,
    };
    socket.write(Tunnel.request({ ...pseudo, ...textsOf(others), [TWO_WAY]: "1" }));
  });
}

/** The last ping of one side of a stream. */
class Pings {
  readonly #socket: Socket;
  #whenAnswered: () => void = () => {};

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  send(whenAnswered: () => void): void {
    this.#whenAnswered = whenAnswered;
    this.#socket.write(Tunnel.ping());
  }

  answered(): void {
    this.#whenAnswered();
  }
}

/** A request for a stream, as it was received: the acceptor's side. */
interface IncomingStream extends StreamWriter {
  readonly socket: Socket;
  /** Whether the dialler takes messages on it too. */
  readonly isTwoWay: boolean;
  /** Agrees to take messages. Call before the next turn. */
  agree(): void;
  /** Turns it away, and ends the connection. */
  refuse(status: number, text: string): void;
}

/** What becomes of an incoming stream. */
interface IncomingStreamListener {
  /** Who asks; agree or refuse at once. Returns what takes the bytes of an agreed stream. */
  requested(stream: IncomingStream, fields: Fields): MessageReader | undefined;
  /** What came is no HTTP/2; the connection is ended. */
  damaged(error: FrameError): void;
}

/** Serves a connection that `sniffStream` has found to be a member's. */
export function acceptStream(
  socket: Socket,
  options: ResolvedOptions,
  listener: IncomingStreamListener,
): void {
  const pings = new Pings(socket);
  const streamOf = (fields: Fields): IncomingStream => ({
    socket,
    isTwoWay: fields[TWO_WAY] === "1",
    wrap: (pieces, bytes) => tunnel.wrap(pieces, bytes),
    ping: (whenAnswered) => pings.send(whenAnswered),
    agree: () =>
      void socket.write(Tunnel.agreement({ ":status": "200", ...textsOf(answerHeaders(options)) })),
    refuse(status, text) {
      const fields = {
        ":status": String(status),
        ...textsOf(answerHeaders(options)),
        "content-type": "text/plain; charset=utf-8",
      };
      socket.end(Tunnel.refusal(fields, fromUtf8(`${text}\n`)));
    },
  });
  let reader: MessageReader | undefined;
  const tunnel = new Tunnel({
    head(fields) {
      reader = listener.requested(streamOf(fields), fields);
    },
    data: (bytes) => reader?.take(bytes),
    pong: () => pings.answered(),
    ended: () => socket.destroy(),
  });
  // All of it is there, or it would not have been found to be a member's.
  socket.read(PREFACE.length);
  receive(socket, tunnel, (error) => listener.damaged(error));
  // The sender has gone.
  socket.on("end", () => socket.destroy());
}

/** Feeds a tunnel with what its socket receives, and answers what has to be answered. */
function receive(socket: Socket, tunnel: Tunnel, damaged: (error: FrameError) => void): void {
  // Not all that waits for the socket: messages wait there too, as long as the peer is slow.
  let unreadReplyBytes = 0;
  const take = (chunk: Uint8Array) => {
    try {
      tunnel.push(chunk);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      damaged(error);
      socket.destroy();
    }
    const replies = tunnel.takeReplies();
    if (replies === undefined || !socket.writable) return;
    unreadReplyBytes += replies.length;
    if (unreadReplyBytes > MAX_UNREAD_REPLY_BYTES) socket.destroy();
    else {
      socket.write(replies, () => {
        unreadReplyBytes -= replies.length;
      });
    }
  };
  socket.on("data", take);
  socket.resume();
}

/**
 * Calls `decided` once the first bytes of an HTTP/2 connection show whether it is a member's
 * stream; the socket then still has all of its bytes to read. One that has not shown it within
 * `timeoutMs` is not a member's.
 */
export function sniffStream(
  socket: Socket,
  clock: Clock,
  timeoutMs: number,
  decided: (isMember: boolean) => void,
): void {
  const decide = (seen: Buffer): boolean | undefined => {
    const opening = openingOf(seen);
    if (opening.kind === "unclear") return undefined;
    return opening.kind === "member" && opening.fields[":path"]?.startsWith(STREAM_PATH) === true;
  };
  sniff(socket, clock, timeoutMs, { decide, decided, late: () => decided(false) });
}

function textsOf(headers: ReturnType<typeof answerHeaders>): Fields {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

/** The HTTP/2 frames of one side of a stream. */
interface StreamWriter {
  /** As Tunnel.wrap: throws FrameError if the other side has closed its window. */
  wrap(pieces: Uint8Array[], bytes: number): Uint8Array[];
  /** Sends a ping; `whenAnswered` is called when its answer comes. */
  ping(whenAnswered: () => void): void;
}

/**
 * One open stream of messages. Either side of it may write and read, the one that dialled it and
 * the one that accepted it. The writer counts what waits for the kernel, so that its owner can
 * bound it.
 */
export class Carrier {
  readonly socket: Socket;
  readonly ping: StreamWriter["ping"];
  readonly #stream: StreamWriter;
  #messages = 0;
  #bytes = 0;

  constructor(socket: Socket, stream: StreamWriter) {
    this.socket = socket;
    this.#stream = stream;
    this.ping = (whenAnswered) => stream.ping(whenAnswered);
  }

  /** Messages that have not left for the kernel. */
  get queuedMessages(): number {
    return this.#messages;
  }

  /** Their bytes, with their prefixes. */
  get queuedBytes(): number {
    return this.#bytes;
  }

  /**
   * Sends all of a batch as one write.
   * @param left called when the messages have left for the kernel, or are lost with the socket
   * @returns the bytes of the batch
   * @throws FrameError if the peer has closed its window: it does not receive as members do
   */
  write(batch: FrameBatch, left: () => void): number {
    const messages = batch.count;
    const bytes = batch.sizeBytes;
    const pieces = this.#stream.wrap(batch.take(FRAME_HEAD_BYTES), bytes);
    this.#messages += messages;
    this.#bytes += bytes;
    const hasLeft = (): void => {
      this.#messages -= messages;
      this.#bytes -= bytes;
      left();
    };
    const { socket } = this;
    if (pieces.length > 1) socket.cork();
    for (const [at, piece] of pieces.entries())
      socket.write(piece, at === pieces.length - 1 ? hasLeft : undefined);
    if (pieces.length > 1) socket.uncork();
    return bytes;
  }
}

/** The frames of Quorate's own streams. */
class FrameDecoder implements MessageDecoder {
  readonly #frames: FrameReader;

  constructor(maxMessageBytes: number) {
    this.#frames = new FrameReader(maxMessageBytes);
  }

  take(chunk: Uint8Array, taken: TakeMessage): void {
    takeMessages(this.#frames, chunk, (message, frame) =>
      taken(message, PREFIX_BYTES + frame.length),
    );
  }
}

/** Called with the messages that one chunk completes, in order. */
interface MessageListener {
  received(messages: readonly raftpb.Message[]): void;
}

interface MessageReaderParts {
  readonly shared: Shared;
  readonly rareLog: RareLog;
  readonly connection: { destroy(): void };
  /** Of Quorate's own streams if undefined. */
  readonly decoder?: MessageDecoder | undefined;
}

/** Reads the messages that a member sends on a stream, whichever side dialled it. */
export class MessageReader {
  readonly #parts: MessageReaderParts;
  readonly #from: bigint;
  readonly #traffic: Traffic;
  readonly #listener: MessageListener;
  readonly #decoder: MessageDecoder;

  /**
   * @param from the member at the other end: messages of another one are dropped
   */
  constructor(parts: MessageReaderParts, from: bigint, listener: MessageListener) {
    this.#parts = parts;
    this.#from = from;
    this.#traffic = parts.shared.observer.traffic(from);
    this.#listener = listener;
    this.#decoder = parts.decoder ?? new FrameDecoder(parts.shared.options.maxMessageBytes);
  }

  /** Takes the next bytes. Bytes that are no messages end the connection. */
  take(chunk: Uint8Array): void {
    const { shared, rareLog, connection } = this.#parts;
    const { options } = shared;
    const messages: raftpb.Message[] = [];
    let messageBytes = 0;
    try {
      this.#decoder.take(chunk, (message, sizeBytes) => {
        messageBytes += sizeBytes;
        if (message.from === this.#from && message.to === options.selfId) messages.push(message);
        else this.#misdirected(message);
      });
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      logDamage(shared, rareLog, this.#from, error);
      connection.destroy();
    }
    if (messageBytes > 0) this.#traffic.received.add(messageBytes);
    // What came whole before the failure is good.
    if (messages.length > 0) this.#listener.received(messages);
  }

  #misdirected(message: raftpb.Message): void {
    const { shared, rareLog } = this.#parts;
    shared.observer.receiveFailed(this.#from);
    if (!rareLog.allows(`${this.#from} misdirected`)) return;
    shared.logger.warn("ignored Raft message with a wrong address", {
      ...peerFields(shared, this.#from),
      "message-from": idToHex(message.from),
      "message-to": idToHex(message.to),
    });
  }
}

/** Counts, and now and then logs, bytes of a member that cannot be read. */
export function logDamage(shared: Shared, rareLog: RareLog, from: bigint, error: FrameError): void {
  shared.observer.receiveFailed(from);
  if (!rareLog.allows(`${from} damaged`)) return;
  shared.logger.warn("failed to read Raft message", {
    ...peerFields(shared, from),
    error: error.message,
  });
}

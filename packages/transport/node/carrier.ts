/**
 * One open stream of messages. Either side of it may write and read, the one that dialled it and
 * the one that accepted it. The writer counts what waits for the kernel, so that its owner can
 * bound it.
 */
import type { Socket } from "node:net";
import { idToHex, type raftpb } from "@quorate/proto";
import {
  type FrameBatch,
  FrameError,
  FrameReader,
  PREFIX_BYTES,
  takeMessages,
} from "../src/frames.ts";
import type { RareLog } from "../src/rare-log.ts";
import { FRAME_HEAD_BYTES } from "../src/tunnel.ts";
import type { Shared } from "./options.ts";

/** The HTTP/2 frames of one side of a stream. */
export interface StreamWriter {
  /** As Tunnel.wrap: throws FrameError if the other side has closed its window. */
  wrap(pieces: Uint8Array[], bytes: number): Uint8Array[];
  /** Sends a ping; `whenAnswered` is called when its answer comes. */
  ping(whenAnswered: () => void): void;
}

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
    const last = pieces.length - 1;
    if (last > 0) this.socket.cork();
    for (let i = 0; i < last; i++) this.socket.write(pieces[i]);
    this.socket.write(pieces[last], () => {
      this.#messages -= messages;
      this.#bytes -= bytes;
      left();
    });
    if (last > 0) this.socket.uncork();
    return bytes;
  }
}

/** Reads the messages that a member sends on a stream, whichever side dialled it. */
export class MessageReader {
  readonly #shared: Shared;
  readonly #rareLog: RareLog;
  readonly #socket: Socket;
  readonly #from: bigint;
  readonly #received: (messages: raftpb.Message[]) => void;
  readonly #frames: FrameReader;

  /**
   * @param from the member at the other end: messages of another one are dropped
   * @param received called with the messages that one chunk completes, in order
   */
  constructor(
    { shared, rareLog, socket }: { shared: Shared; rareLog: RareLog; socket: Socket },
    from: bigint,
    received: (messages: raftpb.Message[]) => void,
  ) {
    this.#shared = shared;
    this.#rareLog = rareLog;
    this.#socket = socket;
    this.#from = from;
    this.#received = received;
    this.#frames = new FrameReader(shared.options.maxMessageBytes);
  }

  /** Takes the next bytes. Bytes that are no messages end the connection. */
  take(chunk: Uint8Array): void {
    const { observer, options } = this.#shared;
    const messages: raftpb.Message[] = [];
    let messageBytes = 0;
    try {
      takeMessages(this.#frames, chunk, (message, frame) => {
        messageBytes += PREFIX_BYTES + frame.length;
        if (message.from === this.#from && message.to === options.selfId) messages.push(message);
        else this.#misdirected(message);
      });
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      logDamage(this.#shared, this.#rareLog, this.#from, error);
      this.#socket.destroy();
    }
    if (messageBytes > 0) observer.received(this.#from, messageBytes);
    // What came whole before the failure is good.
    if (messages.length > 0) this.#received(messages);
  }

  #misdirected(message: raftpb.Message): void {
    this.#shared.observer.receiveFailed(this.#from);
    if (!this.#rareLog.allows(`${this.#from} misdirected`)) return;
    this.#shared.logger.warn("ignored Raft message with a wrong address", {
      ...fieldsOf(this.#shared, this.#from),
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
    ...fieldsOf(shared, from),
    error: error.message,
  });
}

function fieldsOf({ options }: Shared, from: bigint): { readonly [name: string]: string } {
  return { "local-member-id": idToHex(options.selfId), "remote-peer-id": idToHex(from) };
}

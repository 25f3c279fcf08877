/** Reads the messages that a member sends on a stream, whichever side dialled it. */
import type { Socket } from "node:net";
import { idToHex, type raftpb } from "@quorate/proto";
import { FrameError, FrameReader, PREFIX_BYTES, takeMessages } from "../src/frames.ts";
import type { RareLog } from "../src/rare-log.ts";
import type { Shared } from "./options.ts";

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

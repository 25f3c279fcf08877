/**
 * One open stream of messages, from its writer's side: either side of a stream may write, the one
 * that dialled it and the one that accepted it. Counts what waits for the kernel, so that its owner
 * can bound it.
 */
import type { Socket } from "node:net";
import type { FrameBatch } from "../src/frames.ts";
import { FRAME_HEAD_BYTES } from "../src/tunnel.ts";

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

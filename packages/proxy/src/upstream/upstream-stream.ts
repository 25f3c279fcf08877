/** A stream to the cluster: opened at the first member that can be reached, and not resumed. */
import { GrpcCode } from "@quorate/proto";
import type { CallStart, ClientCall, ClientConnection, Status } from "@quorate/rpc";
import {
  type MemberChannel,
  type MemberChannels,
  onceConnected,
  TOO_MANY_OPEN_CALLS,
} from "./member-channel.ts";

/** Callbacks of a stream. */
export interface UpstreamStreamListener {
  message(bytes: Uint8Array): void;
  /** The stream has ended. Called once, and not after `cancel`. */
  ended(status: Status): void;
  /** What was sent has left. */
  drained?(): void;
}

/** Bytes that may be sent before the stream is open. */
const MAX_EARLY_BYTES = 4 * 1024 * 1024;

export class UpstreamStream {
  readonly #upstream: MemberChannels;
  readonly #start: CallStart;
  readonly #listener: UpstreamStreamListener;
  #call: ClientCall | undefined;
  #early: Uint8Array[] = [];
  #earlyBytes = 0;
  #isFinished = false;
  #isPaused = false;
  #isOver = false;
  #attempts = 0;

  constructor(upstream: MemberChannels, start: CallStart, listener: UpstreamStreamListener) {
    this.#upstream = upstream;
    this.#start = start;
    this.#listener = listener;
  }

  /** @internal Called once, by Upstream. */
  open(): void {
    this.#attempts++;
    const { channel } = this.#upstream;
    onceConnected(
      channel,
      (connection) => {
        if (!this.#isOver) this.#begin(channel, connection);
      },
      (error) => this.#notConnected(channel, error),
    );
  }

  /** Sends one message. False when much waits: send no more until `drained`. */
  send(message: Uint8Array): boolean {
    if (this.#call !== undefined) return this.#call.send(message);
    if (this.#isOver) return false;
    this.#early.push(message);
    this.#earlyBytes += message.length;
    if (this.#earlyBytes <= MAX_EARLY_BYTES) return true;
    const text = "requests that wait for a member hold too much memory";
    this.#over({ code: GrpcCode.ResourceExhausted, message: text });
    return false;
  }

  /** Half-closes the stream. */
  finish(): void {
    this.#isFinished = true;
    this.#call?.finish();
  }

  /** Cancels the stream. Nothing is called any more. */
  cancel(): void {
    this.#isOver = true;
    this.#early = [];
    this.#call?.cancel();
  }

  /** Stops and restarts the delivery of messages. */
  pause(): void {
    this.#isPaused = true;
    this.#call?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#call?.resume();
  }

  #notConnected(channel: MemberChannel, error: Status): void {
    this.#upstream.leave(channel);
    if (this.#isOver) return;
    if (this.#attempts < this.#upstream.size) this.open();
    else this.#over({ code: error.code, message: error.message });
  }

  #begin(channel: MemberChannel, connection: ClientConnection): void {
    const call = connection.call(this.#start, {
      message: (bytes) => this.#listener.message(bytes),
      ended: (status) => {
        if (status.code === GrpcCode.Unavailable) this.#upstream.leave(channel);
        this.#over(status);
      },
      drained: () => this.#listener.drained?.(),
    });
    if (call === undefined) {
      this.#over(TOO_MANY_OPEN_CALLS);
      return;
    }
    this.#call = call;
    if (this.#isPaused) call.pause();
    const early = this.#early;
    this.#early = [];
    this.#earlyBytes = 0;
    for (const message of early) call.send(message);
    if (this.#isFinished) call.finish();
  }

  #over(status: Status): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#early = [];
    this.#listener.ended(status);
  }
}

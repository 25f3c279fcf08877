/** A call that sends much: what it sends waits until the client has taken what was sent before. */
import type { MessageBytes, StreamCall } from "@quorate/rpc";
import { toStatusError } from "../calls/results.ts";

export class PacedCall {
  readonly #call: StreamCall;
  #isFull = false;
  /** The client has gone, or the call was given up: nothing more is sent. */
  isCancelled = false;
  #wake: (() => void) | undefined;

  constructor(call: StreamCall) {
    this.#call = call;
  }

  /** Whether what was sent waits for the client. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Resolves when there is space for another message, or the call is cancelled. */
  async hasSpace(): Promise<void> {
    while (this.#isFull && !this.isCancelled) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  send(message: MessageBytes): void {
    this.#isFull = !this.#call.send(message);
  }

  drained(): void {
    this.#isFull = false;
    this.#wake?.();
  }

  cancel(): void {
    this.isCancelled = true;
    this.#wake?.();
  }

  /** Ends the call with an error, unless it is cancelled. */
  fail(error: unknown): void {
    if (!this.isCancelled) this.#call.end(toStatusError(error));
  }
}

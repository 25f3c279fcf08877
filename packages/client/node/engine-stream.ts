/** A stream of our own engine as an async iterable, with backpressure. */
import { GrpcCode } from "@quorate/proto";
import type { ClientCall, ClientCallEvents } from "@quorate/rpc";
import { LinkError, type LinkStream } from "../src/link.ts";
import { reasonOf } from "./link-reasons.ts";

/** Why the calls of a closed link ended. */
export const CLOSED = "the client is closed";

/** The call of a stream, as the client ends, holds back and feeds it. */
export type OpenedCall = Pick<ClientCall, "send" | "finish" | "cancel" | "pause" | "resume">;

/** Bytes of messages that wait for the loop before the stream is held back. */
const MAX_WAITING_BYTES: number = 256 * 1024;

export class EngineStream implements LinkStream, ClientCallEvents {
  readonly #check: (request: Uint8Array) => void;
  readonly #over: () => void;
  #call: OpenedCall | undefined;
  readonly #queue: Uint8Array[] = [];
  #waitingBytes = 0;
  #status: { readonly code: number; readonly message: string } | undefined;
  #isCancelled = false;
  #wake: () => void = () => {};

  /**
   * @param check throws for a request that is too large
   * @param over called once when the stream has ended
   */
  constructor(check: (request: Uint8Array) => void, over: () => void) {
    this.#check = check;
    this.#over = over;
  }

  /** The call has begun, whose events this receives. */
  opened(call: OpenedCall): void {
    this.#call = call;
  }

  send(message: Uint8Array): void {
    try {
      this.#check(message);
    } catch (error) {
      // As in gRPC: the stream ends with the error.
      const { grpcCode, message: why } = error as LinkError;
      this.#call?.cancel();
      this.ended({ code: grpcCode, message: why });
      return;
    }
    this.#call?.send(message);
  }

  finish(): void {
    this.#call?.finish();
  }

  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    if (this.#status === undefined) {
      this.#call?.cancel();
      this.#status = { code: GrpcCode.Canceled, message: "" };
      this.#over();
    }
    this.#wake();
  }

  /** The link is closed: the stream ends with CANCELED. */
  close(): void {
    this.#call?.cancel();
    this.ended({ code: GrpcCode.Canceled, message: CLOSED });
  }

  message(bytes: Uint8Array): void {
    this.#queue.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#call?.pause();
    this.#wake();
  }

  ended(status: { readonly code: number; readonly message: string }): void {
    if (this.#status !== undefined) return;
    this.#status = status;
    this.#over();
    this.#wake();
  }

  async *responses(): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (this.#isCancelled) return;
      const message = this.#queue.shift();
      if (message !== undefined) {
        this.#waitingBytes -= message.length;
        if (this.#waitingBytes <= MAX_WAITING_BYTES >>> 1) this.#call?.resume();
        yield message;
      } else if (this.#status !== undefined) {
        const { code, message: why } = this.#status;
        if (code === 0) return;
        throw new LinkError(code, reasonOf(why), true);
      } else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}

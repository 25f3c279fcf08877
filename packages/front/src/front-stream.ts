/** A stream of a front-end's on the member's thread. */
import { GrpcCode } from "@quorate/proto";
import {
  type CallContext,
  type MessageBytes,
  messageSize,
  type Status,
  type StreamCall,
  type StreamHandler,
  type StreamListener,
  statusOf,
} from "@quorate/rpc";
import { FrontGrpcCall, toFront } from "./front-call.ts";
import { ReceiveWindow, SendWindow, ToFront } from "./protocol.ts";
import { RingError } from "./ring.ts";

const OK: Status = { code: GrpcCode.OK, message: "" };
const NOTHING = new Uint8Array(0);

export class FrontStream extends FrontGrpcCall implements StreamCall {
  #listener: StreamListener = {};
  readonly #sending = new SendWindow();
  readonly #receiving = new ReceiveWindow();
  /** Messages that came while it was paused; bounded by the window. */
  #waiting: Uint8Array[] = [];
  #isPaused = false;
  #isDelivering = false;
  #isHalfClosed = false;
  #isEndDelivered = false;

  /** Gives the call to the service. */
  start(handler: StreamHandler): void {
    try {
      this.#listener = handler(this);
    } catch (error) {
      this.finish(statusOf(error));
    }
  }

  get context(): CallContext {
    return this;
  }

  get bufferedBytes(): number {
    return this.#sending.sentBytes;
  }

  send(message: MessageBytes): boolean {
    if (this.isEnded) return false;
    const size = messageSize(message);
    this.sent(size);
    this.shared.link.send(toFront(ToFront.Message, this.number), message);
    return this.#sending.sent(size) && !this.isEnded;
  }

  end(status: Status = OK): void {
    this.finish(status);
  }

  pause(): void {
    if (this.#isPaused || this.isEnded) return;
    this.#isPaused = true;
    this.shared.link.send(toFront(ToFront.Paused, this.number), NOTHING);
  }

  resume(): void {
    if (!this.#isPaused || this.isEnded) return;
    this.#isPaused = false;
    this.shared.link.send(toFront(ToFront.Resumed, this.number), NOTHING);
    this.#report();
    this.#deliver();
  }

  override message(bytes: Uint8Array): void {
    if (this.#isHalfClosed) throw new RingError("a message after the last one");
    this.#receiving.received(bytes.length);
    this.#waiting.push(bytes);
    this.#deliver();
    if (!this.#isPaused) this.#report();
  }

  override halfClosed(): void {
    if (this.#isHalfClosed) throw new RingError("a second half-close");
    this.#isHalfClosed = true;
    this.#deliver();
  }

  override taken(sizeBytes: number): void {
    if (this.#sending.taken(sizeBytes)) this.#call(this.#listener.drained);
  }

  protected override abandoned(): void {
    this.#call(this.#listener.cancelled);
  }

  /** Tells the front-end of bytes that are taken. */
  #report(): void {
    const taken = this.#receiving.take(false);
    if (taken === 0 || this.isEnded) return;
    this.shared.link.send(toFront(ToFront.Taken, this.number, 0, taken), NOTHING);
  }

  #deliver(): void {
    // A listener that calls resume is inside this loop already.
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    let next = 0;
    while (next < this.#waiting.length && !this.#isPaused && !this.isEnded) {
      const message = this.#waiting[next++];
      this.received(message.length);
      try {
        this.#listener.message?.(message);
      } catch (error) {
        this.finish(statusOf(error));
      }
    }
    this.#waiting.splice(0, next);
    this.#isDelivering = false;
    if (!this.#isHalfClosed || this.#isEndDelivered || this.#waiting.length > 0) return;
    if (this.#isPaused || this.isEnded) return;
    this.#isEndDelivered = true;
    this.#call(this.#listener.halfClosed);
  }

  #call(listener: (() => void) | undefined): void {
    try {
      listener?.call(this.#listener);
    } catch (error) {
      this.finish(statusOf(error));
    }
  }
}

/** A unary call of a front-end's on the member's thread. */
import { GrpcCode } from "@quorate/proto";
import {
  deliver,
  isLate,
  messageSize,
  type Receiver,
  type Status,
  statusOf,
  type UnaryHandler,
  type UnaryResponse,
  type UnaryResult,
} from "@quorate/rpc";
import { FrontGrpcCall } from "./front-call.ts";
import { ToFront, toFront } from "./protocol.ts";
import { RingError } from "./ring.ts";

export class FrontUnary extends FrontGrpcCall implements Receiver<UnaryResponse> {
  #isWorking = false;
  /** The status of a call that has ended while the service works on it. */
  #lateEnd: Status | undefined = undefined;

  /** Gives the request to the service. */
  handle(handler: UnaryHandler, request: Uint8Array): void {
    this.received(request.length);
    let result: UnaryResult;
    try {
      result = handler(request, this);
    } catch (error) {
      this.finish(statusOf(error));
      return;
    }
    if (isLate(result)) {
      this.#isWorking = true;
      deliver(result, this);
    } else this.#respond(result);
  }

  resolved(message: UnaryResponse): void {
    this.#isWorking = false;
    if (this.#lateEnd === undefined) this.#respond(message);
    else super.sendEnd(this.#lateEnd);
  }

  rejected(error: unknown): void {
    this.#isWorking = false;
    if (this.#lateEnd === undefined) this.finish(statusOf(error));
    else super.sendEnd(this.#lateEnd);
  }

  override message(): void {
    throw new RingError("a message of a unary call");
  }

  override again(): void {
    this.message();
  }

  override halfClosed(): void {
    throw new RingError("the half-close of a unary call");
  }

  override taken(): void {
    throw new RingError("messages of a unary call are taken");
  }

  /**
   * The front-end counts a call that its client has given up until the service has ended it, too.
   */
  protected override sendEnd(status: Status): void {
    if (this.#isWorking) this.#lateEnd = status;
    else super.sendEnd(status);
  }

  protected override abandoned(): void {}

  #respond(message: UnaryResponse): void {
    if (!this.settle(GrpcCode.OK)) return;
    this.sent(messageSize(message));
    this.shared.link.send(toFront(ToFront.Response, this.number), message);
    this.shared.ended(this.number);
  }
}

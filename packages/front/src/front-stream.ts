/** A stream of a front-end's on the member's thread. */
import { EMPTY, GrpcCode } from "@quorate/proto";
import {
  type CallContext,
  type CommonMessage,
  type MessageBytes,
  messageSize,
  type Status,
  type StreamCall,
  type StreamHandler,
  type StreamListener,
  statusOf,
} from "@quorate/rpc";
import { FrontGrpcCall } from "./front-call.ts";
import { Inbox, type InboxOwner } from "./inbox.ts";
import { repeatable, SendWindow, ToFront, toFront } from "./protocol.ts";
import { RingError } from "./ring.ts";

const OK: Status = { code: GrpcCode.OK, message: "" };

export class FrontStream extends FrontGrpcCall implements StreamCall, InboxOwner {
  #listener: StreamListener = {};
  readonly #sending = new SendWindow();
  readonly #inbox = new Inbox(this);
  /** The last message, if it may come again. */
  #last: Uint8Array | undefined;
  /** The list of the last message that it shared with others. */
  #lastList = 0;

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
    this.shared.fanOut.flush();
    this.shared.link.send(toFront(ToFront.Message, this.number), message);
    return this.#sending.sent(size) && !this.isEnded;
  }

  sendCommon(message: CommonMessage, own: Uint8Array): boolean {
    const { fanOut } = this.shared;
    if (!fanOut.takes(message, own)) return this.send([message.before, own, ...message.after]);
    if (this.isEnded) return false;
    const size = message.sizeBytes + own.length;
    this.sent(size);
    this.#lastList = fanOut.add(this.number, message, own, this.#lastList);
    return this.#sending.sent(size) && !this.isEnded;
  }

  end(status: Status = OK): void {
    this.finish(status);
  }

  pause(): void {
    this.#inbox.pause();
  }

  resume(): void {
    this.#inbox.resume();
  }

  override message(bytes: Uint8Array): void {
    this.#last = repeatable(bytes);
    this.#inbox.message(bytes);
  }

  override again(): void {
    if (this.#last === undefined) throw new RingError("no message comes again");
    this.#inbox.message(this.#last);
  }

  override halfClosed(): void {
    this.#inbox.halfClosed();
  }

  get isOpen(): boolean {
    return !this.isEnded;
  }

  take(message: Uint8Array): void {
    this.received(message.length);
    try {
      this.#listener.message?.(message);
    } catch (error) {
      this.finish(statusOf(error));
    }
  }

  takeEnd(): void {
    this.#call(this.#listener.halfClosed);
  }

  tell(kind: number, value = 0): void {
    this.shared.link.send(toFront(kind, this.number, 0, value), EMPTY);
  }

  override taken(sizeBytes: number): void {
    if (this.#sending.taken(sizeBytes)) this.#call(this.#listener.drained);
  }

  protected override abandoned(): void {
    this.#call(this.#listener.cancelled);
  }

  protected override sendEnd(status: Status): void {
    this.shared.fanOut.flush();
    super.sendEnd(status);
  }

  #call(listener: (() => void) | undefined): void {
    try {
      listener?.call(this.#listener);
    } catch (error) {
      this.finish(statusOf(error));
    }
  }
}

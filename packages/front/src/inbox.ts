/** What a front-end sends of one call: in order, within its window, and not while it is paused. */
import { ReceiveWindow, ToFront } from "./protocol.ts";
import { RingError } from "./ring.ts";

/** The call whose messages they are. */
export interface InboxOwner {
  /** It has not ended: it takes messages, and may send records. */
  readonly isOpen: boolean;
  take(message: Uint8Array): void;
  /** All messages are taken, and the last one was said to be the last. Called once. */
  takeEnd(): void;
  /** Sends a record without bytes. */
  tell(kind: number, value?: number): void;
}

export class Inbox {
  readonly #owner: InboxOwner;
  readonly #window = new ReceiveWindow();
  /** Messages that came while it was paused; bounded by the window. */
  #waiting: Uint8Array[] = [];
  #isPaused = false;
  #isDelivering = false;
  #isHalfClosed = false;
  #isEndDelivered = false;

  constructor(owner: InboxOwner) {
    this.#owner = owner;
  }

  pause(): void {
    if (this.#isPaused || !this.#owner.isOpen) return;
    this.#isPaused = true;
    this.#owner.tell(ToFront.Paused);
  }

  resume(): void {
    if (!this.#isPaused || !this.#owner.isOpen) return;
    this.#isPaused = false;
    this.#owner.tell(ToFront.Resumed);
    this.#report();
    this.#deliver();
  }

  /** @throws RingError behind the last message, or beyond the window */
  message(bytes: Uint8Array): void {
    if (this.#isHalfClosed) throw new RingError("a message after the last one");
    this.#window.received(bytes.length);
    const isNext = this.#waiting.length === 0 && !this.#isDelivering;
    if (isNext && !this.#isPaused && this.#owner.isOpen) this.#owner.take(bytes);
    else {
      this.#waiting.push(bytes);
      this.#deliver();
    }
    if (!this.#isPaused) this.#report();
  }

  /** @throws RingError the second time */
  halfClosed(): void {
    if (this.#isHalfClosed) throw new RingError("a second half-close");
    this.#isHalfClosed = true;
    this.#deliver();
  }

  /** Forgets what waits: the call has ended. */
  clear(): void {
    this.#waiting = [];
  }

  /** Tells the front-end of bytes that are taken. */
  #report(): void {
    const taken = this.#window.take(false);
    if (taken > 0 && this.#owner.isOpen) this.#owner.tell(ToFront.Taken, taken);
  }

  #deliver(): void {
    // An owner that calls resume is inside this loop already.
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    let next = 0;
    while (!this.#isPaused && this.#owner.isOpen) {
      const one = this.#waiting[next];
      if (one === undefined) break;
      next++;
      this.#owner.take(one);
    }
    this.#waiting.splice(0, next);
    this.#isDelivering = false;
    if (!this.#isHalfClosed || this.#isEndDelivered || this.#waiting.length > 0) return;
    if (this.#isPaused || !this.#owner.isOpen) return;
    this.#isEndDelivered = true;
    this.#owner.takeEnd();
  }
}

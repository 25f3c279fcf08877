/**
 * The window of messages in flight to one follower: a ring of (index of the last entry, bytes),
 * oldest first.
 */
import { violated } from "./invariants.ts";

export class Inflights {
  readonly maxMessages: number;
  readonly maxBytes: number;
  readonly #indexes: number[] = [];
  readonly #sizes: number[] = [];
  #start = 0;
  #count = 0;
  #bytes = 0;

  /**
   * Full at maxMessages messages, or once maxBytes bytes are reached: the message that reaches them
   * still fits.
   */
  constructor(maxMessages: number, maxBytes: number) {
    this.maxMessages = maxMessages;
    this.maxBytes = maxBytes;
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get full(): boolean {
    return this.#count >= this.maxMessages || this.#bytes >= this.maxBytes;
  }

  /** Adds a message. @param index of its last entry, above that of the message before */
  add(index: number, bytes: number): void {
    if (this.#count >= this.maxMessages) violated("RAFT-13", `${this.#count} messages in flight`);
    const size = this.#indexes.length;
    if (this.#count > 0 && this.#indexes[(this.#start + this.#count - 1) % size] >= index) {
      violated(
        "RAFT-13",
        `index ${index} after ${this.#indexes[(this.#start + this.#count - 1) % size]}`,
      );
    }
    if (this.#count === size) this.#grow();
    const at = (this.#start + this.#count) % this.#indexes.length;
    this.#indexes[at] = index;
    this.#sizes[at] = bytes;
    this.#count++;
    this.#bytes += bytes;
  }

  /** Doubles the ring: most followers never need all of it. */
  #grow(): void {
    const ordered = this.#indexes.map((_, i) => (this.#start + i) % this.#indexes.length);
    const indexes = ordered.map((at) => this.#indexes[at]);
    const sizes = ordered.map((at) => this.#sizes[at]);
    const size = Math.min(Math.max(2 * indexes.length, 4), this.maxMessages);
    for (let i = 0; i < size; i++) {
      this.#indexes[i] = indexes[i] ?? 0;
      this.#sizes[i] = sizes[i] ?? 0;
    }
    this.#start = 0;
  }

  /** Forgets the messages whose last entry is not above index. */
  freeUpTo(index: number): void {
    while (this.#count > 0 && this.#indexes[this.#start] <= index) {
      this.#bytes -= this.#sizes[this.#start];
      this.#start = (this.#start + 1) % this.#indexes.length;
      this.#count--;
    }
  }

  /** Forgets all messages. */
  reset(): void {
    this.#start = 0;
    this.#count = 0;
    this.#bytes = 0;
  }
}

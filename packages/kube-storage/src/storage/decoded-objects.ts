/**
 * Which stored objects keep their parsed form. A parsed object takes several times the memory of
 * its text, and most stored objects are read rarely, so only the latest ones keep it.
 */

/** Something that can drop a form that it can make again. */
export interface Droppable {
  dropDecoded(): void;
}

/**
 * Encoded bytes of the objects that keep their parsed form. With less, a large object that is being
 * written and one other drop each other's, and each step of the write parses again.
 */
const MAX_DECODED_BYTES: number = 1 << 20;

/** A queue of objects with parsed forms, bounded in bytes. One serves all storages of a server. */
export class DecodedObjects {
  readonly #maxBytes: number;
  /** A ring in the order of arrival; `#first` is the oldest. */
  readonly #queue: { item: Droppable; bytes: number }[] = [];
  #first = 0;
  #bytes = 0;

  /** @param maxBytes of the encoded forms */
  constructor(maxBytes = MAX_DECODED_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of the encoded forms of all objects that keep their parsed one. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `item` has a parsed form now. The oldest ones drop theirs, so that the sum fits. */
  add(item: Droppable, bytes: number): void {
    this.#queue.push({ item, bytes });
    this.#bytes += bytes;
    // The latest stays in any case: its caller works with it.
    while (this.#bytes > this.#maxBytes && this.#first < this.#queue.length - 1) {
      const oldest = this.#queue[this.#first++];
      this.#bytes -= oldest.bytes;
      oldest.item.dropDecoded();
    }
    if (this.#first > 1024 && this.#first * 2 > this.#queue.length) {
      this.#queue.splice(0, this.#first);
      this.#first = 0;
    }
  }
}

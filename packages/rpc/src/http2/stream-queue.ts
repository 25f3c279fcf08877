/** A queue of streams that take turns. */
import type { Http2Stream } from "./stream.ts";

const MIN_FORGOTTEN = 64;

export class StreamQueue {
  #streams: (Http2Stream | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#streams.length - this.#head;
  }

  /** Appends a stream, if it is not in the queue. */
  push(stream: Http2Stream): void {
    if (stream.queued) return;
    stream.queued = true;
    this.#streams.push(stream);
  }

  shift(): Http2Stream | undefined {
    if (this.#head === this.#streams.length) return undefined;
    const stream = this.#streams[this.#head]!;
    this.#streams[this.#head++] = undefined;
    stream.queued = false;
    if (this.#head === this.#streams.length) {
      this.#streams.length = 0;
      this.#head = 0;
    } else if (this.#head >= MIN_FORGOTTEN && this.#head * 2 > this.#streams.length) {
      this.#streams.splice(0, this.#head);
      this.#head = 0;
    }
    return stream;
  }
}

/** The unsent output of a stream: pieces of the body, then perhaps the end of the server's side. */
import { EMPTY } from "@quorate/proto";
import type { FieldList } from "./field-encoder.ts";
import type { Output } from "./output.ts";

/** Sent pieces are dropped once there are this many and they are most of the list. */
const MIN_FORGOTTEN = 64;

export class PendingSend {
  sizeBytes = 0;
  /** How the server's side ends behind the pieces: with these trailers, or plainly. */
  ending: FieldList | "plain" | undefined = undefined;
  #pieces: Uint8Array[] = [];
  /** The first piece that is not completely sent, and how much of it is. */
  #next = 0;
  #offset = 0;

  /** Adds pieces of so many bytes in total; keeps the list itself if nothing is waiting yet. */
  push(pieces: Uint8Array[], sizeBytes: number): void {
    if (this.sizeBytes === 0) {
      this.#pieces = pieces;
      this.#next = 0;
      this.#offset = 0;
    } else for (let i = 0; i < pieces.length; i++) this.#pieces.push(pieces[i]);
    this.sizeBytes += sizeBytes;
  }

  /** Moves the next n bytes to the output; at least n must be waiting. */
  moveTo(out: Output, n: number): void {
    this.sizeBytes -= n;
    while (n > 0) {
      const piece = this.#pieces[this.#next];
      const end = Math.min(piece.length, this.#offset + n);
      out.append(piece, this.#offset, end);
      n -= end - this.#offset;
      this.#offset = end;
      if (end < piece.length) return;
      this.#pieces[this.#next++] = EMPTY;
      this.#offset = 0;
    }
    if (this.#next >= MIN_FORGOTTEN && this.#next * 2 > this.#pieces.length) {
      this.#pieces.copyWithin(0, this.#next);
      this.#pieces.length -= this.#next;
      this.#next = 0;
    }
  }
}

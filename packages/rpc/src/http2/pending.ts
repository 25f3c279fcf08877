/** The unsent output of a stream: pieces of the body, then perhaps the end of the server's side. */
import { EMPTY } from "@quorate/proto";
import type { PieceSource } from "../service.ts";
import type { FieldList } from "./field-encoder.ts";
import type { Output } from "./output.ts";

/** Sent pieces are dropped once there are this many and they are most of the list. */
const MIN_FORGOTTEN = 64;

/** A piece, or what makes pieces. */
export type SendPiece = Uint8Array | PieceSource;

export class PendingSend {
  sizeBytes = 0;
  /** How the server's side ends behind the pieces: with these trailers, or plainly. */
  ending: FieldList | "plain" | undefined = undefined;
  #pieces: SendPiece[] = [];
  /** The first of #pieces that was not begun. */
  #next = 0;
  /** The piece that is not taken whole, how much of it is, and what made it. */
  #piece: Uint8Array = EMPTY;
  #offset = 0;
  #source: PieceSource | undefined = undefined;

  /** Adds pieces of so many bytes in total; keeps the list itself if nothing is waiting yet. */
  push(pieces: SendPiece[], sizeBytes: number): void {
    if (this.sizeBytes === 0) {
      this.#pieces = pieces;
      this.#next = 0;
      this.#piece = EMPTY;
      this.#offset = 0;
      this.#source = undefined;
    } else for (let i = 0; i < pieces.length; i++) this.#pieces.push(pieces[i]);
    this.sizeBytes += sizeBytes;
  }

  /** Moves the next n bytes to the output; at least n must be waiting. */
  moveTo(out: Output, n: number): void {
    this.sizeBytes -= n;
    let piece = this.#piece;
    let offset = this.#offset;
    while (n > 0) {
      if (offset === piece.length) {
        piece = this.#take();
        offset = 0;
      }
      const end = Math.min(piece.length, offset + n);
      out.append(piece, offset, end);
      n -= end - offset;
      offset = end;
    }
    this.#piece = offset === piece.length ? EMPTY : piece;
    this.#offset = offset === piece.length ? 0 : offset;
    if (this.#next >= MIN_FORGOTTEN && this.#next * 2 > this.#pieces.length) {
      this.#pieces.copyWithin(0, this.#next);
      this.#pieces.length -= this.#next;
      this.#next = 0;
    }
  }

  /** The next piece, which may be empty. */
  #take(): Uint8Array {
    const made = this.#source?.next();
    if (made !== undefined) return made;
    const piece = this.#pieces[this.#next];
    this.#pieces[this.#next++] = EMPTY;
    if (piece instanceof Uint8Array) {
      this.#source = undefined;
      return piece;
    }
    this.#source = piece;
    return EMPTY;
  }
}

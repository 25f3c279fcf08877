/** The body of a request while it arrives: within a length, and within the budgets for requests. */

/** What counts the bytes: an HttpExchange. */
interface Holder {
  hold(sizeBytes: number): boolean;
}

/** Why a body is not taken. */
export type BodyRefusal = "too long" | "no memory";

export class HeldBody {
  readonly #exchange: Holder;
  readonly #maxBytes: number;
  #pieces: Uint8Array[] = [];
  #sizeBytes = 0;
  #isRefused = false;

  /** @param maxBytes longest body */
  constructor(exchange: Holder, maxBytes: number) {
    this.#exchange = exchange;
    this.#maxBytes = maxBytes;
  }

  /**
   * Takes the next piece.
   * @returns why the body is refused, once; undefined while it is not, and for what follows then
   */
  push(piece: Uint8Array): BodyRefusal | undefined {
    if (this.#isRefused) return undefined;
    this.#sizeBytes += piece.length;
    if (this.#sizeBytes > this.#maxBytes) return this.#refuse("too long");
    if (!this.#exchange.hold(piece.length)) return this.#refuse("no memory");
    this.#pieces.push(piece);
    return undefined;
  }

  /** A piece was refused: there is no body to take. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** The whole body; it is not kept. Of one piece it is that piece. */
  take(): Uint8Array {
    const pieces = this.#pieces;
    this.#pieces = [];
    const [only] = pieces;
    if (only !== undefined && pieces.length === 1) return only;
    const body = new Uint8Array(this.#sizeBytes);
    let at = 0;
    for (const piece of pieces) {
      body.set(piece, at);
      at += piece.length;
    }
    return body;
  }

  /** Takes nothing more, and forgets what there is. */
  drop(): void {
    this.#isRefused = true;
    this.#pieces = [];
  }

  #refuse(why: BodyRefusal): BodyRefusal {
    this.drop();
    return why;
  }
}

/**
 * The latest streams that ended, so that a late frame can be told from a wrong one. Only looked at
 * for frames of streams that are not open.
 */

/** How many are remembered of each kind; a power of two. */
const REMEMBERED = 128;

export class ClosedStreams {
  readonly #ended = new Int32Array(REMEMBERED);
  readonly #cut = new Int32Array(REMEMBERED);
  #endedCount = 0;
  #cutCount = 0;

  /** Remembers a stream that both sides ended, or the client reset. */
  addEnded(id: number): void {
    this.#ended[this.#endedCount++ & (REMEMBERED - 1)] = id;
  }

  /** Remembers a stream that we reset, on which the client may still be sending in good faith. */
  addCut(id: number): void {
    this.#cut[this.#cutCount++ & (REMEMBERED - 1)] = id;
  }

  wasEnded(id: number): boolean {
    return this.#ended.includes(id);
  }

  wasCut(id: number): boolean {
    return this.#cut.includes(id);
  }
}

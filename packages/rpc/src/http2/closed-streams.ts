/**
 * The latest streams that ended, so that a late frame can be distinguished from a wrong one. Read
 * only for frames of streams that are not open.
 */

/** Number of streams remembered of each kind; a power of two. */
const REMEMBERED = 128;

export class ClosedStreams {
  readonly #ended = new Int32Array(REMEMBERED);
  readonly #cut = new Int32Array(REMEMBERED);
  #endedCount = 0;
  #cutCount = 0;

  /** Remembers a stream that both sides ended, or that the client reset. */
  addEnded(id: number): void {
    this.#ended[this.#endedCount++ & (REMEMBERED - 1)] = id;
  }

  /**
   * Remembers a stream that the server reset; frames that the client sent before it knew may still
   * arrive.
   */
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

/** One warning at most in an interval, for what a client can cause at any rate. */
export class WarningInterval {
  readonly #intervalMs: number;
  #lastMs = Number.NEGATIVE_INFINITY;
  #omitted = 0;

  /** @param intervalMs more than 0 */
  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  /**
   * Returns how many warnings were omitted since the last one, or undefined if this one must be
   * omitted too.
   */
  pass(nowMs: number): number | undefined {
    if (nowMs - this.#lastMs < this.#intervalMs) {
      this.#omitted++;
      return undefined;
    }
    this.#lastMs = nowMs;
    const omitted = this.#omitted;
    this.#omitted = 0;
    return omitted;
  }
}

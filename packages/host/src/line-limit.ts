/**
 * Rate limit for log lines that unknown clients can cause: a burst, then a rate per second; the
 * next line counts those dropped.
 */
const BURST_LINES = 20;
const LINES_PER_SECOND = 2;

export class LineLimit {
  #tokens = BURST_LINES;
  #filledMs = 0;
  #omitted = 0;

  /** The fields to add to an allowed line, or undefined if the line must be dropped. */
  allow(nowMs: number): { readonly "omitted-lines"?: number } | undefined {
    this.#tokens = Math.min(
      BURST_LINES,
      this.#tokens + ((nowMs - this.#filledMs) / 1000) * LINES_PER_SECOND,
    );
    this.#filledMs = nowMs;
    if (this.#tokens < 1) {
      this.#omitted++;
      return undefined;
    }
    this.#tokens--;
    const omitted = this.#omitted;
    this.#omitted = 0;
    return omitted === 0 ? {} : { "omitted-lines": omitted };
  }
}

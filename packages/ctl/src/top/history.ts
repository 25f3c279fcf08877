/** The last values of one figure, oldest first: what sparklines and graphs are drawn from. */

/** Values that are kept of each figure: five minutes at one a second. */
export const HISTORY_SAMPLES = 300;

/** A ring of numbers; NaN stands for a time at which nothing was known. */
export class History {
  readonly #values = new Float64Array(HISTORY_SAMPLES);
  #count = 0;

  push(value: number | undefined): void {
    this.#values[this.#count % HISTORY_SAMPLES] = value ?? Number.NaN;
    this.#count++;
  }

  /** How many values there are, HISTORY_SAMPLES at the most. */
  get length(): number {
    return Math.min(this.#count, HISTORY_SAMPLES);
  }

  /** The newest `count` values, or as many as there are, oldest first. */
  last(count: number): number[] {
    const size = Math.min(Math.max(count, 0), this.length);
    return Array.from(
      { length: size },
      (_, i) => this.#values[(this.#count - size + i) % HISTORY_SAMPLES],
    );
  }
}

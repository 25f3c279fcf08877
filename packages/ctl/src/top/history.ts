/** The last values of one figure, for sparklines and graphs. */

/** Values kept per figure: five minutes at one per second. */
export const HISTORY_SAMPLES = 300;

/** A ring buffer of numbers; NaN is an unknown value. */
export class History {
  readonly #values = new Float64Array(HISTORY_SAMPLES);
  #count = 0;

  push(value: number | undefined): void {
    this.#values[this.#count % HISTORY_SAMPLES] = value ?? Number.NaN;
    this.#count++;
  }

  /** The number of values, at most HISTORY_SAMPLES. */
  get length(): number {
    return Math.min(this.#count, HISTORY_SAMPLES);
  }

  /** The newest `count` values, or all if there are fewer, oldest first. */
  last(count: number): number[] {
    const size = Math.min(Math.max(count, 0), this.length);
    const next = this.#count % HISTORY_SAMPLES;
    const all = [...this.#values.subarray(next), ...this.#values.subarray(0, next)];
    return all.slice(HISTORY_SAMPLES - size);
  }
}

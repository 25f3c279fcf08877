/** Bytes of one kind that a connection counts in a budget, as one figure that rises and falls. */
import type { ByteBudget } from "../http2/byte-budget.ts";

export class CountedBytes {
  sizeBytes = 0;
  readonly #budget: ByteBudget;

  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  /** Counts so many bytes from now on. Returns false, and changes nothing, without a budget. */
  set(sizeBytes: number): boolean {
    const more = sizeBytes - this.sizeBytes;
    if (more > 0 && !this.#budget.take(more)) return false;
    if (more < 0) this.#budget.give(-more);
    this.sizeBytes = sizeBytes;
    return true;
  }
}

/** A set of key intervals with a test for a key. Sorted at the first test after an addition. */

interface Interval {
  readonly from: string;
  /** Excluded. */
  readonly to: string;
}

export class DeletedKeys {
  #intervals: Interval[] = [];
  #sorted = true;

  /** Adds one key (no rangeEnd), or those from `key` (included) to `rangeEnd` (excluded). */
  add(key: string, rangeEnd: string): void {
    const to = rangeEnd === "" ? `${key}\0` : rangeEnd;
    // Also ignores a range without an upper bound ("\0"), like etcd's check.
    if (to <= key) return;
    this.#intervals.push({ from: key, to });
    this.#sorted = false;
  }

  addAll(other: DeletedKeys): void {
    if (other.#intervals.length === 0) return;
    this.#intervals = this.#intervals.concat(other.#intervals);
    this.#sorted = false;
  }

  /** True if an interval covers the key. */
  has(key: string): boolean {
    if (this.#intervals.length === 0) return false;
    if (!this.#sorted) this.#sort();
    const intervals = this.#intervals;
    let low = 0;
    let high = intervals.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (intervals[middle].from <= key) low = middle + 1;
      else high = middle;
    }
    return low > 0 && key < intervals[low - 1].to;
  }

  /** Sorts the intervals and merges those that overlap. */
  #sort(): void {
    const joined: Interval[] = [];
    for (const next of this.#intervals.sort((a, b) =>
      a.from < b.from ? -1 : a.from > b.from ? 1 : 0,
    )) {
      const last = joined.at(-1);
      if (last === undefined || next.from > last.to) joined.push(next);
      else if (next.to > last.to) joined[joined.length - 1] = { from: last.from, to: next.to };
    }
    this.#intervals = joined;
    this.#sorted = true;
  }
}

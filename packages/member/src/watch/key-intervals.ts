/**
 * A set of key ranges, put in order once, that finds whether another range overlaps one of them.
 */
import type { KeyRange } from "@quorate/store";

/** From `from` (included) to `to` (excluded; undefined: to the end). */
interface Interval {
  readonly from: string;
  readonly to: string | undefined;
}

function intervalOf(range: KeyRange): Interval {
  return range.single
    ? { from: range.key, to: `${range.key}\0` }
    : { from: range.key, to: range.to };
}

/** True if an interval that ends at `end` ends before `key`, or at it. */
function endsBefore(end: string | undefined, key: string): boolean {
  return end !== undefined && end <= key;
}

export class KeyIntervals {
  /** In order, without a touch or overlap between two of them. */
  readonly #intervals: Interval[] = [];

  constructor(ranges: readonly KeyRange[]) {
    const sorted = ranges
      .map(intervalOf)
      .sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0));
    for (const next of sorted) {
      const last = this.#intervals.at(-1);
      if (last === undefined || (last.to !== undefined && last.to < next.from))
        this.#intervals.push(next);
      else if (last.to !== undefined && (next.to === undefined || next.to > last.to)) {
        this.#intervals[this.#intervals.length - 1] = { from: last.from, to: next.to };
      }
    }
  }

  overlaps(range: KeyRange): boolean {
    const { from, to } = intervalOf(range);
    const intervals = this.#intervals;
    // The first interval that does not end before the range begins.
    let low = 0;
    let high = intervals.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (endsBefore(intervals[middle].to, from)) low = middle + 1;
      else high = middle;
    }
    return low < intervals.length && !endsBefore(to, intervals[low].from);
  }
}

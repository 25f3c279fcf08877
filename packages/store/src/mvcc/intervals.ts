/**
 * Disjoint intervals of keys in order, found by binary search, and the merging of several lists of
 * them. A merge goes on by a bounded number of steps with each question; until it is done, the
 * lists that are left are asked one after the other, so that no question waits for a whole merge.
 *
 *     role r1  [a, c)  [f, g)        [a, e)  [f, g)      covers("b", "d")  yes
 *     role r2  [b, e)           ->                       covers("d", "f")  no
 */

import type { KeyRange } from "./read-view.ts";

/** The end of an interval without one: every key is below it. */
export const OPEN: unique symbol = Symbol("open");
export type End = string | typeof OPEN;

/** Keys, as latin1, from `begin` up to but without `end`. */
export interface Interval {
  readonly begin: string;
  readonly end: End;
}

/** The interval of a request's range. */
export function intervalOf(range: KeyRange): Interval {
  const { key } = range;
  return { begin: key, end: range.single ? `${key}\0` : (range.to ?? OPEN) };
}

/** What can be asked whether it holds a whole interval. */
export interface Coverage {
  /** Intervals, at most; it does not change. */
  readonly size: number;
  /** True if every key of an interval is in; one that ends before it begins is its begin. */
  covers(interval: Interval): boolean;
}

/** Steps that a merge goes on by with each question: some 0.2 ms. */
export const MERGE_STEPS = 2048;
/** Lists that are asked for one question before the merge is brought to its end instead. */
const MAX_LOOKUPS = 4096;

/** Whether an interval that ends at `end` goes as far as one that ends at `other`. */
export function reaches(end: End, other: End): boolean {
  if (end === OPEN) return true;
  return other !== OPEN && end >= other;
}

/** One list; intervals that touch or overlap are one. */
export class Intervals implements Coverage {
  readonly #begins: string[] = [];
  readonly #ends: End[] = [];

  /** Those of intervals in any order; what is in order already takes no time to sort. */
  static of(intervals: readonly Interval[]): Intervals {
    const made = new Intervals();
    for (const { begin, end } of intervals.toSorted(byBegin)) made.add(begin, end);
    return made;
  }

  get size(): number {
    return this.#begins.length;
  }

  /** Adds an interval that begins where the last one does, or later. */
  add(begin: string, end: End): void {
    // An empty interval has no key.
    if (end !== OPEN && end <= begin) return;
    const last = this.#ends.length - 1;
    if (last >= 0 && reaches(this.#ends[last], begin)) {
      if (!reaches(this.#ends[last], end)) this.#ends[last] = end;
      return;
    }
    this.#begins.push(begin);
    this.#ends.push(end);
  }

  begin(index: number): string {
    return this.#begins[index];
  }

  end(index: number): End {
    return this.#ends[index];
  }

  /** The end of the interval that a key is in; undefined: it is in none. */
  endAt(key: string): End | undefined {
    const begins = this.#begins;
    let low = 0;
    let high = begins.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (begins[middle] <= key) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return undefined;
    const end = this.#ends[low - 1];
    return end === OPEN || end > key ? end : undefined;
  }

  covers({ begin, end }: Interval): boolean {
    const reached = this.endAt(begin);
    return reached !== undefined && reaches(reached, end);
  }

  /** True if some key of an interval is in. */
  overlaps({ begin, end }: Interval): boolean {
    const ends = this.#ends;
    // The first interval that does not end before the other begins.
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const one = ends[middle];
      if (one === OPEN || one > begin) high = middle;
      else low = middle + 1;
    }
    return low < ends.length && (end === OPEN || this.#begins[low] < end);
  }
}

function byBegin(a: Interval, b: Interval): number {
  return a.begin < b.begin ? -1 : a.begin > b.begin ? 1 : 0;
}

/** Two lists that are being merged. */
interface Merge {
  readonly a: Intervals;
  readonly b: Intervals;
  readonly into: Intervals;
  /** The next of each. */
  ofA: number;
  ofB: number;
}

/** Several lists, which become one while they are asked. */
export class MergingIntervals implements Coverage {
  readonly size: number;
  readonly #stepsPerQuestion: number;
  /** All lists; the first two are those of `#merge`. */
  #lists: Intervals[];
  #merge: Merge | undefined;

  constructor(lists: readonly Intervals[], stepsPerQuestion: number = MERGE_STEPS) {
    this.#stepsPerQuestion = stepsPerQuestion;
    this.#lists = lists.filter(({ size }) => size > 0);
    this.size = this.#lists.reduce((sum, { size }) => sum + size, 0);
  }

  /** Lists that are left; one at most when it is merged. */
  get lists(): number {
    return this.#lists.length;
  }

  covers(interval: Interval): boolean {
    if (this.#lists.length > 1) this.#advance(this.#stepsPerQuestion);
    if (this.#lists.length > 1) {
      const verdict = this.#coversByLists(interval);
      if (verdict !== undefined) return verdict;
      this.#advance(Number.POSITIVE_INFINITY);
    }
    return this.#lists.length > 0 && this.#lists[0].covers(interval);
  }

  /** The verdict by the lists as they are; undefined where that would take too many looks. */
  #coversByLists({ begin, end }: Interval): boolean | undefined {
    let key = begin;
    for (let looks = 0; looks < MAX_LOOKUPS; looks += this.#lists.length) {
      let farthest: End | undefined;
      for (const list of this.#lists) {
        const reached = list.endAt(key);
        if (reached !== undefined && (farthest === undefined || reaches(reached, farthest)))
          farthest = reached;
      }
      if (farthest === undefined) return false;
      if (farthest === OPEN || reaches(farthest, end)) return true;
      key = farthest;
    }
    return undefined;
  }

  #advance(steps: number): void {
    let left = steps;
    while (this.#lists.length > 1) {
      const [a, b] = this.#lists;
      this.#merge ??= { a, b, into: new Intervals(), ofA: 0, ofB: 0 };
      left = mergeSome(this.#merge, left);
      if (left <= 0) return;
      // The longer ones go to the end, so that each interval is looked at log(lists) times.
      this.#lists = [...this.#lists.slice(2), this.#merge.into];
      this.#merge = undefined;
    }
  }
}

/** Goes on with a merge. @returns the steps that are left; none where it is not at its end */
function mergeSome(merge: Merge, steps: number): number {
  const { a, b, into } = merge;
  let { ofA, ofB } = merge;
  let left = steps;
  for (; left > 0 && (ofA < a.size || ofB < b.size); left--) {
    const isOfA = ofB >= b.size || (ofA < a.size && a.begin(ofA) <= b.begin(ofB));
    if (isOfA) into.add(a.begin(ofA), a.end(ofA++));
    else into.add(b.begin(ofB), b.end(ofB++));
  }
  merge.ofA = ofA;
  merge.ofB = ofB;
  return ofA < a.size || ofB < b.size ? 0 : Math.max(left, 1);
}

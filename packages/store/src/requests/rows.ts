/**
 * The rows of a range's answer, collected in key order and returned in the order asked for. Memory follows the limit, not the range, and
 * sorting runs in steps.
 */
import { STEP_BYTES, type Steps } from "../steps.ts";

/** Comparisons that one step makes, at most: some 0.2 ms. */
const STEP_COMPARES = 1024;
/** Rows, and bytes of records, that may be kept beyond the limit however small that is. */
const MAX_SPARE_ROWS = 1024;
const MAX_SPARE_BYTES: number = 16 * STEP_BYTES;

/** Negative, 0 or positive, as `a` belongs before `b`, beside it or after it. */
export type CompareRows<R> = (a: R, b: R) => number;

/** Keeps the `limit` rows (0: all) that come first in some order. */
export interface RowBuffer<R> {
  /** Adds a row that holds `sizeBytes` of memory of its own. */
  add(row: R, sizeBytes: number): void;
  /** Rows that were added, those that the limit dropped included. */
  readonly total: number;
  /** True when `cut` is due. */
  readonly isFull: boolean;
  /** Drops what the limit leaves out; returns what is left to be done for that, in steps. */
  cut(): Steps<void> | undefined;
  /** The rows in their order, right after a cut. Nothing may be added afterwards. */
  result(): R[];
}

/** The order in which the rows come. */
export class FirstRows<R> implements RowBuffer<R> {
  readonly #most: number;
  readonly #rows: R[] = [];
  readonly isFull = false;
  total = 0;

  constructor(limit: number) {
    this.#most = limit > 0 ? limit : Number.POSITIVE_INFINITY;
  }

  add(row: R): void {
    if (this.total++ < this.#most) this.#rows.push(row);
  }

  cut(): undefined {}

  result(): R[] {
    return this.#rows;
  }
}

/** The opposite of the order in which the rows come. */
export class LastRows<R> implements RowBuffer<R> {
  readonly #limit: number;
  #rows: R[] = [];
  readonly #spare: Spare;
  total = 0;

  constructor(limit: number) {
    this.#limit = limit;
    this.#spare = new Spare(limit);
  }

  get isFull(): boolean {
    return this.#spare.isDue(this.#rows.length);
  }

  add(row: R, sizeBytes: number): void {
    this.total++;
    this.#rows.push(row);
    this.#spare.add(sizeBytes);
  }

  cut(): undefined {
    this.#spare.cut(this.#rows.length);
    if (this.#limit > 0 && this.#rows.length > this.#limit) this.#rows = this.#rows.slice(-this.#limit);
  }

  result(): R[] {
    return this.#rows.reverse();
  }
}

/** The order of a comparison; equal rows stay in the order in which they came. */
export class SortedRows<R> implements RowBuffer<R> {
  readonly #limit: number;
  readonly #compare: CompareRows<R>;
  #rows: R[] = [];
  readonly #spare: Spare;
  /** The last row within the limit, once there were that many. */
  #worst: R | undefined;
  total = 0;

  constructor(limit: number, compare: CompareRows<R>) {
    this.#limit = limit;
    this.#spare = new Spare(limit);
    this.#compare = compare;
  }

  get isFull(): boolean {
    return this.#spare.isDue(this.#rows.length);
  }

  add(row: R, sizeBytes: number): void {
    this.total++;
    if (this.#worst !== undefined && this.#compare(row, this.#worst) >= 0) return;
    this.#rows.push(row);
    this.#spare.add(sizeBytes);
  }

  *cut(): Steps<void> {
    this.#spare.cut(this.#rows.length);
    const sorted = yield* mergeSort(this.#rows, this.#compare);
    if (this.#limit > 0 && sorted.length > this.#limit) sorted.length = this.#limit;
    if (sorted.length === this.#limit) this.#worst = sorted[sorted.length - 1];
    this.#rows = sorted;
  }

  result(): R[] {
    return this.#rows;
  }
}

/** Decides when to cut: a cut costs what sorting all rows costs, so it waits until rows or bytes have doubled since the last one. */
class Spare {
  readonly #limit: number;
  /** Bytes of the rows that the last cut left, about. */
  #heldBytes = 0;
  #spareBytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(sizeBytes: number): void {
    this.#spareBytes += sizeBytes;
  }

  isDue(rows: number): boolean {
    const spare = this.#limit > 0 ? rows - this.#limit : 0;
    if (spare <= 0) return false;
    return spare >= Math.max(MAX_SPARE_ROWS, this.#limit) || this.#spareBytes >= Math.max(MAX_SPARE_BYTES, this.#heldBytes);
  }

  cut(rows: number): void {
    const share = this.#limit > 0 && rows > this.#limit ? this.#limit / rows : 1;
    this.#heldBytes = (this.#heldBytes + this.#spareBytes) * share;
    this.#spareBytes = 0;
  }
}

/** The rows in order; equal ones keep theirs. */
export function* mergeSort<R>(rows: R[], compare: CompareRows<R>): Steps<R[]> {
  let from = rows;
  let to = new Array<R>(rows.length);
  let placed = 0;
  for (let width = 1; width < rows.length; width *= 2) {
    for (let start = 0; start < rows.length; start += 2 * width) {
      const middle = Math.min(start + width, rows.length);
      const end = Math.min(start + 2 * width, rows.length);
      let left = start;
      let right = middle;
      for (let at = start; at < end; at++) {
        to[at] = left < middle && (right === end || compare(from[left], from[right]) <= 0) ? from[left++] : from[right++];
        if (++placed % STEP_COMPARES === 0) yield;
      }
    }
    [from, to] = [to, from];
  }
  return from;
}

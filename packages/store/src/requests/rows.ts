/**
 * The rows of a range's response, collected in key order and returned in the requested order.
 * Memory is bounded by the limit, not by the range, and sorting runs in steps.
 */
import type { Steps } from "../backend/steps.ts";
import { STORE_BOUNDS } from "../bounds.ts";

/** Maximum comparisons of one step: some 0.2 ms. */
const STEP_COMPARES = 1024;
/** Rows, and bytes of records, that may be kept beyond the limit, however small that is. */
const MAX_SPARE_ROWS = 1024;
const MAX_SPARE_BYTES: number = 16 * STORE_BOUNDS.stepBytes;

/** Negative if `a` belongs before `b`, positive if after, 0 if they are equal. */
export type CompareRows<R> = (a: R, b: R) => number;

/** Keeps the `limit` rows (0: all) that come first in some order. */
export interface RowBuffer<R> {
  /** Adds a row that holds `sizeBytes` of memory of its own. */
  add(row: R, sizeBytes: number): void;
  /** Rows that were added, those that the limit dropped included. */
  readonly total: number;
  /** True when `cut` is due. */
  readonly isFull: boolean;
  /** Drops the rows beyond the limit; returns the remaining work, in steps. */
  cut(): Steps<void> | undefined;
  /** The rows in order, right after a cut. Nothing may be added afterwards. */
  result(): R[];
  /** Releases the buffer's memory. */
  drop(): void;
}

/** Called with the change of bytes held in memory. May throw to end the request. */
export type Charge = (bytes: number) => void;

/** The reverse order of arrival. */
export class LastRows<R> implements RowBuffer<R> {
  readonly #limit: number;
  #rows: R[] = [];
  readonly #held: RowMemory;
  total = 0;

  constructor(limit: number, charge: Charge) {
    this.#limit = limit;
    this.#held = new RowMemory(limit, charge);
  }

  get isFull(): boolean {
    return this.#held.isDue(this.#rows.length);
  }

  add(row: R, sizeBytes: number): void {
    this.total++;
    this.#held.add(sizeBytes);
    this.#rows.push(row);
  }

  cut(): undefined {
    this.#held.cut(this.#rows.length);
    if (this.#limit > 0 && this.#rows.length > this.#limit)
      this.#rows = this.#rows.slice(-this.#limit);
  }

  result(): R[] {
    return this.#rows.reverse();
  }

  drop(): void {
    this.#held.drop();
  }
}

/** The order of a comparison; equal rows stay in the order of arrival. */
export class SortedRows<R> implements RowBuffer<R> {
  readonly #limit: number;
  readonly #compare: CompareRows<R>;
  #rows: R[] = [];
  readonly #held: RowMemory;
  /** The last row within the limit, once there are that many. */
  #worst: R | undefined;
  total = 0;

  constructor(limit: number, charge: Charge, compare: CompareRows<R>) {
    this.#limit = limit;
    this.#held = new RowMemory(limit, charge);
    this.#compare = compare;
  }

  get isFull(): boolean {
    return this.#held.isDue(this.#rows.length);
  }

  add(row: R, sizeBytes: number): void {
    this.total++;
    if (this.#worst !== undefined && this.#compare(row, this.#worst) >= 0) return;
    this.#held.add(sizeBytes);
    this.#rows.push(row);
  }

  *cut(): Steps<void> {
    this.#held.cut(this.#rows.length);
    const sorted = yield* mergeSort(this.#rows, this.#compare);
    if (this.#limit > 0 && sorted.length > this.#limit) sorted.length = this.#limit;
    if (sorted.length === this.#limit) this.#worst = sorted[sorted.length - 1];
    this.#rows = sorted;
  }

  result(): R[] {
    return this.#rows;
  }

  drop(): void {
    this.#held.drop();
  }
}

/**
 * Tracks the memory of the rows, and when to cut them: a cut costs as much as sorting all rows, so
 * it waits until rows or bytes have doubled since the last one.
 */
class RowMemory {
  readonly #limit: number;
  readonly #charge: Charge;
  /** Estimated bytes of the rows that the last cut kept. */
  #cutBytes = 0;
  #spareBytes = 0;

  constructor(limit: number, charge: Charge) {
    this.#limit = limit;
    this.#charge = charge;
  }

  add(sizeBytes: number): void {
    this.#spareBytes += sizeBytes;
    this.#charge(sizeBytes);
  }

  isDue(rows: number): boolean {
    const spare = this.#limit > 0 ? rows - this.#limit : 0;
    if (spare <= 0) return false;
    return (
      spare >= Math.max(MAX_SPARE_ROWS, this.#limit) ||
      this.#spareBytes >= Math.max(MAX_SPARE_BYTES, this.#cutBytes)
    );
  }

  cut(rows: number): void {
    const before = this.#cutBytes + this.#spareBytes;
    this.#cutBytes =
      this.#limit > 0 && rows > this.#limit ? Math.floor((before * this.#limit) / rows) : before;
    this.#spareBytes = 0;
    this.#charge(this.#cutBytes - before);
  }

  drop(): void {
    this.#charge(-this.#cutBytes - this.#spareBytes);
    this.#cutBytes = 0;
    this.#spareBytes = 0;
  }
}

/** Sorts the rows; equal ones keep their order. */
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
        to[at] =
          left < middle && (right === end || compare(from[left], from[right]) <= 0)
            ? from[left++]
            : from[right++];
        if (++placed % STEP_COMPARES === 0) yield;
      }
    }
    [from, to] = [to, from];
  }
  return from;
}

/**
 * The last events, in memory: a watcher that fell behind a little catches up from here and needs no
 * disk. Whole revisions only; the oldest go first.
 */
import type { WatchEvent } from "./event.ts";

/** Bounds. One revision may be larger than both: it is dropped when the next comes. */
export interface RecentLimits {
  readonly maxRecentEvents: number;
  readonly maxRecentBytes: number;
}

export class RecentEvents {
  #events: WatchEvent[] = [];
  /** Events before this place are dropped. */
  #start = 0;
  #heldBytes = 0;
  #firstRevision: number;

  readonly #limits: RecentLimits;

  /** @param firstRevision the revision that comes next. */
  constructor(firstRevision: number, limits: RecentLimits) {
    this.#limits = limits;
    this.#firstRevision = firstRevision;
  }

  /** Everything from this revision on is here. */
  get firstRevision(): number {
    return this.#firstRevision;
  }

  get size(): number {
    return this.#events.length - this.#start;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  push(event: WatchEvent): void {
    const { maxRecentEvents, maxRecentBytes } = this.#limits;
    this.#events.push(event);
    this.#heldBytes += event.heldBytes;
    while (
      (this.size > maxRecentEvents || this.#heldBytes > maxRecentBytes) &&
      this.#events[this.#start].main < event.main
    ) {
      this.#dropRevision();
    }
    if (this.#start > maxRecentEvents) {
      this.#events = this.#events.slice(this.#start);
      this.#start = 0;
    }
  }

  #dropRevision(): void {
    const { main } = this.#events[this.#start];
    while (this.#start < this.#events.length && this.#events[this.#start].main === main) {
      this.#heldBytes -= this.#events[this.#start].heldBytes;
      // Not only hidden behind #start: the bytes must be free to go.
      (this.#events as (WatchEvent | undefined)[])[this.#start++] = undefined;
    }
    this.#firstRevision = main + 1;
  }

  /**
   * Visits the events from a revision on in order, until `visit` returns false. The revision must
   * not be before `firstRevision`.
   */
  scan(revision: number, visit: (event: WatchEvent) => boolean): void {
    const events = this.#events;
    let low = this.#start;
    let high = events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (events[middle].main < revision) low = middle + 1;
      else high = middle;
    }
    for (; low < events.length; low++) {
      if (!visit(events[low])) return;
    }
  }
}

/**
 * The last events, in memory: a watcher that fell behind a little catches up from here and needs no disk. Whole revisions only; the
 * oldest go first.
 */
import type { WatchEvent } from "./event.ts";

/** Bounds; docs/LIMITS.md lists them. One revision may be larger than both: it is dropped when the next comes. */
export const MAX_RECENT_EVENTS = 16_384;
export const MAX_RECENT_BYTES: number = 16 * 1024 * 1024;

export class RecentEvents {
  #events: WatchEvent[] = [];
  /** Events before this place are dropped. */
  #start = 0;
  #heldBytes = 0;
  #firstRevision: number;

  /** @param firstRevision the revision that comes next. */
  constructor(firstRevision: number) {
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
    this.#events.push(event);
    this.#heldBytes += event.heldBytes;
    while ((this.size > MAX_RECENT_EVENTS || this.#heldBytes > MAX_RECENT_BYTES) && this.#events[this.#start].main < event.main) {
      this.#dropRevision();
    }
    if (this.#start > MAX_RECENT_EVENTS) {
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

  /** Visits the events from a revision on in order, until `visit` gives false. The revision must not be before `firstRevision`. */
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

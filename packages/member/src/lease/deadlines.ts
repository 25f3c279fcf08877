/**
 * A binary heap of things that are due, earliest first. Each knows its place, so that it can be
 * moved or taken out where it stands.
 */

/** Something that is due; `place` is the heap's own, -1 outside of it. */
export interface Due {
  dueMs: number;
  place: number;
}

export class Deadlines<T extends Due> {
  readonly #heap: T[] = [];

  get size(): number {
    return this.#heap.length;
  }

  /** What is due first. */
  first(): T | undefined {
    return this.#heap[0];
  }

  add(item: T): void {
    item.place = this.#heap.length;
    this.#settle(item);
  }

  /** Takes an item out; does nothing if it is not in. */
  remove(item: T): void {
    const { place } = item;
    if (place < 0) return;
    item.place = -1;
    const last = this.#heap.pop()!;
    if (last === item) return;
    last.place = place;
    this.#settle(last);
  }

  /** Puts an item at another time. */
  move(item: T, dueMs: number): void {
    item.dueMs = dueMs;
    this.#settle(item);
  }

  /** Writes an item where its time belongs, below the place that it names, above it, or there. */
  #settle(item: T): void {
    const heap = this.#heap;
    let { place } = item;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && heap[below + 1].dueMs < heap[below].dueMs) below++;
      if (heap[below].dueMs >= item.dueMs) break;
      place = this.#shift(below, place);
    }
    while (place > 0) {
      const above = (place - 1) >> 1;
      if (heap[above].dueMs <= item.dueMs) break;
      place = this.#shift(above, place);
    }
    heap[place] = item;
    item.place = place;
  }

  /** Moves what stands at one place to another; returns the place that is free now. */
  #shift(from: number, to: number): number {
    const other = this.#heap[from];
    this.#heap[to] = other;
    other.place = to;
    return from;
  }
}

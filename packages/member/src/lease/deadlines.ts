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
    this.#heap.push(item);
    this.#up(item);
  }

  /** Takes an item out; does nothing if it is not in. */
  remove(item: T): void {
    const { place } = item;
    if (place < 0) return;
    item.place = -1;
    const last = this.#heap.pop()!;
    if (last === item) return;
    last.place = place;
    this.#heap[place] = last;
    this.#down(last);
    this.#up(last);
  }

  /** Puts an item at another time. */
  move(item: T, dueMs: number): void {
    item.dueMs = dueMs;
    this.#down(item);
    this.#up(item);
  }

  #up(item: T): void {
    const heap = this.#heap;
    let { place } = item;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const other = heap[above];
      if (other.dueMs <= item.dueMs) break;
      heap[place] = other;
      other.place = place;
      place = above;
    }
    heap[place] = item;
    item.place = place;
  }

  #down(item: T): void {
    const heap = this.#heap;
    let { place } = item;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && heap[below + 1].dueMs < heap[below].dueMs) below++;
      const other = heap[below];
      if (other.dueMs >= item.dueMs) break;
      heap[place] = other;
      other.place = place;
      place = below;
    }
    heap[place] = item;
    item.place = place;
  }
}

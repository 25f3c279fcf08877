/**
 * A queue that is fair on each level of a path: with items at "a/1", "a/2" and "b/1", every second
 * turn is b's. Items of one path come in the order in which they were added.
 */

export class FairQueue<T> {
  /** In the order of their turns: a lane that had one goes to the end. */
  readonly #lanes = new Map<string, FairQueue<T>>();
  /** The items of the path that ends here; the first ones may be gone already. */
  #items: T[] = [];
  #first = 0;
  #size = 0;

  /** Items in the queue. */
  get size(): number {
    return this.#size;
  }

  /** Adds an item. All paths must have one length. */
  push(path: readonly string[], item: T, depth = 0): void {
    this.#size++;
    const name = path[depth];
    if (name === undefined) {
      this.#items.push(item);
      return;
    }
    let lane = this.#lanes.get(name);
    if (lane === undefined) this.#lanes.set(name, (lane = new FairQueue()));
    lane.push(path, item, depth + 1);
  }

  /** Takes the item whose turn it is; undefined if there is none. */
  take(): T | undefined {
    if (this.#size === 0) return undefined;
    this.#size--;
    for (const [name, lane] of this.#lanes) {
      this.#lanes.delete(name);
      const item = lane.take();
      if (lane.size > 0) this.#lanes.set(name, lane);
      return item;
    }
    const item = this.#items[this.#first++];
    if (this.#first * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }
}

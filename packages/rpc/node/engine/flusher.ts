/**
 * Batches writes: everything that one callback of the event loop and its promises produce leaves
 * with one write per connection. process.nextTick runs after the promise reactions and before the
 * loop's next callback; setImmediate would cost another turn of the loop, a sixth of a single
 * client's write latency.
 */
export interface Flushable {
  flush(): void;
}

export class Flusher {
  #waiting: Flushable[] = [];
  #scheduled = false;
  readonly #run = () => {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#scheduled = false;
    for (let i = 0; i < waiting.length; i++) waiting[i].flush();
  };

  /** Calls flush() once at the end of this callback. The caller must not add an object twice. */
  add(one: Flushable): void {
    this.#waiting.push(one);
    if (this.#scheduled) return;
    this.#scheduled = true;
    process.nextTick(this.#run);
  }

  /** Calls flush() in the next turn of the loop, after the other connections. */
  addLater(one: Flushable): void {
    setImmediate(() => one.flush());
  }
}

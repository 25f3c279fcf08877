/**
 * Gathers what one callback of the event loop has produced, with all that its promises lead to:
 * each connection writes once, when that is done. Ticks run behind the promises' reactions, and
 * before the loop goes on to its next callback; setImmediate would cost another turn of the loop, a
 * sixth of what one client's write takes.
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

  /**
   * Calls flush() once at the end of this callback; the caller sees to it that it is not added
   * twice.
   */
  add(one: Flushable): void {
    this.#waiting.push(one);
    if (this.#scheduled) return;
    this.#scheduled = true;
    process.nextTick(this.#run);
  }

  /** Calls flush() in the next turn of the loop, after others have had theirs. */
  addLater(one: Flushable): void {
    setImmediate(() => one.flush());
  }
}

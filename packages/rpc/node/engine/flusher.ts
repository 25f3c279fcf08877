/** Gathers what a turn of the event loop has produced: each connection writes once, when the input that was waiting has been read. */
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

  /** Calls flush() once at the end of this turn; the caller sees to it that it is not added twice. */
  add(one: Flushable): void {
    this.#waiting.push(one);
    if (this.#scheduled) return;
    this.#scheduled = true;
    // The check phase comes right after the poll phase, which reads the sockets.
    setImmediate(this.#run);
  }
}

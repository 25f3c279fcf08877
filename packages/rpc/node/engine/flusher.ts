/** Gathers what a turn of the event loop has produced: each connection writes once, when the input that was waiting has been read. */
import type { Clock } from "@quorate/host";

export interface Flushable {
  flush(): void;
}

export class Flusher {
  readonly #clock: Clock;
  #waiting: Flushable[] = [];
  #scheduled = false;
  readonly #run = () => {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#scheduled = false;
    for (let i = 0; i < waiting.length; i++) waiting[i].flush();
  };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls flush() once at the end of this turn; the caller sees to it that it is not added twice. */
  add(one: Flushable): void {
    this.#waiting.push(one);
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#clock.endOfTurn(this.#run);
  }
}

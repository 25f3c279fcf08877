import type { Writable } from "node:stream";

/**
 * Batches writes: everything that one callback of the event loop and its promises produce leaves
 * with one write per connection. process.nextTick runs after the promise reactions and before the
 * loop's next callback; setImmediate would cost another turn of the loop, a sixth of a single
 * client's write latency.
 */
export interface Flushable {
  flush(): void;
}

/** Connections that are written at the end of one turn, some 2 ms; the rest in the next one. */
export const MAX_FLUSHED_IN_TURN = 256;

export class Flusher {
  #waiting: Flushable[] = [];
  #scheduled = false;
  #inTurn: Flushable[] = [];
  readonly #run = () => {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#scheduled = false;
    for (let i = 0; i < waiting.length; i++) waiting[i].flush();
  };
  readonly #runTurn = () => {
    const due = this.#inTurn.slice(0, MAX_FLUSHED_IN_TURN);
    this.#inTurn = this.#inTurn.slice(due.length);
    if (this.#inTurn.length > 0) setImmediate(this.#runTurn);
    for (let i = 0; i < due.length; i++) due[i].flush();
  };

  /** Calls flush() once at the end of this callback. The caller must not add an object twice. */
  add(one: Flushable): void {
    this.#waiting.push(one);
    if (this.#scheduled) return;
    this.#scheduled = true;
    process.nextTick(this.#run);
  }

  /**
   * Calls flush() once at the end of this turn of the loop, when what has arrived on other
   * connections is read: for many connections with little output each. Each write may wake a
   * client; clients that wake together send their next requests together, and the loop has fewer
   * turns.
   */
  addToTurn(one: Flushable): void {
    if (this.#inTurn.length === 0) setImmediate(this.#runTurn);
    this.#inTurn.push(one);
  }

  /** Calls flush() in the next turn of the loop, after the other connections. */
  addLater(one: Flushable): void {
    setImmediate(() => one.flush());
  }
}

/** Writes the chunks with one system call. */
export function writeTogether(target: Writable, chunks: readonly Uint8Array[]): void {
  if (chunks.length === 1) target.write(chunks[0]);
  else if (chunks.length > 1) {
    target.cork();
    for (const chunk of chunks) target.write(chunk);
    target.uncork();
  }
}

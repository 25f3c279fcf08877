/**
 * Watchers that catch up, in turns: each sends a few events, then the next one, until the time of
 * this turn of the event loop is used.
 */
import { type Clock, SLICE_MS, TurnWork } from "@quorate/host";

export interface Pumped {
  /** Sends some events; returns whether there are more to send at once. */
  pump(): boolean;
}

export class PumpQueue {
  readonly #queue = new Set<Pumped>();
  readonly #work: TurnWork;

  constructor(clock: Pick<Clock, "turns">) {
    this.#work = new TurnWork(clock.turns, { shareMs: SLICE_MS, step: () => this.#step() });
  }

  /** Pumps it from the end of this turn on; does nothing if it waits already. */
  add(pumped: Pumped): void {
    this.#queue.add(pumped);
    this.#work.plan();
  }

  remove(pumped: Pumped): void {
    this.#queue.delete(pumped);
  }

  #step(): boolean {
    const [pumped] = this.#queue;
    if (pumped === undefined) return false;
    this.#queue.delete(pumped);
    // Behind the others: a set is ordered.
    if (pumped.pump()) this.#queue.add(pumped);
    return this.#queue.size > 0;
  }
}

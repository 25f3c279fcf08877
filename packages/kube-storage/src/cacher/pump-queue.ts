/**
 * Watchers that catch up, in turns: each sends a few events, then the next one, until the time of
 * this turn of the event loop is used.
 */
import type { Clock } from "@quorate/host";

/** All watchers of a resource catch up for so long in one turn. */
const TURN_BUDGET_MS = 5;

export interface Pumped {
  /** Sends some events; returns whether there are more to send at once. */
  pump(): boolean;
}

export class PumpQueue {
  readonly #clock: Pick<Clock, "monotonicMs" | "endOfTurn">;
  readonly #queue = new Set<Pumped>();
  #isPlanned = false;

  constructor(clock: Pick<Clock, "monotonicMs" | "endOfTurn">) {
    this.#clock = clock;
  }

  /** Pumps it from the end of this turn on; does nothing if it waits already. */
  add(pumped: Pumped): void {
    this.#queue.add(pumped);
    this.#plan();
  }

  remove(pumped: Pumped): void {
    this.#queue.delete(pumped);
  }

  #plan(): void {
    if (this.#isPlanned || this.#queue.size === 0) return;
    this.#isPlanned = true;
    this.#clock.endOfTurn(() => this.#run());
  }

  #run(): void {
    this.#isPlanned = false;
    const endMs = this.#clock.monotonicMs() + TURN_BUDGET_MS;
    // A set that is added to while it is walked: who is not done comes again, after the others.
    for (const pumped of this.#queue) {
      this.#queue.delete(pumped);
      if (pumped.pump()) this.#queue.add(pumped);
      if (this.#clock.monotonicMs() >= endMs) break;
    }
    this.#plan();
  }
}

/**
 * Long-lived calls that permission can be taken from: notified when users, roles or their
 * enforcement have changed. Changes of one turn are one notification, and many calls are notified
 * in slices beside other work.
 */
import { type Clock, TurnWork } from "@quorate/host";

const SLICE_MS = 2;
const CALLS_BETWEEN_LOOKS = 64;

export class AuthChanges {
  readonly #listeners = new Set<() => void>();
  readonly #work: TurnWork;
  #isDue = false;
  /** The calls of a round that are not notified yet. */
  #left: IterableIterator<() => void> = [].values();

  constructor(clock: Pick<Clock, "turns">) {
    this.#work = new TurnWork(clock.turns, { shareMs: SLICE_MS, step: () => this.#step() });
  }

  /** Listeners that are notified. */
  get size(): number {
    return this.#listeners.size;
  }

  /** Notifies `listener` of changes until the function that is returned is called. */
  follow(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Users, roles or their enforcement have changed. */
  changed(): void {
    this.#isDue = true;
    this.#work.plan();
  }

  #step(): boolean {
    for (let i = 0; i < CALLS_BETWEEN_LOOKS; i++) {
      const { value: listener } = this.#left.next();
      if (listener === undefined) {
        if (!this.#isDue) return false;
        this.#isDue = false;
        this.#left = [...this.#listeners].values();
      } else if (this.#listeners.has(listener)) listener();
    }
    return true;
  }
}

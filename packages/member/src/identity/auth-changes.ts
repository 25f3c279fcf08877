/**
 * Long-lived calls that permission can be taken from: notified when users, roles or their
 * enforcement have changed. Changes of one turn are one notification, and many calls are notified
 * in slices beside other work.
 */
import type { Clock } from "@quorate/host";
import type { Steps } from "@quorate/store";

/** Calls are notified for so long in one turn. */
const MAX_SLICE_MS = 2;
const CALLS_BETWEEN_LOOKS = 64;

export class AuthChanges {
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();
  #isDue = false;
  #steps: Steps<void> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
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
    if (this.#steps !== undefined) return;
    this.#steps = this.#notifyAll();
    this.#clock.endOfTurn(() => this.#slice());
  }

  *#notifyAll(): Steps<void> {
    while (this.#isDue) {
      this.#isDue = false;
      let notified = 0;
      for (const listener of [...this.#listeners]) {
        if (this.#listeners.has(listener)) listener();
        if (++notified % CALLS_BETWEEN_LOOKS === 0) yield;
      }
    }
  }

  #slice(): void {
    const startMs = this.#clock.monotonicMs();
    do {
      if (this.#steps!.next().done === true) {
        this.#steps = undefined;
        return;
      }
    } while (this.#clock.monotonicMs() - startMs < MAX_SLICE_MS);
    this.#clock.endOfTurn(() => this.#slice());
  }
}

/**
 * A response that takes the loop some milliseconds to make, and that any client may request without
 * a limit. Requests that come while one is due share it. After one was made, the next waits three
 * times as long as that took, at most 50 ms. A response is always made after its request, so it is
 * never stale.
 */
import { type Clock, sleep } from "@quorate/host";

/**
 * After one was made, the next one waits for this many times as long as that took, but no longer
 * than this.
 */
const REST_FACTOR = 3;
const MAX_REST_MS = 50;

export class SharedAnswer<T> {
  readonly #clock: Clock;
  readonly #make: () => Promise<T>;
  #next: Promise<T> | undefined;
  #running: Promise<void> = Promise.resolve();
  #restUntilMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, make: () => Promise<T>) {
    this.#clock = clock;
    this.#make = make;
  }

  /** The answer, made after this call. Rejects as the making does. */
  ask(): Promise<T> {
    this.#next ??= this.#begin();
    return this.#next;
  }

  async #begin(): Promise<T> {
    // Not at once even if nothing goes on: `ask` must have noted it before.
    await this.#running;
    const waitMs = this.#restUntilMs - this.#clock.monotonicMs();
    if (waitMs > 0) await sleep(this.#clock, waitMs);
    // A request from here on must see what happens meanwhile.
    this.#next = undefined;
    const startMs = this.#clock.monotonicMs();
    const made = this.#make();
    this.#running = made.then(
      () => {},
      () => {},
    );
    return made.finally(() => {
      const endMs = this.#clock.monotonicMs();
      this.#restUntilMs = endMs + Math.min(MAX_REST_MS, REST_FACTOR * (endMs - startMs));
    });
  }
}

/**
 * Calls at a time. etcd's gateway calls its own gRPC port over one connection, so its calls share
 * that connection's streams: one more call waits until another ends. Here the same option bounds
 * the calls of the gateway.
 */

/** Calls that may wait for a slot. */
export const MAX_WAITING_CALLS = 65_536;

/** Slots for calls; those that find none wait in the order in which they came. */
export class CallSlots {
  readonly #max: number;
  readonly #maxWaiting: number;
  readonly #waiting = new Set<() => void>();
  #used = 0;

  /**
   * @param max slots, at least 1
   * @param maxWaiting calls that may wait
   */
  constructor(max: number, maxWaiting: number = MAX_WAITING_CALLS) {
    this.#max = max;
    this.#maxWaiting = maxWaiting;
  }

  get used(): number {
    return this.#used;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Takes a slot if one is free. */
  takeFree(): boolean {
    if (this.#used >= this.#max) return false;
    this.#used++;
    return true;
  }

  /**
   * Calls `run` with a slot taken when one is free. Returns false, and does not call it, when too
   * many wait.
   */
  wait(run: () => void): boolean {
    if (this.#waiting.size >= this.#maxWaiting) return false;
    this.#waiting.add(run);
    return true;
  }

  /** Removes a call that waits. Returns false if it does not wait: it has a slot. */
  leave(run: () => void): boolean {
    return this.#waiting.delete(run);
  }

  /** Frees a slot, for the call that has waited longest. */
  release(): void {
    for (const run of this.#waiting) {
      this.#waiting.delete(run);
      run();
      return;
    }
    this.#used--;
  }
}

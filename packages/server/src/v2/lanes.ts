/**
 * Lets work on one key run one after another on this member, so that writes that would undo each
 * other's plans wait instead; those of other members still may.
 */

/** Work that waits, of all keys. */
export const MAX_LANE_WAITING = 10_000;

export class Lanes {
  readonly #last = new Map<string, Promise<void>>();
  #waiting = 0;

  /** True if no more work may wait. */
  get isFull(): boolean {
    return this.#waiting >= MAX_LANE_WAITING;
  }

  /** Keys with work. */
  get size(): number {
    return this.#last.size;
  }

  /** Runs `work` after what came before it for this key. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const { promise: done, resolve } = Promise.withResolvers<void>();
    this.#last.set(key, done);
    this.#waiting++;
    try {
      await before;
      return await work();
    } finally {
      this.#waiting--;
      if (this.#last.get(key) === done) this.#last.delete(key);
      resolve();
    }
  }
}

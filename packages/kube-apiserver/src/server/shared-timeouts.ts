/**
 * Timeouts of one length for many requests, with one timer: a timer for each request costs more
 * than its authorization, and almost none ever fires.
 */
import type { Clock, Timer } from "@quorate/host";

/** The timer looks so often, so that an idle server soon has none. */
const LOOK_MS = 1000;

interface Entry {
  readonly dueMs: number;
  readonly task: () => void;
}

export class SharedTimeouts {
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  readonly #delayMs: number;
  /** In the order in which they are due. */
  readonly #entries = new Set<Entry>();
  #timer: Timer | undefined;

  /** @param delayMs of all timeouts */
  constructor(clock: Pick<Clock, "monotonicMs" | "after">, delayMs: number) {
    this.#clock = clock;
    this.#delayMs = delayMs;
  }

  /** Timeouts that wait. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Calls `task` after the delay, unless the function that it returns was called before. The tasks
   * must not throw.
   */
  add(task: () => void): () => void {
    const entry = { dueMs: this.#clock.monotonicMs() + this.#delayMs, task };
    this.#entries.add(entry);
    this.#timer ??= this.#clock.after(Math.min(this.#delayMs, LOOK_MS), this.#look);
    return () => {
      this.#entries.delete(entry);
    };
  }

  readonly #look = (): void => {
    this.#timer = undefined;
    const nowMs = this.#clock.monotonicMs();
    for (const entry of this.#entries) {
      if (entry.dueMs > nowMs) {
        this.#timer = this.#clock.after(Math.min(entry.dueMs - nowMs, LOOK_MS), this.#look);
        return;
      }
      this.#entries.delete(entry);
      entry.task();
    }
  };
}

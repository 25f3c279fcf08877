/**
 * Calls each of many streams once in a period, a bounded number of them in one turn of the event
 * loop. Those that joined together are spread over turns, not called at once.
 */
import type { Clock, Timer } from "@quorate/host";

/** Streams that are called in one turn. */
export const MAX_BEATS_IN_TURN = 64;
/** How exact periods are. */
const TICK_MS = 1000;

export class Heartbeats {
  readonly #clock: Clock;
  readonly #periodMs: number;
  /** By the time at which they are due, as all have one period. */
  readonly #due = new Map<() => void, number>();
  #timer: Timer | undefined;

  constructor(clock: Clock, periodMs: number) {
    this.#clock = clock;
    this.#periodMs = periodMs;
  }

  /** Streams that are called. */
  get size(): number {
    return this.#due.size;
  }

  /** Calls `beat` once in a period, until `remove`. */
  add(beat: () => void): void {
    this.#due.set(beat, this.#clock.monotonicMs() + this.#periodMs);
    this.#timer ??= this.#clock.every(TICK_MS, () => this.#run());
  }

  remove(beat: () => void): void {
    this.#due.delete(beat);
    if (this.#due.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #run(): void {
    const nowMs = this.#clock.monotonicMs();
    let called = 0;
    for (const [beat, dueMs] of this.#due) {
      if (dueMs > nowMs) return;
      if (called++ === MAX_BEATS_IN_TURN) {
        this.#clock.endOfTurn(() => this.#run());
        return;
      }
      this.#due.delete(beat);
      this.#due.set(beat, nowMs + this.#periodMs);
      beat();
    }
  }
}

/** Keeps what happens again and again from filling the log. */
import type { Clock } from "@quorate/host";

/** The same thing is said again after this time. */
const PERIOD_MS = 30_000;
/** Things that are remembered; when there are more, all are forgotten. */
const MAX_KEYS = 256;

export class RareLog {
  readonly #clock: Clock;
  readonly #lastMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True if `key` has not been said lately; it counts as said now. */
  allows(key: string): boolean {
    const nowMs = this.#clock.monotonicMs();
    const lastMs = this.#lastMs.get(key);
    if (lastMs !== undefined && nowMs - lastMs < PERIOD_MS) return false;
    if (this.#lastMs.size >= MAX_KEYS) this.#lastMs.clear();
    this.#lastMs.set(key, nowMs);
    return true;
  }
}

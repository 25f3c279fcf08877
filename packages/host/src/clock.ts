/**
 * The clock and timers of a member. host/node has the real one, sim the simulated one; both pass
 * the contract suite in host/testing.
 */
import type { TurnClock, Turns } from "./turns.ts";

/** A timer that can be cancelled. */
export interface Timer {
  /** Cancels the timer; does nothing if it already ran. */
  cancel(): void;
}

/** The source of time and timers. */
export interface Clock extends TurnClock {
  /** The budget of long work in the turns of this clock. */
  readonly turns: Turns;
  /**
   * Wall-clock time in milliseconds since 1970; may jump either way. Only for output to people and
   * for times that a proposer writes into an entry.
   */
  wallMs(): number;
  /**
   * Runs `task` once after at least `delayMs` (0 or more). Tasks due at the same time run in the
   * order they were set.
   */
  after(delayMs: number, task: () => void): Timer;
  /**
   * Runs `task` every `periodMs` (more than 0). Missed runs are skipped: no burst follows a pause.
   */
  every(periodMs: number, task: () => void): Timer;
}

/** Ends after at least `delayMs` (0 or more) of the clock; nothing ends it before. */
export function sleep(clock: Pick<Clock, "after">, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.after(delayMs, resolve));
}

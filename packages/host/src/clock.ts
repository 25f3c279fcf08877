/**
 * Time as the members see it. The real twin stands in host/node, the simulated one in sim; both
 * pass the suite in host/testing.
 */

/** A timer that has been set and can be taken back. */
export interface Timer {
  /** Takes the timer back; does nothing if it already ran. */
  cancel(): void;
}

/** The source of time and of "later". */
export interface Clock {
  /**
   * Wall-clock time in milliseconds since 1970; may jump either way. Only for what people read and
   * for what a proposer writes into an entry.
   */
  wallMs(): number;
  /**
   * Monotonic time in milliseconds with a fraction; never goes back. Durations and deadlines are
   * measured with this one.
   */
  monotonicMs(): number;
  /**
   * Runs `task` once after at least `delayMs` (0 or more). Tasks due at the same time run in the
   * order they were set.
   */
  after(delayMs: number, task: () => void): Timer;
  /**
   * Runs `task` every `periodMs` (more than 0). A late run is not made up for: no burst follows a
   * pause.
   */
  every(periodMs: number, task: () => void): Timer;
  /**
   * Runs `task` at the end of the present turn of the event loop, after the input that is already
   * waiting has been read.
   */
  endOfTurn(task: () => void): void;
}

import type { Clock } from "@quorate/host";

/** A clock whose turns take time, in which other things may happen. */
export function withTurns(clock: Clock, turnMs: number): Clock {
  return {
    wallMs: () => clock.wallMs(),
    monotonicMs: () => clock.monotonicMs(),
    after: (delayMs, task) => clock.after(delayMs, task),
    every: (periodMs, task) => clock.every(periodMs, task),
    endOfTurn: (task) => clock.after(turnMs, task),
  };
}

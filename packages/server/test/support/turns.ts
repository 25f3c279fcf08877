import { type Clock, Turns } from "@quorate/host";

/** A clock whose turns take time, in which other things may happen. */
export function withTurns(clock: Clock, turnMs: number): Clock {
  const endOfTurn = (task: () => void) => void clock.after(turnMs, task);
  const monotonicMs = () => clock.monotonicMs();
  return {
    turns: new Turns({ monotonicMs, endOfTurn }),
    wallMs: () => clock.wallMs(),
    monotonicMs,
    after: (delayMs, task) => clock.after(delayMs, task),
    every: (periodMs, task) => clock.every(periodMs, task),
    endOfTurn,
  };
}

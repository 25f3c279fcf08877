/**
 * The process's clock, as far as connections need it. Its timers do not keep the process alive:
 * open calls do, by their socket.
 */
import { type Clock, type Timer, type TurnClock, Turns } from "@quorate/host";

const MAX_DELAY_MS = 2 ** 31 - 1;

/** A delay that Node's timers take: they warn of others, and fire at once. */
export function timerMs(delayMs: number): number {
  return Math.max(0, Math.min(delayMs, MAX_DELAY_MS));
}

const time: TurnClock = {
  monotonicMs: () => performance.now(),
  endOfTurn: (task) => void setImmediate(task),
};

export const linkClock: Clock = {
  ...time,
  turns: new Turns(time),
  wallMs: () => Date.now(),
  after(delayMs, task): Timer {
    // A whole millisecond more: Node's timers may be early by a fraction.
    const handle = setTimeout(task, timerMs(Math.ceil(delayMs) + 1)).unref();
    return { cancel: () => clearTimeout(handle) };
  },
  every(periodMs, task): Timer {
    const handle = setInterval(task, periodMs).unref();
    return { cancel: () => clearInterval(handle) };
  },
};

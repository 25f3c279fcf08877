/**
 * Clock over this machine's time.
 */
import type { Clock, Timer } from "../src/clock.ts";
import { Turns } from "../src/turns.ts";

/** Held here: the global one is found by a getter, at each use. */
const time = performance;

/** The longest delay that setTimeout accepts; a longer one is split. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * Timers with a period that is a multiple of this run on a common grid, so the first run may be
 * late by up to this.
 */
const COMMON_GRID_MS = 100;

/**
 * Sets a timeout that never runs early. libuv counts whole milliseconds, so by performance.now() a
 * plain timeout may run up to one millisecond early; an extra millisecond compensates.
 */
function timeout(delayMs: number, task: () => void): NodeJS.Timeout {
  return setTimeout(task, Math.ceil(delayMs) + 1);
}

/** A timer whose timeout is set repeatedly. */
class NodeTimer implements Timer {
  #timeout: NodeJS.Timeout | undefined;
  #cancelled = false;

  /** Does nothing once cancelled, so that a task may cancel its own timer. */
  set(delayMs: number, task: () => void): void {
    if (this.#cancelled) return;
    this.#timeout =
      delayMs < MAX_TIMEOUT_MS
        ? timeout(delayMs, task)
        : timeout(MAX_TIMEOUT_MS - 1, () => this.set(delayMs - MAX_TIMEOUT_MS + 1, task));
  }

  cancel(): void {
    this.#cancelled = true;
    clearTimeout(this.#timeout);
  }
}

class NodeClock implements Clock {
  readonly turns: Turns = new Turns(this);

  wallMs(): number {
    return Date.now();
  }

  monotonicMs(): number {
    return time.now();
  }

  after(delayMs: number, task: () => void): Timer {
    const timer = new NodeTimer();
    timer.set(Math.max(0, delayMs), task);
    return timer;
  }

  every(periodMs: number, task: () => void): Timer {
    if (!(periodMs > 0)) throw new RangeError(`a period must be more than 0 ms, got ${periodMs}`);
    const timer = new NodeTimer();
    // Due times lie on a grid, so that lateness does not add up. Periods that fit share one grid,
    // so that an idle process wakes up once for all of them.
    const onGrid = (ms: number) =>
      periodMs % COMMON_GRID_MS === 0 ? Math.ceil(ms / COMMON_GRID_MS) * COMMON_GRID_MS : ms;
    let dueMs = onGrid(time.now() + periodMs);
    const run = () => {
      const nowMs = time.now();
      dueMs = dueMs + periodMs > nowMs ? dueMs + periodMs : onGrid(nowMs + periodMs);
      timer.set(dueMs - nowMs, run);
      task();
    };
    timer.set(dueMs - time.now(), run);
    return timer;
  }

  endOfTurn(task: () => void): void {
    // The check phase follows the poll phase, which reads the sockets.
    setImmediate(task);
  }
}

/** The process's clock. */
export const nodeClock: Clock = new NodeClock();

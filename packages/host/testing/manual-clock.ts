/**
 * A clock that stands still until a test advances it.
 *
 *     const clock = new ManualClock();
 *     clock.after(100, () => console.log("now"));
 *     clock.advance(99);  // nothing
 *     clock.advance(1);   // "now"
 */
import type { Clock, Timer } from "../src/clock.ts";
import { Heap } from "../src/heap.ts";
import { Turns } from "../src/turns.ts";

/** 2026-01-01T00:00:00Z: the default start. */
const START_WALL_MS = 1_767_225_600_000;

/**
 * More turns than this at one instant mean a task that reschedules itself forever.
 */
const MAX_TURNS_AT_ONE_INSTANT = 1_000_000;

interface Task {
  readonly dueMs: number;
  /** Order of setting, which decides between tasks that are due at the same time. */
  readonly order: number;
  readonly run: () => void;
  cancelled: boolean;
}

function before(a: Task, b: Task): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);
}

/** A Clock that only `advance` moves. */
export class ManualClock implements Clock {
  readonly turns: Turns = new Turns(this);
  #nowMs = 0;
  #wallStartMs: number;
  #order = 0;
  readonly #heap = new Heap(before);
  #endOfTurn: (() => void)[] = [];

  /** @param wallMs the wall-clock time at monotonic time 0. */
  constructor(wallMs: number = START_WALL_MS) {
    this.#wallStartMs = wallMs;
  }

  wallMs(): number {
    return this.#wallStartMs + this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, task: () => void): Timer {
    return this.#set(this.#nowMs + Math.max(0, delayMs), task);
  }

  every(periodMs: number, task: () => void): Timer {
    if (!(periodMs > 0)) throw new RangeError(`a period must be more than 0 ms, got ${periodMs}`);
    let cancelled = false;
    let next: Timer;
    const run = () => {
      next = this.#set(this.#nowMs + periodMs, run);
      if (cancelled) next.cancel();
      else task();
    };
    next = this.#set(this.#nowMs + periodMs, run);
    return {
      cancel() {
        cancelled = true;
        next.cancel();
      },
    };
  }

  endOfTurn(task: () => void): void {
    this.#endOfTurn.push(task);
  }

  /** Ends the present turn alone. Returns how many tasks waited for that. */
  endOneTurn(): number {
    const tasks = this.#endOfTurn;
    this.#endOfTurn = [];
    for (const task of tasks) task();
    return tasks.length;
  }

  /** Moves the wall clock by `byMs` (negative: back), but not the monotonic one. */
  jumpWall(byMs: number): void {
    this.#wallStartMs += byMs;
  }

  /** The monotonic time of the next task, or undefined. */
  nextDueMs(): number | undefined {
    while (this.#heap.first?.cancelled === true) this.#heap.take();
    return this.#heap.first?.dueMs;
  }

  /**
   * Ends the present turn, then runs the tasks due within `ms`, in order, each in a turn of its
   * own. Promises do not settle meanwhile.
   */
  advance(ms: number): void {
    const untilMs = this.#nowMs + ms;
    this.#endTurns();
    for (let task = this.#takeDue(untilMs); task; task = this.#takeDue(untilMs)) {
      this.#nowMs = task.dueMs;
      task.run();
      this.#endTurns();
    }
    this.#nowMs = untilMs;
  }

  /** As `advance`, and lets all settled promises run their reactions after each turn. */
  async advanceAsync(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await this.settle();
    for (let task = this.#takeDue(untilMs); task; task = this.#takeDue(untilMs)) {
      this.#nowMs = task.dueMs;
      task.run();
      await this.settle();
    }
    this.#nowMs = untilMs;
  }

  /**
   * Runs ends of turns and promise reactions at the present time until none are left.
   */
  async settle(): Promise<void> {
    do {
      this.#endTurns();
      // A macrotask: all queued microtasks, and those they queue, run before it.
      await new Promise((resolve) => setImmediate(resolve));
    } while (this.#endOfTurn.length > 0);
  }

  #endTurns(): void {
    for (let turns = 0; this.endOneTurn() > 0; turns++) {
      if (turns === MAX_TURNS_AT_ONE_INSTANT) throw new Error("a task calls endOfTurn forever");
    }
  }

  #set(dueMs: number, run: () => void): Timer {
    const task: Task = { dueMs, order: this.#order++, run, cancelled: false };
    this.#heap.add(task);
    return {
      cancel() {
        task.cancelled = true;
      },
    };
  }

  #takeDue(untilMs: number): Task | undefined {
    const dueMs = this.nextDueMs();
    return dueMs !== undefined && dueMs <= untilMs ? this.#heap.take() : undefined;
  }
}

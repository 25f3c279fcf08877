/**
 * Time of a simulated world: one queue of events, and a clock for each process that drifts, pauses
 * and dies with it.
 *
 * An event runs alone; the promises that it settled react before the next event is taken. Nothing
 * else sets an order: real time, timers and input of the machine underneath play no part.
 */
import { type Clock, Heap, type Timer, Turns } from "@quorate/host";
import { defined } from "@quorate/proto";

/** 2026-01-01T00:00:00Z. */
const START_WALL_MS = 1_767_225_600_000;

/** Fewer tasks than these that were cancelled are not worth looking for in the queue. */
const MIN_CANCELLED = 64;

/** Events between two turns of the machine's own loop. */
const STEPS_PER_TURN = 100;

const nothing = () => {};

/** Something to run; who scheduled it holds it as its timer. */
class Task implements Timer {
  dueMs: number;
  order: number;
  run: () => void;
  readonly owner: Process | undefined;
  cancelled = false;
  isQueued = false;
  readonly #queue: { cancelled: number };

  constructor(
    dueMs: number,
    order: number,
    run: () => void,
    owner: Process | undefined,
    queue: { cancelled: number },
  ) {
    this.dueMs = dueMs;
    this.order = order;
    this.run = run;
    this.owner = owner;
    this.#queue = queue;
  }

  cancel(): void {
    if (this.cancelled) return;
    this.cancelled = true;
    // It may stay in the queue until it falls due: what it would have used does not.
    this.run = nothing;
    if (this.isQueued) this.#queue.cancelled++;
  }
}

/** Something that is scheduled for, such as a member between its start and its end. */
export class Process {
  readonly name: string;
  #alive = true;
  #pausedTasks: Task[] | undefined;
  readonly #onEnd = new Set<() => void>();

  constructor(name: string) {
    this.name = name;
  }

  get alive(): boolean {
    return this.#alive;
  }

  get paused(): boolean {
    return this.#pausedTasks !== undefined;
  }

  /** As SIGSTOP: what falls due waits for `resume`. */
  pause(): void {
    this.#pausedTasks ??= [];
  }

  /** What fell due meanwhile, in order. */
  resume(): Task[] {
    const tasks = this.#pausedTasks ?? [];
    this.#pausedTasks = undefined;
    return tasks;
  }

  /** For the scheduler: keeps a task of a paused process. */
  keep(task: Task): void {
    defined(this.#pausedTasks, "the paused tasks").push(task);
  }

  /** Nothing of it runs any more. */
  end(): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#pausedTasks = undefined;
    for (const listener of [...this.#onEnd]) listener();
    this.#onEnd.clear();
  }

  /** Calls `listener` when the process ends; returns a function that removes it. */
  onEnd(listener: () => void): () => void {
    this.#onEnd.add(listener);
    return () => this.#onEnd.delete(listener);
  }
}

function before(a: Task, b: Task): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);
}

export class Scheduler {
  #nowMs = 0;
  #order = 0;
  readonly #heap = new Heap(before);
  /** Tasks in the heap that were cancelled. */
  readonly #queue = { cancelled: 0 };
  /** Events that ran. */
  events = 0;

  get nowMs(): number {
    return this.#nowMs;
  }

  /**
   * Runs `run` in `delayMs`, unless `owner` has ended by then; while it is paused the task waits.
   */
  after(delayMs: number, run: () => void, owner?: Process): Timer {
    const task = new Task(
      this.#nowMs + Math.max(0, delayMs),
      this.#order++,
      run,
      owner,
      this.#queue,
    );
    this.#push(task);
    return task;
  }

  /** Resolves in `delayMs`; never, if `owner` ends before. */
  delay(delayMs: number, owner?: Process): Promise<void> {
    return new Promise((resolve) => this.after(delayMs, resolve, owner));
  }

  /** Lets a paused process go on, with all that fell due. */
  resume(process: Process): void {
    for (const task of process.resume()) {
      if (task.cancelled) continue;
      task.dueMs = this.#nowMs;
      task.order = this.#order++;
      this.#push(task);
    }
  }

  /**
   * Runs events until `done` is true after one of them; rejects with what an event throws, or when
   * no event is left. `afterEach` is called when all that an event set off has happened.
   */
  run(done: () => boolean, afterEach: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      let ran = false;
      const step = () => {
        try {
          if (ran) afterEach();
          ran = true;
          if (done()) {
            resolve();
            return;
          }
          const task = this.#take();
          if (task === undefined) throw new Error("the world has stopped: no event is left");
          this.#nowMs = Math.max(this.#nowMs, task.dueMs);
          this.events++;
          task.run();
        } catch (error) {
          reject(error);
          return;
        }
        // All promises that are settled, and those that these settle, react before the next tick.
        // Now and then the machine's own loop gets a turn: promises that were rejected and are not
        // handled are reported only there.
        if (++steps % STEPS_PER_TURN === 0) setImmediate(step);
        else settled.then(nextTick);
      };
      let steps = 0;
      // As queueMicrotask would, which costs far more: it makes an object to follow the callback
      // by.
      const settled = Promise.resolve();
      const nextTick = () => process.nextTick(step);
      setImmediate(step);
    });
  }

  #take(): Task | undefined {
    if (this.#queue.cancelled > Math.max(MIN_CANCELLED, this.#heap.size / 2)) this.#sweep();
    for (;;) {
      const task = this.#heap.take();
      if (task === undefined) return undefined;
      task.isQueued = false;
      if (task.cancelled) {
        this.#queue.cancelled--;
        continue;
      }
      if (task.owner?.alive === false) continue;
      if (task.owner?.paused === true) {
        task.owner.keep(task);
        continue;
      }
      return task;
    }
  }

  /** Drops what was cancelled: most timers are limits that are never reached. */
  #sweep(): void {
    this.#queue.cancelled = 0;
    this.#heap.keep((task) => !task.cancelled);
  }

  #push(task: Task): void {
    task.isQueued = true;
    this.#heap.add(task);
  }
}

/** A process's own view of time. */
export class ProcessClock implements Clock {
  readonly turns: Turns = new Turns(this);
  readonly #scheduler: Scheduler;
  readonly #process: Process;
  /** How fast this clock goes against the world's. */
  readonly #rate: number;
  readonly #startMs: number;
  #wallOffsetMs = 0;
  /** How long the process computes at the end of a turn. */
  turnDelayMs: () => number = () => 0;
  /** When the last end of a turn is due that was asked for. */
  #turnEndMs = 0;

  constructor(scheduler: Scheduler, process: Process, rate: number) {
    this.#scheduler = scheduler;
    this.#process = process;
    this.#rate = rate;
    this.#startMs = scheduler.nowMs;
  }

  wallMs(): number {
    return Math.floor(START_WALL_MS + this.#startMs + this.monotonicMs() + this.#wallOffsetMs);
  }

  monotonicMs(): number {
    return (this.#scheduler.nowMs - this.#startMs) * this.#rate;
  }

  /** Moves the wall clock, and leaves the monotonic one alone. */
  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  after(delayMs: number, task: () => void): Timer {
    return this.#scheduler.after(delayMs / this.#rate, task, this.#process);
  }

  every(periodMs: number, task: () => void): Timer {
    let cancelled = false;
    let next: Timer;
    const run = () => {
      next = this.after(periodMs, run);
      if (cancelled) next.cancel();
      else task();
    };
    next = this.after(periodMs, run);
    return {
      cancel() {
        cancelled = true;
        next.cancel();
      },
    };
  }

  /**
   * Ends of turns come in the order in which they were asked for, as those of Node do, however long
   * each turn takes. Else a task that asks for one after the other, each at once, would keep time
   * from going on to an earlier one that takes longer.
   */
  endOfTurn(task: () => void): void {
    const { nowMs } = this.#scheduler;
    const delayMs = Math.max(this.turnDelayMs(), this.#turnEndMs - nowMs);
    // A sum that was rounded down must not bring the order back.
    this.#turnEndMs = Math.max(this.#turnEndMs, nowMs + delayMs);
    this.#scheduler.after(delayMs, task, this.#process);
  }
}

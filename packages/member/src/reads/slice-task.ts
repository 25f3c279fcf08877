/**
 * One read that runs in slices: its steps, what it waits for, what it holds in memory, and how it
 * ends.
 */
import type { ReadIo, Steps } from "@quorate/store";
import type { AnswerHolder, AnswerMemory } from "./answer-memory.ts";

/** The caller of the read. */
export interface SliceCaller {
  /** Key of fairness, and the remote address, which names the connection. */
  readonly client: string;
  readonly address: string;
  readonly cancelled: boolean;
  onCancel(listener: () => void): void;
}

/** The member itself, as the owner of a read. */
export const MEMBER_SHARE: SliceCaller = {
  client: "",
  address: "",
  cancelled: false,
  onCancel: () => {},
};

/** Reads from the disk: a few at a time, the others in the order in which they came. */
export class Fetches {
  readonly #max: number;
  readonly #waiting: (() => void)[] = [];
  readonly #running = new Set<Promise<unknown>>();

  constructor(max: number) {
    this.#max = max;
  }

  run<T>(read: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const start = (): void => {
        const done = read().then(resolve, reject);
        this.#running.add(done);
        void done.then(() => {
          this.#running.delete(done);
          this.#waiting.shift()?.();
        });
      };
      if (this.#running.size < this.#max) start();
      else this.#waiting.push(start);
    });
  }

  /** Resolves when none is in progress. */
  async drained(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}

/** What a read is given to run with. */
export interface SliceTask {
  readonly io: ReadIo;
  /** Notes memory that the answer takes. @throws StatusError */
  readonly charge: (bytes: number) => void;
}

export type Outcome = "done" | "more" | "waits";

/** One read. */
export class Task<T> implements SliceTask, AnswerHolder {
  readonly io: ReadIo;
  readonly caller: SliceCaller;
  readonly charge: (bytes: number) => void;
  heldBytes = 0;
  startedMs = -1;
  /** It is among those of its connection that run in turn. */
  isRunning = false;
  isDone = false;
  value: T | undefined;
  error: unknown;
  settled: (() => void) | undefined;
  readonly #make: (task: SliceTask) => Steps<T>;
  readonly #memory: AnswerMemory;
  #steps: Steps<T> | undefined;

  constructor(
    caller: SliceCaller,
    make: (task: SliceTask) => Steps<T>,
    memory: AnswerMemory,
    fetches: Fetches,
  ) {
    this.io = { waitsFor: undefined, fromDisk: (read) => fetches.run(read) };
    this.caller = caller;
    this.#make = make;
    this.#memory = memory;
    this.charge = (bytes) => memory.charge(this, bytes);
  }

  get client(): string {
    return this.caller.client;
  }

  /** Runs steps until `isOver` says so, the read waits for something, or it is done. */
  advance(isOver: () => boolean): Outcome {
    try {
      this.#steps ??= this.#make(this);
      for (;;) {
        const step = this.#steps.next();
        if (step.done === true) {
          this.value = step.value;
          this.#end();
          return "done";
        }
        if (this.io.waitsFor !== undefined) return "waits";
        if (isOver()) return "more";
      }
    } catch (error) {
      this.error = error;
      this.#end();
      return "done";
    }
  }

  /** Ends the read with an error, which must not be in the midst of a step. */
  fail(error: Error): void {
    if (this.isDone) return;
    this.error = error;
    this.#stop();
    this.#end();
  }

  /** Forgets what was done so far; the next step is the first one again. */
  restart(): void {
    this.#stop();
    this.#memory.release(this);
    this.io.waitsFor = undefined;
  }

  #stop(): void {
    try {
      this.#steps?.return(undefined as never);
    } catch {
      // No caller waits for its result.
    }
    this.#steps = undefined;
  }

  #end(): void {
    this.isDone = true;
    this.#steps = undefined;
    this.#memory.release(this);
    this.settled?.();
  }
}

/**
 * Runs reads that touch many keys in slices, with turns of the event loop between them, so that
 * none of them, nor all of one client together, keeps the others waiting.
 *
 *     const answer = await slices.run(caller, (task) => range(mvcc, request, task));
 *
 *     arrives --> first steps run now, while the turn has time left --> done: most ranges end here
 *                        |
 *                        v
 *     queue, fair over clients and their connections --> a slice --> done, or back into the queue,
 *                        ^                                           or it waits for records from
 *                        the disk
 *                        +------------------------------------------------------+
 *
 * A read ends early when its caller is gone, when its time is up, and when the member ends. When
 * the store is exchanged, reads in progress start again on the new one: nothing of them has been
 * answered yet.
 */
import { BriefMap, BriefSet, type Clock } from "@quorate/host";
import { errorOf } from "@quorate/proto";
import type { Steps } from "@quorate/store";
import { type AnswerLimits, AnswerMemory, DEFAULT_ANSWER_LIMITS } from "./answer-memory.ts";
import { FairQueue } from "./fair-queue.ts";
import { Fetches, type Outcome, type SliceCaller, type SliceTask, Task } from "./slice-task.ts";

export interface SliceLimits {
  /**
   * How long reads may run in one turn of the event loop, and how long one of them before it is
   * another's turn.
   */
  readonly turnMs: number;
  readonly quantumMs: number;
  /**
   * The same counted in steps: what bounds a slice where the clock stands still, as in simulations.
   */
  readonly turnSteps: number;
  readonly quantumSteps: number;
  /** Reads of one connection that run in turn; the next wait until one of them has ended. */
  readonly runningPerConnection: number;
  /** Reads of one key that run at once in one turn. */
  readonly turnGets: number;
  /** Keys of a range that is read at once, while the turn has time. */
  readonly mostSmallKeys: number;
  /** Reads that have not ended, of one client and of all. */
  readonly maxPerClient: number;
  readonly maxTotal: number;
  /**
   * Reads from the disk at a time: more would hold the loop for too long when all come back in one
   * turn.
   */
  readonly maxFetches: number;
  /** How long a read may take from its first step. It holds compaction back as long. */
  readonly maxReadMs: number;
}

export const SLICE_LIMITS: SliceLimits = {
  turnMs: 2,
  quantumMs: 1,
  turnSteps: 4096,
  quantumSteps: 1024,
  runningPerConnection: 4,
  turnGets: 1024,
  mostSmallKeys: 16,
  maxPerClient: 32_768,
  maxTotal: 100_000,
  maxFetches: 2,
  maxReadMs: 60_000,
};

/** What reading and sending a large record costs, about. */
const BYTES_PER_MS = 1_000_000;

/** The reads of one connection. */
interface Connection {
  running: number;
  readonly waiting: Set<Task<unknown>>;
}

export class Slices {
  readonly memory: AnswerMemory;
  readonly #limits: SliceLimits;
  readonly #clock: Clock;
  readonly #ready = new FairQueue<Task<unknown>>();
  readonly #tasks = new BriefSet<Task<unknown>>();
  readonly #perClient = new BriefMap<string, number>();
  readonly #connections = new BriefMap<string, Connection>();
  readonly #fetches: Fetches;
  #isScheduled = false;
  #isAttached = true;
  #closed: Error | undefined;
  /** What reads have taken of the present turn, before and in slices. */
  #spentMs = 0;
  #spentSteps = 0;
  #gets = 0;
  #isResetScheduled = false;

  constructor(limits: SliceLimits, deps: { clock: Clock; answers?: AnswerLimits | undefined }) {
    this.#limits = limits;
    this.#clock = deps.clock;
    this.#fetches = new Fetches(limits.maxFetches);
    this.memory = new AnswerMemory(deps.answers ?? DEFAULT_ANSWER_LIMITS);
  }

  /** Reads that have not ended. */
  get count(): number {
    return this.#tasks.size;
  }

  /**
   * Runs a read. Returns its result at once where the first steps were all; else a promise of it.
   * @param make begins the read on the store in use; called again if the store was exchanged
   * meanwhile
   * @throws EtcdError TooManyRequests, Stopped, what the read throws; the promise rejects with the
   * same, with Timeout, and with Canceled
   */
  run<T>(caller: SliceCaller, make: (task: SliceTask) => Steps<T>): T | Promise<T> {
    if (this.#closed !== undefined) throw this.#closed;
    if (caller.cancelled) throw errorOf("Canceled");
    const { maxPerClient, maxTotal } = this.#limits;
    const ofClient = this.#perClient.get(caller.client) ?? 0;
    if (ofClient >= maxPerClient || this.#tasks.size >= maxTotal) throw errorOf("TooManyRequests");
    const task = new Task<T>(caller, make, this.memory, this.#fetches);
    let waits = false;
    if (this.#isAttached && this.#hasTime() && !this.#connections.has(caller.address)) {
      const outcome = this.#advance(task);
      if (outcome === "done") return resultOf(task);
      waits = outcome === "waits";
    }
    this.#perClient.set(caller.client, ofClient + 1);
    this.#tasks.add(task as Task<unknown>);
    return new Promise<T>((resolve, reject) => {
      task.settled = () => {
        this.#ended(task as Task<unknown>);
        if (task.error === undefined) resolve(task.value as T);
        else reject(task.error);
      };
      caller.onCancel(() => task.fail(errorOf("Canceled")));
      if (!task.isDone) this.#admit(task as Task<unknown>, waits);
    });
  }

  /**
   * Runs a read of a few keys at once, if the turn has time left and the caller's connection has no
   * reads waiting. Undefined: it was not run, and belongs into `run`.
   */
  now<T>(caller: SliceCaller, read: (mostKeys: number) => T): T | undefined {
    const { mostSmallKeys } = this.#limits;
    if (
      mostSmallKeys === 0 ||
      !this.#isAttached ||
      !this.#hasTime() ||
      this.#connections.has(caller.address)
    )
      return undefined;
    this.#scheduleReset();
    const startMs = this.#clock.monotonicMs();
    try {
      return read(mostSmallKeys);
    } finally {
      this.#spend(this.#clock.monotonicMs() - startMs);
      this.#spentSteps++;
    }
  }

  /**
   * Whether a read of one key may run at once: the present turn has time left, and has not had too
   * many of them. It counts then.
   */
  takesGet(): boolean {
    if (!this.#hasTime() || this.#gets >= this.#limits.turnGets) return false;
    this.#gets++;
    this.#scheduleReset();
    return true;
  }

  /** Notes a large record that was read outside of slices. */
  noteBytes(bytes: number): void {
    this.#scheduleReset();
    this.#spend(bytes / BYTES_PER_MS);
  }

  /** Lets go of the store: when it resolves, no read uses it. */
  async detach(): Promise<void> {
    this.#isAttached = false;
    for (const task of this.#tasks) task.restart();
    await this.#fetches.drained();
  }

  /** The store in use may be read again. */
  attach(): void {
    this.#isAttached = true;
    if (this.#ready.size > 0) this.#schedule();
  }

  /** Ends all reads with `error`, and refuses what comes. */
  close(error: Error): void {
    this.#closed = error;
    for (const task of [...this.#tasks]) task.fail(error);
  }

  /** Resolves when no read from the disk is in progress any more. */
  async drained(): Promise<void> {
    await this.#fetches.drained();
  }

  // --- Which runs next ---

  #admit(task: Task<unknown>, waits: boolean): void {
    let connection = this.#connections.get(task.caller.address);
    if (connection === undefined)
      this.#connections.set(task.caller.address, (connection = { running: 0, waiting: new Set() }));
    if (connection.running >= this.#limits.runningPerConnection) {
      connection.waiting.add(task);
      return;
    }
    connection.running++;
    task.isRunning = true;
    if (waits) this.#park(task);
    else this.#enqueue(task);
  }

  #enqueue(task: Task<unknown>): void {
    this.#ready.push([task.caller.client, task.caller.address], task);
    this.#schedule();
  }

  /** Queues the task again when what it waits for has come. */
  #park(task: Task<unknown>): void {
    void task.io.waitsFor?.then(() => {
      if (!task.isDone) this.#enqueue(task);
    });
  }

  #ended(task: Task<unknown>): void {
    this.#tasks.delete(task);
    const { client, address: name } = task.caller;
    const left = (this.#perClient.get(client) ?? 1) - 1;
    if (left > 0) this.#perClient.set(client, left);
    else this.#perClient.delete(client);
    const connection = this.#connections.get(name);
    if (connection === undefined) return;
    if (!task.isRunning) {
      connection.waiting.delete(task);
      return;
    }
    connection.running--;
    const [next] = connection.waiting;
    if (next !== undefined) {
      connection.waiting.delete(next);
      connection.running++;
      next.isRunning = true;
      this.#enqueue(next);
    } else if (connection.running === 0) this.#connections.delete(name);
  }

  // --- Turns ---

  #schedule(): void {
    if (this.#isScheduled || !this.#isAttached) return;
    this.#isScheduled = true;
    this.#clock.endOfTurn(this.#turn);
  }

  readonly #turn = (): void => {
    this.#isScheduled = false;
    if (!this.#isAttached) return;
    while (this.#ready.size > 0 && this.#hasTime()) {
      const task = this.#ready.take();
      if (task === undefined || task.isDone) continue;
      const outcome = this.#isLate(task) ? this.#timeOut(task) : this.#advance(task);
      if (outcome === "more") this.#ready.push([task.caller.client, task.caller.address], task);
      else if (outcome === "waits") this.#park(task);
    }
    // What follows in this turn, and what comes before the next one, shares with the next.
    if (this.#ready.size > 0) this.#schedule();
  };

  #isLate(task: Task<unknown>): boolean {
    return (
      task.startedMs >= 0 && this.#clock.monotonicMs() - task.startedMs > this.#limits.maxReadMs
    );
  }

  #timeOut(task: Task<unknown>): Outcome {
    task.fail(errorOf("Timeout"));
    return "done";
  }

  #hasTime(): boolean {
    return this.#spentMs < this.#limits.turnMs && this.#spentSteps < this.#limits.turnSteps;
  }

  /** Runs a read for as long as one may run before it is another's turn. */
  #advance<T>(task: Task<T>): Outcome {
    const { quantumMs, quantumSteps } = this.#limits;
    this.#scheduleReset();
    const startMs = this.#clock.monotonicMs();
    if (task.startedMs < 0) task.startedMs = startMs;
    let steps = 0;
    let nowMs = startMs;
    const outcome = task.advance(() => {
      nowMs = this.#clock.monotonicMs();
      return ++steps >= quantumSteps || nowMs - startMs >= quantumMs;
    });
    this.#spentSteps += steps + 1;
    this.#spend(this.#clock.monotonicMs() - startMs);
    return outcome;
  }

  /** Reads have their share whole, but other work of the turn sees what they took. */
  #spend(tookMs: number): void {
    this.#spentMs += tookMs;
    this.#clock.turns.spent(tookMs);
  }

  /** The time of a turn counts from one end of a turn to the next. */
  #scheduleReset(): void {
    if (this.#isResetScheduled) return;
    this.#isResetScheduled = true;
    this.#clock.endOfTurn(() => {
      this.#isResetScheduled = false;
      this.#spentMs = 0;
      this.#spentSteps = 0;
      this.#gets = 0;
    });
  }
}

function resultOf<T>(task: Task<T>): T {
  if (task.error !== undefined) throw task.error;
  return task.value as T;
}

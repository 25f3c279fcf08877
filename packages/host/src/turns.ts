/**
 * Long work in slices, with turns of the event loop between them. All work of a thread draws on one
 * budget, so no request waits longer than 10 ms for a turn, however many kinds of work go on.
 *
 *     turn   | messages, small requests | reads 2 | answers 4 | watches 2 |     TURN_MS in all
 *     turn   | messages, small requests | reads 2 | answers 4 | watches 2 |
 *
 * Three forms, from the plainest:
 *
 *     await turns.next();                                    // the rest in the next turn
 *     await pauses.next();                                   // when the slice is over
 *     const work = new TurnWork(turns, { step: () => … });   // a step; true: there is more
 *
 * and `turns.begin(shareMs)` for work that has a loop of its own. Such a loop makes one step before
 * it asks whether its slice is over: the work goes on even in a turn whose budget is spent.
 */

/** All slices of a turn end after this long: 10 ms, less the longest step. */
export const TURN_MS = 8;
/** What one kind of work takes of a turn, unless it says otherwise. */
export const SLICE_MS = 4;
/** Slices shorter than this together do not begin a new count at the end of the turn. */
const NOTED_MS = 1;

/** The part of a Clock that turns need. */
export interface TurnClock {
  /**
   * Monotonic time in milliseconds with a fraction; never goes back. Durations and deadlines are
   * measured with this one.
   */
  monotonicMs(): number;
  /**
   * Runs `task` at the end of the present turn of the event loop, after the input that is already
   * waiting has been read.
   */
  endOfTurn(task: () => void): void;
}

/** The budget of one thread. Each Clock has one. */
export class Turns {
  readonly clock: TurnClock;
  #spentMs = 0;
  /** What the slices of this turn would have taken if each had got its share. */
  #wantedMs = 0;
  /** The part of its share that a slice gets. */
  #part = 1;
  #isEndSet = false;

  constructor(clock: TurnClock) {
    this.clock = clock;
  }

  /** Resolves at the end of the present turn, when the input that waits has been read. */
  next(): Promise<void> {
    return new Promise((resolve) => this.clock.endOfTurn(resolve));
  }

  /**
   * Begins a slice. It is over after `shareMs`, and earlier if other work has spent the turn, or if
   * all work together wanted more than a turn has in the turn before: then each gets its part.
   */
  begin(shareMs: number = SLICE_MS): Slice {
    const wantedMs = Math.min(shareMs, TURN_MS);
    const startMs = this.clock.monotonicMs();
    const endMs = startMs + Math.min(wantedMs * this.#part, TURN_MS - this.#spentMs);
    return new Slice(this, startMs, endMs, wantedMs);
  }

  /** Counts time against the present turn. `wantedMs`: what the work would have taken. */
  spent(tookMs: number, wantedMs: number = tookMs): void {
    this.#spentMs += tookMs;
    this.#wantedMs += wantedMs;
    if (this.#isEndSet || this.#spentMs < NOTED_MS) return;
    this.#isEndSet = true;
    this.clock.endOfTurn(() => {
      this.#isEndSet = false;
      this.#part = Math.min(1, TURN_MS / this.#wantedMs);
      this.#spentMs = 0;
      this.#wantedMs = 0;
    });
  }
}

/** One stretch of work within a turn. */
export class Slice {
  readonly #turns: Turns;
  readonly #startMs: number;
  readonly #endMs: number;
  readonly #wantedMs: number;

  constructor(turns: Turns, startMs: number, endMs: number, wantedMs: number) {
    this.#turns = turns;
    this.#startMs = startMs;
    this.#endMs = endMs;
    this.#wantedMs = wantedMs;
  }

  /** True once the time is used. It reads the clock, so ask after some 0.1 ms of work. */
  get isOver(): boolean {
    return this.#turns.clock.monotonicMs() >= this.#endMs;
  }

  /** Counts the slice. Call once, when its work stops. */
  end(): void {
    const nowMs = this.#turns.clock.monotonicMs();
    const tookMs = nowMs - this.#startMs;
    this.#turns.spent(tookMs, nowMs >= this.#endMs ? Math.max(tookMs, this.#wantedMs) : tookMs);
  }
}

/** The slices of one long call. */
export class Pauses {
  readonly #turns: Turns;
  readonly #shareMs: number;
  #slice: Slice;

  constructor(turns: Turns, shareMs: number = SLICE_MS) {
    this.#turns = turns;
    this.#shareMs = shareMs;
    this.#slice = turns.begin(shareMs);
  }

  /**
   * Call after each step. Await the result if there is one: the slice is over, and it resolves in
   * the next.
   */
  next(): Promise<void> | undefined {
    if (!this.#slice.isOver) return undefined;
    this.#slice.end();
    return this.#turns.next().then(() => {
      this.#slice = this.#turns.begin(this.#shareMs);
    });
  }
}

export interface WorkOptions {
  readonly shareMs?: number;
  /** A slice ends after so many steps, whatever the time: some clocks stand still in a turn. */
  readonly maxSteps?: number;
  /** Makes one step. Returns whether there is more to do. */
  step(): boolean;
}

/** Work that goes on at the end of each turn, one slice in each, until none is left. */
export class TurnWork {
  readonly #turns: Turns;
  readonly #options: WorkOptions;
  #isPlanned = false;

  constructor(turns: Turns, options: WorkOptions) {
    this.#turns = turns;
    this.#options = options;
  }

  /** Has the work go on from the end of this turn; does nothing if it is to already. */
  plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    this.#turns.clock.endOfTurn(() => {
      this.#isPlanned = false;
      if (this.#slice()) this.plan();
    });
  }

  /** @throws what the step throws */
  #slice(): boolean {
    const { shareMs, maxSteps = Number.POSITIVE_INFINITY } = this.#options;
    const slice = this.#turns.begin(shareMs);
    try {
      for (let steps = 1; ; steps++) {
        if (!this.#options.step()) return false;
        if (steps >= maxSteps || slice.isOver) return true;
      }
    } finally {
      slice.end();
    }
  }
}

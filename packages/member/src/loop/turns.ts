/** When the loop runs and stands still, and what it has not written yet: its parts share these. */
import type { Clock } from "@quorate/host";
import type { raftpb } from "@quorate/proto";
import type { Wal } from "@quorate/wal";

/**
 * The turns of the loop. Whoever has given Raft or its queues something to do wakes the loop, which
 * then runs once at the end of the event loop's turn. At times it stands still (Standstill).
 */
export class LoopTurns {
  readonly #clock: Clock;
  #isSet = false;
  /** The loop's turn; undefined before the start and after the stop. */
  #turn: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True from `start` to `stop`. */
  get areRunning(): boolean {
    return this.#turn !== undefined;
  }

  /** Runs `turn` in each turn of the event loop that somebody has woken it in. */
  start(turn: () => void): void {
    this.#turn = turn;
    this.wake();
  }

  stop(): void {
    this.#turn = undefined;
  }

  /** Sees to it that a turn follows. */
  wake(): void {
    if (this.#isSet || this.#turn === undefined) return;
    this.#isSet = true;
    this.#clock.endOfTurn(this.#due);
  }

  readonly #due = (): void => {
    this.#isSet = false;
    this.#turn?.();
  };
}

/**
 * Times in which nothing is written, sent or applied, while Raft goes on hearing its peers: a
 * received store is put in the place of this one, or a commit has to be durable before anybody
 * hears of it.
 */
export class Standstill {
  readonly #turns: LoopTurns;
  /** True while the loop stands. */
  isOn = false;
  /** True while an entry is begun and not finished; the applier says so. */
  isInEntry = false;
  /** Ends the wait for the end of the entry that is being applied. */
  #entryEnded: (() => void) | undefined;

  constructor(turns: LoopTurns) {
    this.#turns = turns;
  }

  /** True while no further entry may begin: the end of the present one is waited for. */
  get holdsEntries(): boolean {
    return this.#entryEnded !== undefined;
  }

  /** No entry is being applied any more: it is finished or given up, or the member ends. */
  entryEnded(): void {
    this.#entryEnded?.();
  }

  /**
   * Runs `task` while the loop stands. An entry that is being applied is finished before. Rejects
   * while a snapshot is being installed, or the commit of a removal saved.
   */
  async run(task: () => Promise<void>): Promise<void> {
    if (this.#entryEnded !== undefined)
      throw new Error("the member is about to stand still already");
    if (this.isInEntry && !this.isOn && this.#turns.areRunning) {
      await new Promise<void>((resolve) => {
        this.#entryEnded = resolve;
      });
      this.#entryEnded = undefined;
    }
    if (this.isOn || !this.#turns.areRunning)
      throw new Error("the member is installing a snapshot, saving a commit, or ending");
    this.isOn = true;
    try {
      await task();
    } finally {
      this.isOn = false;
      this.#turns.wake();
    }
  }
}

/**
 * A hard state whose only news is the commit index. It travels with the next append to the log,
 * because no member depends on it being durable, but for the last voter (LastVoter).
 */
export class UnwrittenCommit {
  readonly #wal: Wal;
  /** The hard state that waits for an append; undefined for none. */
  hardState: raftpb.HardState | undefined;

  constructor(wal: Wal) {
    this.#wal = wal;
  }

  /** Writes it now, for callers that are about to refer to it in the log. */
  write(): void {
    const hardState = this.hardState;
    this.hardState = undefined;
    if (hardState !== undefined) this.#wal.append(hardState, []);
  }
}

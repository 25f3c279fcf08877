/**
 * The turns of a member's loop. Whoever has given Raft or its queues something to do wakes the
 * loop, which then runs once at the end of the event loop's turn: all that arrived together is one
 * batch.
 */
import type { Clock } from "@quorate/host";

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

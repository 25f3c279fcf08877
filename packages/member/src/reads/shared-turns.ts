/**
 * Work in steps that must not be refused, because what it belongs to has happened: the answers of
 * writes, and the member's own. All of it together runs for one slice in a turn of the event loop,
 * fair over clients and their connections. Reads run in Slices, which refuses what is too much.
 */
import { type Clock, SLICE_MS, type Turns } from "@quorate/host";
import type { Steps } from "@quorate/store";
import { FairQueue } from "./fair-queue.ts";
import type { SliceCaller } from "./slice-task.ts";

/** Steps in one turn of the event loop, where the clock stands still. */
export const MAX_SLICE_STEPS = 256;

export class SharedTurns {
  readonly #turns: Turns;
  readonly #queue = new FairQueue<() => void>();
  /** The present turn has had its slice. */
  #hasRun = false;

  constructor(clock: Pick<Clock, "turns">) {
    this.#turns = clock.turns;
  }

  /**
   * Runs steps to their end: a first slice at once, if the turn has had none. @throws what the
   * steps throw, as a rejection
   */
  run<T>(
    { client, address }: Pick<SliceCaller, "client" | "address">,
    steps: Steps<T>,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const advance = (): void => {
        try {
          const step = steps.next();
          if (step.done === true) resolve(step.value);
          else this.#queue.push([client, address], advance);
        } catch (error) {
          reject(error);
        }
      };
      this.#queue.push([client, address], advance);
      if (!this.#hasRun) this.#slice();
    });
  }

  #slice(): void {
    this.#hasRun = true;
    const slice = this.#turns.begin(SLICE_MS);
    for (let i = 0; i < MAX_SLICE_STEPS && this.#queue.size > 0; i++) {
      this.#queue.take()?.();
      if (slice.isOver) break;
    }
    slice.end();
    this.#turns.clock.endOfTurn(() => {
      this.#hasRun = false;
      if (this.#queue.size > 0) this.#slice();
    });
  }
}

/** Long work in slices, and calls that a caller may abandon. */
import type { Clock } from "@quorate/host";
import type { Cancellation } from "../meta/cancellation.ts";

/** Work on objects holds the event loop for so long at most. */
const SLICE_MS = 5;

export type SliceClock = Pick<Clock, "monotonicMs" | "endOfTurn">;

/** Returns to the event loop when the present slice is over. */
export class Slices {
  readonly #clock: SliceClock;
  #endMs: number;

  constructor(clock: SliceClock) {
    this.#clock = clock;
    this.#endMs = clock.monotonicMs() + SLICE_MS;
  }

  /** Call after each object, and await the result if there is one. */
  next(): Promise<void> | undefined {
    if (this.#clock.monotonicMs() < this.#endMs) return undefined;
    return new Promise<void>((resolve) => {
      this.#clock.endOfTurn(() => {
        this.#endMs = this.#clock.monotonicMs() + SLICE_MS;
        resolve();
      });
    });
  }
}

/** Throws the signal's reason if it is aborted. */
export function throwIfAborted(signal: Cancellation | undefined): void {
  if (signal?.aborted === true) throw signal.reason;
}

/** The result of `work`; rejects with the signal's reason as soon as that is aborted. */
export function unlessAborted<T>(signal: Cancellation | undefined, work: Promise<T>): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const abandon = () => reject(signal.reason);
    if (signal.aborted) abandon();
    else signal.addEventListener("abort", abandon);
    // The work goes on without its caller; its outcome has no receiver then.
    work.then(
      (value) => {
        signal.removeEventListener("abort", abandon);
        resolve(value);
      },
      (error) => {
        signal.removeEventListener("abort", abandon);
        reject(error);
      },
    );
  });
}

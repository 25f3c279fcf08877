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
export async function unlessAborted<T>(
  signal: Cancellation | undefined,
  work: Promise<T>,
): Promise<T> {
  if (signal === undefined) return work;
  // The work goes on without its caller; its failure has no receiver then.
  work.catch(() => {});
  throwIfAborted(signal);
  let abandon!: () => void;
  const abandoned = new Promise<never>((_, reject) => {
    abandon = () => reject(signal.reason);
  });
  signal.addEventListener("abort", abandon);
  try {
    return await Promise.race([work, abandoned]);
  } finally {
    signal.removeEventListener("abort", abandon);
  }
}

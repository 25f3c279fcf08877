/** Calls that a caller may abandon. */
import type { Cancellation } from "../meta/cancellation.ts";

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

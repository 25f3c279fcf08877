/** Calls that their caller may abandon. */

/** Whether the result of a call is still wanted. An AbortSignal is one. */
export interface Cancellation {
  readonly aborted: boolean;
  /** The error that a cancelled call rejects with. */
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
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

/** A Cancellation that its owner triggers. */
export class Canceller implements Cancellation {
  readonly #listeners = new Set<() => void>();
  #reason: unknown;
  #isAborted = false;

  get aborted(): boolean {
    return this.#isAborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    this.#listeners.delete(listener);
  }

  /** Cancels with the error that pending calls reject with; a second call does nothing. */
  abort(reason: unknown): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#reason = reason;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}

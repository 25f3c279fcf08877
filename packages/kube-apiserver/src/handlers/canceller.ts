/** A Cancellation that its owner triggers. */
import type { Cancellation } from "@quorate/kube-storage";

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

  /** Rejects when the call is cancelled; else settles as `work` does. */
  race<T>(work: Promise<T>): Promise<T> {
    if (this.#isAborted) {
      work.catch(() => {});
      return Promise.reject(this.#reason);
    }
    return new Promise((resolve, reject) => {
      const aborted = (): void => reject(this.#reason);
      this.#listeners.add(aborted);
      const done = (): void => void this.#listeners.delete(aborted);
      work.then(
        (value) => {
          done();
          resolve(value);
        },
        (error) => {
          done();
          reject(error);
        },
      );
    });
  }
}

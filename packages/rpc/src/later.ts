/**
 * Results that come later. A promise, its reaction, its closures and its microtask are half of
 * what a short call allocates, and live for as long as the call waits; on the paths of most calls
 * a `Later` stands in their place.
 */

/** Takes a result that comes later: one of the two is called, once. Neither throws. */
export interface Receiver<T> {
  resolved(value: T): void;
  rejected(error: unknown): void;
}

/** A result that comes later, for one receiver. `await` makes a promise of it. */
export class Later<T> implements Receiver<T>, PromiseLike<T> {
  #receiver: Receiver<T> | undefined = undefined;
  /** Hands on what came before there was a receiver. */
  #early: ((receiver: Receiver<T>) => void) | undefined = undefined;

  /** Has the receiver get the result. Called once. */
  deliver(receiver: Receiver<T>): void {
    if (this.#early === undefined) this.#receiver = receiver;
    else this.#early(receiver);
  }

  resolved(value: T): void {
    if (this.#receiver !== undefined) this.#receiver.resolved(value);
    else this.#early = (receiver) => receiver.resolved(value);
  }

  rejected(error: unknown): void {
    if (this.#receiver !== undefined) this.#receiver.rejected(error);
    else this.#early = (receiver) => receiver.rejected(error);
  }

  // biome-ignore lint/suspicious/noThenProperty: `await` is what makes a promise of it
  then<Resolved = T, Rejected = never>(
    onResolved?: ((value: T) => Resolved | PromiseLike<Resolved>) | null,
    onRejected?: ((error: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Resolved | Rejected> {
    return this.promise().then(onResolved, onRejected);
  }

  /** A promise of the result, in the place of `deliver`. */
  promise(): Promise<T> {
    return new Promise((resolved, rejected) => this.deliver({ resolved, rejected }));
  }
}

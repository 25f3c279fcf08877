/**
 * Results on their way to those who wait for them. The loop only notes them; they are handed over
 * in order when its turn is over, as promises would be, so that nothing of a caller's runs within
 * the loop. One microtask serves all results of a turn.
 */
import type { AppliedEntry } from "@quorate/store";

/** What a call waits for does not come. */
export interface Refusable {
  /** Called once, and then nothing else. @param error an EtcdError, or why the member ends */
  refused(error: Error): void;
}

/** Who waits for the result of a request. One of the two is called, once; neither throws. */
export interface Proposer extends Refusable {
  /** The caller has gone: a request that Raft has not taken yet is not proposed any more. */
  readonly isGone?: boolean;
  /** @param result of applying the request here, an error of the store included */
  applied(result: AppliedEntry): void;
}

/** A read that waits for its round. One of the two is called, once; neither throws. */
export interface Reader extends Refusable {
  /** A read of the local store is linearizable now. */
  granted(): void;
}

/** One that waits with a promise, which hands things over by itself. */
class PromiseProposer<T> implements Proposer {
  readonly #result: PromiseWithResolvers<T>;

  constructor(result: PromiseWithResolvers<T>) {
    this.#result = result;
  }

  applied(result: AppliedEntry): void {
    this.#result.resolve(result as T);
  }

  refused(error: Error): void {
    this.#result.reject(error);
  }
}

/** A proposer of a promise. */
export function proposerOf<T>(result: PromiseWithResolvers<T>): Proposer {
  return new PromiseProposer(result);
}

const NOW = Promise.resolve();

export class Deliveries {
  /** Those who get something, and in the same places what they get; readers of a round together. */
  #waiting: (Refusable | readonly Reader[])[] = [];
  #results: (AppliedEntry | Error | undefined)[] = [];

  applied(proposer: Proposer, result: AppliedEntry): void {
    if (proposer instanceof PromiseProposer) proposer.applied(result);
    else this.#add(proposer, result);
  }

  granted(readers: readonly Reader[]): void {
    this.#add(readers, undefined);
  }

  refused(one: Refusable, error: Error): void {
    if (one instanceof PromiseProposer) one.refused(error);
    else this.#add(one, error);
  }

  #add(one: Refusable | readonly Reader[], result: AppliedEntry | Error | undefined): void {
    if (this.#waiting.length === 0) NOW.then(this.#deliver);
    this.#waiting.push(one);
    this.#results.push(result);
  }

  readonly #deliver = (): void => {
    const waiting = this.#waiting;
    const results = this.#results;
    this.#waiting = [];
    this.#results = [];
    for (let i = 0; i < waiting.length; i++) {
      const one = waiting[i];
      const result = results[i];
      if (result instanceof Error) (one as Refusable).refused(result);
      else if (result !== undefined) (one as Proposer).applied(result);
      else for (const reader of one as readonly Reader[]) reader.granted();
    }
  };
}

/**
 * The order of writes of one node, or in one directory, on this member. Each is planned as if those
 * before it had succeeded, so that they wait for one commit together instead of one after another.
 *
 *     on their way: w1, w2, w3    tail: the state behind w3
 *     waiting:      w4            begins behind the tail, or when none is on its way any more
 *
 * A write that fails breaks the chain: those behind it fail too, as their comparisons name the
 * state that it should have left. All of them begin again in their order. A write that fails a
 * second time runs alone, so that neither other members nor refused clients can hold it up by
 * breaking chains.
 */

/** Writes that wait or are on their way, of all chains. */
export const MAX_CHAINED_WRITES = 10_000;
/** Writes on their way in one chain: as many begin again when it breaks. */
export const MAX_CHAIN_WRITES = 256;

/** What a write has begun. */
export interface Begun<T, Tail> {
  /** The write's result; undefined: something came in between, it begins again. */
  readonly done: Promise<T | undefined>;
  /**
   * The state when it has succeeded; undefined: only that will show it; "beside": it is no part of
   * the chain, those behind it do not depend on its result.
   */
  readonly tail: Tail | "beside" | undefined;
}

/** A write, as its chain sees it. */
export interface Chainable<T, Tail> {
  /** It begins only while no other is on its way, and others begin after its end. */
  readonly isAlone: boolean;
  /**
   * Begins, or begins again.
   * @param tail the state when those on their way have succeeded; undefined: none is
   * @returns undefined to wait until none is on its way
   */
  begin(tail: Tail | undefined): Begun<T, Tail> | undefined;
}

interface Entry<T, Tail> {
  readonly write: Chainable<T, Tail>;
  readonly resolve: (result: T) => void;
  readonly reject: (error: unknown) => void;
}

interface Chain<T, Tail> {
  waiting: Entry<T, Tail>[];
  onTheirWay: number;
  tail: Tail | undefined;
}

export class Chains<T, Tail> {
  readonly #chains = new Map<string, Chain<T, Tail>>();
  #writes = 0;

  /** True if no more writes may come. */
  get isFull(): boolean {
    return this.#writes >= MAX_CHAINED_WRITES;
  }

  /** Chains with writes. */
  get size(): number {
    return this.#chains.size;
  }

  /** Runs a write in the chain of this name. Rejects as `begin` throws or its result rejects. */
  run(name: string, write: Chainable<T, Tail>): Promise<T> {
    this.#writes++;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#enter(name, { write, resolve, reject });
    return promise;
  }

  #enter(name: string, entry: Entry<T, Tail>): void {
    let chain = this.#chains.get(name);
    if (chain === undefined) {
      chain = { waiting: [], onTheirWay: 0, tail: undefined };
      this.#chains.set(name, chain);
    }
    chain.waiting.push(entry);
    this.#pump(name, chain);
  }

  #pump(name: string, chain: Chain<T, Tail>): void {
    const held = chain.waiting.findIndex((entry) => !this.#begin(name, chain, entry));
    if (held !== 0) chain.waiting = held < 0 ? [] : chain.waiting.slice(held);
    if (chain.waiting.length === 0 && chain.onTheirWay === 0) this.#chains.delete(name);
  }

  /** False: the entry waits. */
  #begin(name: string, chain: Chain<T, Tail>, entry: Entry<T, Tail>): boolean {
    const { write } = entry;
    const isFirst = chain.onTheirWay === 0;
    if (!isFirst) {
      if (chain.tail === undefined || chain.onTheirWay >= MAX_CHAIN_WRITES) return false;
      if (write.isAlone) return false;
    }
    let begun: Begun<T, Tail> | undefined;
    try {
      begun = write.begin(isFirst ? undefined : chain.tail);
    } catch (error) {
      this.#writes--;
      entry.reject(error);
      return true;
    }
    if (begun === undefined) return false;
    const { done, tail } = begun;
    if (tail === "beside") {
      this.#follow(name, entry, done, () => {});
      return true;
    }
    chain.onTheirWay++;
    chain.tail = write.isAlone ? undefined : tail;
    this.#follow(name, entry, done, (isBroken) => {
      chain.onTheirWay--;
      if (isBroken) chain.tail = undefined;
    });
    return true;
  }

  /** Ends the entry with its result, or lets it begin again. */
  #follow(
    name: string,
    entry: Entry<T, Tail>,
    done: Promise<T | undefined>,
    left: (isBroken: boolean) => void,
  ): void {
    const over = (): void => {
      this.#writes--;
      const chain = this.#chains.get(name);
      if (chain !== undefined) this.#pump(name, chain);
    };
    done.then(
      (result) => {
        left(result === undefined);
        if (result === undefined) {
          this.#enter(name, entry);
          return;
        }
        entry.resolve(result);
        over();
      },
      (error) => {
        left(true);
        entry.reject(error);
        over();
      },
    );
  }
}

/**
 * Hashes of the store, one at a time: each reads the whole store and delays compaction. Requests
 * for the same hash share one run, so that compaction never waits for more than the run in
 * progress.
 */
import { errorOf } from "@quorate/proto";

/** Maximum number of different hashes that wait for their turn. */
export const MAX_WAITING_HASHES = 8;

interface Run<T> {
  readonly key: string;
  /** Whether a run that began now would have the same result. */
  readonly isCurrent: () => boolean;
  hasBegun: boolean;
  readonly result: Promise<T>;
}

export class HashRuns {
  #runs: Run<unknown>[] = [];
  #last: Promise<void> = Promise.resolve();

  /**
   * Joins a run of this key that waits, or that is in progress and current; otherwise queues one.
   * @param isCurrent whether a run in progress serves new callers @throws EtcdError TooManyRequests
   */
  run<T>(key: string, make: () => Promise<T>, isCurrent: () => boolean = () => false): Promise<T> {
    const shared = this.#runs.find((run) => run.key === key && (!run.hasBegun || run.isCurrent()));
    if (shared !== undefined) return shared.result as Promise<T>;
    if (this.#runs.length > MAX_WAITING_HASHES) throw errorOf("TooManyRequests");
    const isAlone = this.#runs.length === 0;
    const result = isAlone ? make() : this.#last.then(begin);
    const run: Run<T> = { key, isCurrent, hasBegun: isAlone, result };
    function begin(): Promise<T> {
      run.hasBegun = true;
      return make();
    }
    this.#runs.push(run);
    const end = (): void => {
      this.#runs = this.#runs.filter((one) => one !== run);
    };
    this.#last = result.then(end, end);
    return result;
  }
}

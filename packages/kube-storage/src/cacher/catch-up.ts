/**
 * The time between the list that fills a cache and the moment from which it is served: a list of
 * some time ago is followed by the changes since.
 */
import type { ProgressRequester } from "./progress-requester.ts";

export class CatchUp {
  readonly #progress: ProgressRequester;
  readonly #done: () => void;
  /** The revision to be reached; undefined while none is. */
  #target: number | undefined;

  /** @param progress is asked for, because the latest change may be another resource's */
  constructor(progress: ProgressRequester, done: () => void) {
    this.#progress = progress;
    this.#done = done;
  }

  /** The cache has been filled as of `revision`, and is served from `target` on. */
  begin(target: number, revision: number): void {
    this.cancel();
    this.#target = target;
    this.#progress.add();
    this.reached(revision);
  }

  reached(revision: number): void {
    if (this.#target === undefined || revision < this.#target) return;
    this.cancel();
    this.#done();
  }

  cancel(): void {
    if (this.#target === undefined) return;
    this.#target = undefined;
    this.#progress.remove();
  }
}

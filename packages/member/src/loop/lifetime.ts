/** Whether a member goes on, and how it ends: the first part that is built, as all may end it. */

/** Closes the member. @param error the reason, where it does not end in order */
export type OnEnded = (error: unknown) => void;

export class Lifetime {
  #hasEnded = false;
  #onEnded: OnEnded | undefined;

  /** True from the first reason to end on: nothing new is begun. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** @param onEnded called once, at the first reason to end that comes from within the member */
  listen(onEnded: OnEnded): void {
    this.#onEnded = onEnded;
  }

  /** The member has to end by itself. @param error the reason; undefined where all is in order */
  readonly end = (error?: unknown): void => {
    if (this.stop()) this.#onEnded?.(error);
  };

  /** Its owner ends it. @returns false where it has ended already */
  stop(): boolean {
    if (this.#hasEnded) return false;
    this.#hasEnded = true;
    return true;
  }
}

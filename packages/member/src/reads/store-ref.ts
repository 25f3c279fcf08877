/**
 * The store in use. It is replaced whole when a received store takes its place (store-exchange.ts):
 *
 *     detach: every follower lets go, in order -> the old store is closed, the new one opened
 *     attach: the new store is in use, and every follower goes on with it, in the same order
 */
import type { Store } from "@quorate/store";

/** A part of the member that holds on to the store between two turns of the event loop. */
export interface StoreFollower {
  /** Lets go: nothing here touches the store in use any more when it resolves. */
  detach?(): Promise<unknown>;
  /** Goes on with the store that is in use from now on. */
  attach?(store: Store): void;
}

export class StoreRef {
  /** The store in use. Not to be kept beyond the present turn of the event loop. */
  current: Store;
  /**
   * How many reasons there are to show nothing of it to clients: another store takes its place,
   * this member differs from the others.
   */
  withheld = 0;
  readonly #followers: StoreFollower[] = [];

  constructor(store: Store) {
    this.current = store;
  }

  /** Adds a follower; it is expected to be attached to the store in use already. */
  follow(follower: StoreFollower): void {
    this.#followers.push(follower);
  }

  /** Makes all followers let go, one after the other. */
  async detach(): Promise<void> {
    for (const follower of this.#followers) await follower.detach?.();
  }

  /** Puts another store in use. */
  attach(store: Store): void {
    this.current = store;
    for (const follower of this.#followers) follower.attach?.(store);
  }
}

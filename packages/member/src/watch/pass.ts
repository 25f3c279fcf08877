/** Watchers that read the same history together, each event of it once for all of them. */
import type { WatchEvent } from "./event.ts";
import type { StreamWatcher } from "./watch-stream.ts";
import { WatcherGroup } from "./watcher-group.ts";

export class Pass {
  readonly #group = new WatcherGroup<StreamWatcher>();
  readonly #watchers = new Set<StreamWatcher>();
  /** Everything before this revision has been read. */
  cursor: number;
  /**
   * The revision of which a part was read: what is queued of it is held back until it is complete.
   */
  openRevision: number | undefined = undefined;
  /** It is to stop reading. */
  aborted = false;

  /** @param watchers in no other place; the pass begins at the least of their revisions. */
  constructor(watchers: Iterable<StreamWatcher>) {
    this.cursor = Number.MAX_SAFE_INTEGER;
    for (const watcher of watchers) {
      this.cursor = Math.min(this.cursor, watcher.nextRevision);
      this.add(watcher);
    }
  }

  get watchers(): Iterable<StreamWatcher> {
    return this.#watchers;
  }

  /** The revision up to which everything has been read. */
  get readThrough(): number {
    return this.cursor - 1;
  }

  get size(): number {
    return this.#watchers.size;
  }

  /** Takes a watcher in that needs nothing before the cursor. */
  add(watcher: StreamWatcher): void {
    watcher.place = this;
    this.#watchers.add(watcher);
    this.#group.add(watcher);
  }

  delete(watcher: StreamWatcher): void {
    this.#watchers.delete(watcher);
    this.#group.delete(watcher);
  }

  /** The first revision that a watcher has not got. */
  nextOf(watcher: StreamWatcher): number {
    return Math.max(watcher.nextRevision, this.cursor);
  }

  /**
   * Offers an event to the watchers that want it, and parks those that are full; returns how many
   * took it.
   */
  offer(event: WatchEvent, park: (watcher: StreamWatcher, revision: number) => void): number {
    let taken = 0;
    let refused: StreamWatcher[] | undefined;
    this.#group.visit(event.key, (watcher) => {
      if (!watcher.wants(event)) return;
      if (watcher.stream.offer(watcher, event)) taken++;
      else if (refused === undefined) refused = [watcher];
      else refused.push(watcher);
    });
    if (refused !== undefined) for (const watcher of refused) park(watcher, event.main);
    return taken;
  }
}

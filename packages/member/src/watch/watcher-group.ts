/**
 * A set of watchers that finds those of a key: exact keys by map, ranges by interval tree
 * (etcd: mvcc/watcher_group.go).
 */
import type { KeyRange } from "@quorate/store";
import type { EventList } from "./event.ts";
import { IntervalTree } from "./interval-tree.ts";

interface Watching {
  readonly range: KeyRange;
  readonly prevKv?: boolean;
}

/** The watchers of one range. */
export class Crowd<W extends Watching> {
  readonly watchers = new Set<W>();
  /** One of them wants pairs before events, or did. */
  wantsPrevKv = false;
  /** Events that all of them have still to be offered. Kept by the feed. */
  queue: EventList | undefined = undefined;

  add(watcher: W): void {
    this.watchers.add(watcher);
    this.wantsPrevKv ||= watcher.prevKv === true;
  }
}

/** Most keys have one watcher, which needs no crowd. */
type OneOrMore<W extends Watching> = W | Crowd<W>;

export class WatcherGroup<W extends Watching> {
  readonly #keys = new Map<string, OneOrMore<W>>();
  readonly #ranges = new IntervalTree<Crowd<W>>();
  #size = 0;

  /** Number of watchers. */
  get size(): number {
    return this.#size;
  }

  /** Adds a watcher that is not in the group. */
  add(watcher: W): void {
    const { range } = watcher;
    this.#size++;
    if (range.single) {
      const there = this.#keys.get(range.key);
      if (there === undefined) this.#keys.set(range.key, watcher);
      else if (there instanceof Crowd) there.add(watcher);
      else this.#keys.set(range.key, crowdOf(there, watcher));
      return;
    }
    const there = this.#ranges.get(range.key, range.to);
    if (there === undefined) this.#ranges.add(range.key, range.to, crowdOf(watcher));
    else there.add(watcher);
  }

  /** Takes a watcher out that is in the group. */
  delete(watcher: W): void {
    const { range } = watcher;
    this.#size--;
    if (range.single) {
      const there = this.#keys.get(range.key);
      if (!(there instanceof Crowd)) this.#keys.delete(range.key);
      else {
        there.watchers.delete(watcher);
        if (there.watchers.size === 0) this.#keys.delete(range.key);
      }
      return;
    }
    const there = this.#ranges.get(range.key, range.to);
    there?.watchers.delete(watcher);
    if (there?.watchers.size === 0) this.#ranges.delete(range.key, range.to);
  }

  /**
   * Visits the watchers of a key: those of one range together, or each. The group must not be
   * changed meanwhile.
   */
  visit(
    key: string,
    visit: (watcher: W) => void,
    visitCrowd: (crowd: Crowd<W>) => void = ({ watchers }) => {
      for (const watcher of watchers) visit(watcher);
    },
  ): void {
    const exact = this.#keys.get(key);
    if (exact instanceof Crowd) visitCrowd(exact);
    else if (exact !== undefined) visit(exact);
    if (this.#ranges.size > 0) this.#ranges.stab(key, visitCrowd);
  }
}

function crowdOf<W extends Watching>(...watchers: readonly W[]): Crowd<W> {
  const crowd = new Crowd<W>();
  for (const watcher of watchers) crowd.add(watcher);
  return crowd;
}

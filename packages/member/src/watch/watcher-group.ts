/**
 * A set of watchers that finds those of a key: exact keys by map, ranges by interval tree
 * (etcd: mvcc/watcher_group.go).
 */
import type { KeyRange } from "@quorate/store";
import { IntervalTree } from "./interval-tree.ts";

interface Watching {
  readonly range: KeyRange;
}

/** Most keys and ranges have one watcher, which needs no set. */
type OneOrMore<W> = W | Set<W>;

export class WatcherGroup<W extends Watching> {
  readonly #keys = new Map<string, OneOrMore<W>>();
  readonly #ranges = new IntervalTree<Set<W>>();
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
      else if (there instanceof Set) there.add(watcher);
      else this.#keys.set(range.key, new Set([there, watcher]));
      return;
    }
    const there = this.#ranges.get(range.key, range.to);
    if (there === undefined) this.#ranges.add(range.key, range.to, new Set([watcher]));
    else there.add(watcher);
  }

  /** Takes a watcher out that is in the group. */
  delete(watcher: W): void {
    const { range } = watcher;
    this.#size--;
    if (range.single) {
      const there = this.#keys.get(range.key);
      if (!(there instanceof Set)) this.#keys.delete(range.key);
      else {
        there.delete(watcher);
        if (there.size === 0) this.#keys.delete(range.key);
      }
      return;
    }
    const there = this.#ranges.get(range.key, range.to);
    there?.delete(watcher);
    if (there?.size === 0) this.#ranges.delete(range.key, range.to);
  }

  /** Visits the watchers of a key. The group must not be changed meanwhile. */
  visit(key: string, visit: (watcher: W) => void): void {
    const exact = this.#keys.get(key);
    if (exact !== undefined) {
      if (exact instanceof Set) for (const watcher of exact) visit(watcher);
      else visit(exact);
    }
    if (this.#ranges.size === 0) return;
    this.#ranges.stab(key, (watchers) => {
      for (const watcher of watchers) visit(watcher);
    });
  }
}

/**
 * The objects as they were at a revision within the window. Some moments are kept; the others are
 * made from the next kept one, by undoing the events in between:
 *
 *     window     e0 … e1023 | e1024 … e2047 | e2048 … e2100
 *     kept                  S1              S2              the present objects
 *     after e1500: S2 without e2047 … e1501
 */
import type { EventWindow } from "./event-window.ts";
import type { Element, ObjectSet } from "./object-set.ts";
import { SortedTree } from "./sorted-tree.ts";
import type { SortedView } from "./sorted-view.ts";

interface Kept {
  /** All events below this index have happened. */
  readonly index: number;
  readonly view: SortedView<Element>;
}

export class Snapshots {
  readonly #interval: number;
  #kept: Kept[] = [];

  /** @param interval events between two kept moments: that many are undone at the most */
  constructor(interval: number) {
    this.#interval = interval;
  }

  /** Kept moments; each costs the nodes of the tree that changed since. */
  get count(): number {
    return this.#kept.length;
  }

  /** To be called after each event. */
  eventApplied(window: EventWindow, objects: ObjectSet): void {
    if (window.endIndex % this.#interval !== 0) return;
    this.#kept.push({ index: window.endIndex, view: objects.freeze() });
    const first = this.#kept.findIndex(({ index }) => index > window.startIndex);
    this.#kept.splice(0, first);
  }

  clear(): void {
    this.#kept = [];
  }

  /** The objects after all events up to `revision`; undefined if the window begins later. */
  viewAt(
    revision: number,
    window: EventWindow,
    objects: ObjectSet,
  ): SortedView<Element> | undefined {
    if (revision < window.completeAfter) return undefined;
    const index = window.firstAfter(revision);
    const kept = this.#kept.find((one) => one.index >= index);
    const from = kept ?? { index: window.endIndex, view: objects.freeze() };
    if (from.index === index) return from.view;
    const tree = new SortedTree(from.view);
    for (let i = from.index - 1; i >= index; i--) {
      const { key, previous } = window.at(i);
      if (previous === undefined) tree.delete(key);
      else tree.set(previous);
    }
    return tree.freeze();
  }
}

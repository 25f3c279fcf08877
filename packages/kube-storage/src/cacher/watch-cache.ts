/**
 * The present objects of a resource and its latest changes (apiserver: pkg/storage/cacher/
 * watch_cache.go). A Reflector feeds it; lists and watches read it.
 *
 *     store below --list--> replace --> objects
 *                 --watch-> apply  ---> objects, window, snapshots, then the watchers
 *                 --bookmark> progress: nothing below this revision is missing
 */
import { BriefSet, type Clock, type Timer } from "@quorate/host";
import { type Cancellation, throwIfAborted } from "../meta/cancellation.ts";
import type { AttributesOf } from "../meta/selectors.ts";
import { ApiError } from "../meta/status.ts";
import { tooLarge } from "../storage/errors.ts";
import type { WatchEvent } from "../storage/interface.ts";
import type { CacherMetrics } from "./cacher-metrics.ts";
import { EventWindow, WindowEvent, type WindowLimits } from "./event-window.ts";
import { type Element, elementOf, ObjectSet } from "./object-set.ts";
import type { ProgressRequester } from "./progress-requester.ts";
import { SortedTree, type SortedView } from "./sorted-tree.ts";

interface WatchCacheOptions {
  readonly attributesOf: AttributesOf;
  readonly indexFields: readonly string[];
  readonly window: WindowLimits;
}

interface WatchCacheDeps {
  readonly clock: Pick<Clock, "monotonicMs" | "after">;
  readonly metrics: CacherMetrics;
  readonly progress: ProgressRequester;
  /** Called with each event and its index in the window. */
  readonly dispatch: (event: WindowEvent, index: number) => void;
}

export class WatchCache {
  readonly window: EventWindow;
  readonly #options: WatchCacheOptions;
  readonly #deps: WatchCacheDeps;
  readonly #freshness: Freshness;
  readonly #snapshots: Snapshots;
  #objects: ObjectSet;

  constructor(options: WatchCacheOptions, deps: WatchCacheDeps) {
    this.#options = options;
    this.#deps = deps;
    this.window = new EventWindow(options.window);
    this.#snapshots = new Snapshots(options.window.snapshotInterval);
    this.#objects = this.emptySet();
    this.#freshness = new Freshness(deps.clock, deps.progress, (ms) => deps.metrics.waited(ms));
    deps.metrics.capacity = this.window.capacity;
  }

  /** All changes up to this revision are in the cache. */
  get resourceVersion(): number {
    return this.#freshness.revision;
  }

  get objectCount(): number {
    return this.#objects.size;
  }

  get(key: string): Element | undefined {
    return this.#objects.get(key);
  }

  /** The present objects, which later changes do not touch. */
  view(): SortedView<Element> {
    return this.#objects.freeze();
  }

  /** The objects at a revision up to the present one; undefined where that is too old. */
  viewAt(revision: number): SortedView<Element> | undefined {
    return this.#snapshots.viewAt(revision, this.window, this.#objects);
  }

  byValue(field: string, value: string): readonly Element[] {
    return this.#objects.byValue(field, value);
  }

  /** Resolves when the cache has reached `revision`; see Freshness. */
  waitUntilFresh(revision: number, signal: Cancellation | undefined): Promise<void> {
    return this.#freshness.wait(revision, signal);
  }

  /** A set to be filled and passed to `replace`. */
  emptySet(): ObjectSet {
    return new ObjectSet(this.#options.indexFields);
  }

  /** Begins again with these objects. */
  replace(objects: ObjectSet, revision: number): void {
    this.#objects = objects;
    this.#snapshots.clear();
    this.window.clear(revision);
    this.#reached(revision);
  }

  /** Applies one change. Throws where the object cannot be decoded. */
  apply({ type, object: stored }: WatchEvent): void {
    const { metrics, clock, dispatch } = this.#deps;
    metrics.eventsReceived++;
    const element = type === "DELETED" ? undefined : elementOf(stored, this.#options.attributesOf);
    const previous =
      element === undefined ? this.#objects.delete(stored.key) : this.#objects.set(element);
    const event = new WindowEvent(stored, element, previous, clock.monotonicMs());
    const index = this.window.endIndex;
    this.window.append(event);
    if (this.window.capacity !== metrics.capacity) metrics.capacityChanged(this.window.capacity);
    this.#snapshots.eventApplied(this.window, this.#objects);
    dispatch(event, index);
    metrics.eventsDispatched++;
    this.#reached(stored.resourceVersion);
  }

  /** The store has reported that no change up to `revision` is missing. */
  progress(revision: number): void {
    if (revision > this.resourceVersion) this.#reached(revision);
  }

  #reached(revision: number): void {
    this.#deps.metrics.resourceVersion = revision;
    this.#freshness.reached(revision);
  }
}

interface Kept {
  /** All events below this index have happened. */
  readonly index: number;
  readonly view: SortedView<Element>;
}

/**
 * The objects as they were at a revision within the window. Some moments are kept; the others are
 * made from the next kept one, by undoing the events in between:
 *
 *     window     e0 … e1023 | e1024 … e2047 | e2048 … e2100
 *     kept                  S1              S2              the present objects
 *     after e1500: S2 without e2047 … e1501
 */
class Snapshots {
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

/** A request waits so long; then the client retries (apiserver: blockTimeout). */
export const FRESH_TIMEOUT_MS = 3000;
/** Requests that wait at a time. */
export const MAX_FRESH_WAITERS = 16_384;

interface Waiter {
  readonly revision: number;
  readonly settle: (error: unknown) => void;
}

/** Requests that wait until the cache has reached a revision. */
export class Freshness {
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  readonly #progress: ProgressRequester;
  readonly #observe: (waitedMs: number) => void;
  readonly #waiters = new BriefSet<Waiter>();
  #revision = 0;
  /** The least revision that a waiter waits for. */
  #least = Number.POSITIVE_INFINITY;

  /** @param observe receives how long each request waited */
  constructor(
    clock: Pick<Clock, "monotonicMs" | "after">,
    progress: ProgressRequester,
    observe: (waitedMs: number) => void,
  ) {
    this.#clock = clock;
    this.#progress = progress;
    this.#observe = observe;
  }

  get revision(): number {
    return this.#revision;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /** The cache has reached `revision`; it may go back when the cache is filled again. */
  reached(revision: number): void {
    this.#revision = revision;
    if (revision < this.#least) return;
    this.#least = Number.POSITIVE_INFINITY;
    for (const waiter of this.#waiters) {
      if (waiter.revision <= revision) waiter.settle(undefined);
      else this.#least = Math.min(this.#least, waiter.revision);
    }
  }

  /**
   * Resolves when the cache has reached `revision`. Rejects with StorageError
   * "TooLargeResourceVersion" after FRESH_TIMEOUT_MS, with ApiError 429 if too many wait, with the
   * signal's reason.
   */
  async wait(revision: number, signal: Cancellation | undefined): Promise<void> {
    throwIfAborted(signal);
    if (revision === 0) return;
    if (revision <= this.#revision) return this.#observe(0);
    if (this.#waiters.size >= MAX_FRESH_WAITERS)
      throw new ApiError(429, "TooManyRequests", "too many requests wait for the watch cache", {
        retryAfterSeconds: 1,
      });
    const startMs = this.#clock.monotonicMs();
    try {
      await this.#waitFor(revision, signal);
    } finally {
      this.#observe(this.#clock.monotonicMs() - startMs);
    }
  }

  #waitFor(revision: number, signal: Cancellation | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const abort = () => waiter.settle(signal?.reason);
      const waiter: Waiter = {
        revision,
        settle: (error) => {
          this.#waiters.delete(waiter);
          timer?.cancel();
          signal?.removeEventListener("abort", abort);
          this.#progress.remove();
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      timer = this.#clock.after(FRESH_TIMEOUT_MS, () =>
        waiter.settle(tooLarge("", revision, this.#revision)),
      );
      signal?.addEventListener("abort", abort);
      this.#waiters.add(waiter);
      this.#least = Math.min(this.#least, revision);
      this.#progress.add();
    });
  }
}

/**
 * The latest changes of a resource, as a sliding window (apiserver: pkg/storage/cacher/
 * watch_cache.go). Indexes count all events since the start and never go back:
 *
 *     startIndex                endIndex
 *         |  e  e  e  e  e  e  e  |          at(i) is in slot i % capacity
 *
 * The capacity doubles while the whole window is fresh, and halves when its oldest three quarters
 * are not.
 */
import { fromUtf8 } from "@quorate/proto";
import type { KubeObject } from "../meta/object.ts";
import type { WatchEvent } from "../storage/interface.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import type { Element } from "./object-set.ts";

export interface WindowLimits {
  /** Events; both powers of two times the same number. */
  readonly lowerCapacity: number;
  readonly upperCapacity: number;
  /** Events of this age at the most should be in the window. */
  readonly freshMs: number;
  /** Bytes of the objects of all events; the latest `lowerCapacity` events stay in any case. */
  readonly maxBytes: number;
  /** Events between two kept moments of all objects. */
  readonly snapshotInterval: number;
}

/** A minute between bookmarks and 15 s for the client to use one. */
export const EVENT_FRESH_MS = 75_000;

export const DEFAULT_WINDOW_LIMITS: WindowLimits = {
  lowerCapacity: 100,
  upperCapacity: 100 * 1024,
  freshMs: EVENT_FRESH_MS,
  maxBytes: 64 << 20,
  snapshotInterval: 1024,
};

export class EventWindow {
  readonly #limits: WindowLimits;
  #slots: (WindowEvent | undefined)[];
  #startIndex = 0;
  #endIndex = 0;
  #bytes = 0;
  /** All events after this revision are in the window. */
  #completeAfter = 0;

  constructor(limits: WindowLimits) {
    this.#limits = limits;
    this.#slots = new Array(limits.lowerCapacity).fill(undefined);
  }

  get capacity(): number {
    return this.#slots.length;
  }

  get startIndex(): number {
    return this.#startIndex;
  }

  get endIndex(): number {
    return this.#endIndex;
  }

  /** The least revision after which no event is missing. */
  get completeAfter(): number {
    return this.#completeAfter;
  }

  /** @param index from startIndex to below endIndex */
  at(index: number): WindowEvent {
    return this.#slots[index % this.#slots.length] as WindowEvent;
  }

  append(event: WindowEvent): void {
    this.#adaptCapacity(event.recordedMs);
    if (this.#isFull()) this.#dropOldest();
    this.#slots[this.#endIndex % this.#slots.length] = event;
    this.#endIndex++;
    this.#bytes += event.sizeBytes;
    const { lowerCapacity, maxBytes } = this.#limits;
    while (this.#bytes > maxBytes && this.#endIndex - this.#startIndex > lowerCapacity)
      this.#dropOldest();
  }

  /** Empties the window; indexes go on. @param revision after which events follow */
  clear(revision: number): void {
    while (this.#startIndex < this.#endIndex) this.#dropOldest();
    this.#completeAfter = revision;
  }

  /** The index of the first event that is newer than `revision`, by binary search. */
  firstAfter(revision: number): number {
    let low = this.#startIndex;
    let high = this.#endIndex;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.at(middle).resourceVersion > revision) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #isFull(): boolean {
    return this.#endIndex === this.#startIndex + this.#slots.length;
  }

  #dropOldest(): void {
    const slot = this.#startIndex % this.#slots.length;
    const event = this.#slots[slot] as WindowEvent;
    this.#completeAfter = event.resourceVersion;
    this.#bytes -= event.sizeBytes;
    this.#slots[slot] = undefined;
    this.#startIndex++;
  }

  #adaptCapacity(nowMs: number): void {
    const { capacity } = this;
    const { lowerCapacity, upperCapacity, freshMs } = this.#limits;
    if (!this.#isFull()) return;
    if (nowMs - this.at(this.#startIndex).recordedMs < freshMs) {
      if (capacity < upperCapacity) this.#resize(Math.min(capacity * 2, upperCapacity));
      return;
    }
    const lastQuarter = this.#endIndex - Math.floor(capacity / 4);
    if (nowMs - this.at(lastQuarter).recordedMs > freshMs && capacity > lowerCapacity)
      this.#resize(Math.max(Math.floor(capacity / 2), lowerCapacity));
  }

  #resize(capacity: number): void {
    while (this.#endIndex - this.#startIndex > capacity) this.#dropOldest();
    const slots: (WindowEvent | undefined)[] = new Array(capacity).fill(undefined);
    for (let i = this.#startIndex; i < this.#endIndex; i++) slots[i % capacity] = this.at(i);
    this.#slots = slots;
  }
}

/**
 * A change in the window, with the object before and after it. The forms in which watchers see it
 * are made once and shared by all of them.
 */
export class WindowEvent {
  readonly key: string;
  readonly resourceVersion: number;
  /** Undefined where the object was deleted. */
  readonly current: Element | undefined;
  /** Undefined where there was no object. */
  readonly previous: Element | undefined;
  /** Monotonic time. */
  readonly recordedMs: number;
  readonly sizeBytes: number;
  /** The object as it is when it leaves a selector, or is deleted. */
  #last: StoredObject | undefined;
  #added: WatchEvent | undefined;
  #modified: WatchEvent | undefined;
  #deleted: WatchEvent | undefined;

  /**
   * @param stored the object after the change; where it was deleted, its last state with the
   *   deletion's revision
   */
  constructor(
    stored: StoredObject,
    current: Element | undefined,
    previous: Element | undefined,
    recordedMs: number,
  ) {
    this.key = stored.key;
    this.resourceVersion = stored.resourceVersion;
    this.current = current;
    this.previous = previous;
    this.recordedMs = recordedMs;
    this.sizeBytes = stored.sizeBytes ?? 0;
    this.#last = current === undefined ? stored : undefined;
  }

  /**
   * How a watcher sees the change; undefined where it does not concern it.
   * @param matches whether the watcher selects an object
   */
  seenBy(matches: (element: Element) => boolean): WatchEvent | undefined {
    const { current, previous } = this;
    const after = current !== undefined && matches(current);
    const before = previous !== undefined && matches(previous);
    if (after) return before ? this.#asModified(current) : this.#asAdded(current);
    return before ? this.#asDeleted(previous) : undefined;
  }

  #asAdded({ stored }: Element): WatchEvent {
    this.#added ??= { type: "ADDED", object: stored };
    return this.#added;
  }

  #asModified({ stored }: Element): WatchEvent {
    this.#modified ??= { type: "MODIFIED", object: stored };
    return this.#modified;
  }

  #asDeleted({ stored }: Element): WatchEvent {
    this.#last ??= restamped(stored, this.resourceVersion);
    this.#deleted ??= { type: "DELETED", object: this.#last };
    return this.#deleted;
  }
}

/**
 * The object with another resourceVersion. Watchers see one that leaves their selector so: with its
 * last matching content, and the revision of the change that made it leave.
 */
function restamped(stored: StoredObject, resourceVersion: number): StoredObject {
  let json: Uint8Array | undefined;
  const object = (): KubeObject => {
    const present = stored.object();
    const metadata = { ...present.metadata, resourceVersion: String(resourceVersion) };
    return { ...present, metadata };
  };
  return {
    key: stored.key,
    resourceVersion,
    sizeBytes: stored.sizeBytes,
    object,
    json: () => {
      json ??= fromUtf8(JSON.stringify(object()));
      return json;
    },
  };
}

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
import type { WindowEvent } from "./window-event.ts";

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

import { setNewest } from "@quorate/host";

/** Values that are kept for a time, up to a number: the one used longest ago goes first. */

interface Entry<V> {
  readonly value: V;
  readonly untilMs: number;
}

export class ExpiringMap<V> {
  readonly #maxEntries: number;
  readonly #nowMs: () => number;
  /** In the order of their last use. */
  readonly #entries = new Map<string, Entry<V>>();

  /** @param nowMs monotonic */
  constructor(maxEntries: number, nowMs: () => number) {
    this.#maxEntries = maxEntries;
    this.#nowMs = nowMs;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    if (this.#nowMs() >= entry.untilMs) return undefined;
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** @param ttlMs 0: it is not kept */
  set(key: string, value: V, ttlMs: number): void {
    const entry = { value, untilMs: this.#nowMs() + ttlMs };
    if (ttlMs <= 0) this.#entries.delete(key);
    else setNewest(this.#entries, key, entry, this.#maxEntries);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}

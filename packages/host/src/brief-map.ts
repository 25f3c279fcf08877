/** A Map after which so many entries were added is replaced, if they are a few times its size. */
const RENEWAL_ADDITIONS = 16;
const RENEWAL_SIZES = 4;
/** A Map of more entries is not replaced: that would copy them all in one turn. */
const MAX_RENEWED_ENTRIES = 4096;

/**
 * A map whose entries come and go all the time, such as calls under way.
 *
 * A Map of V8 takes a new table when its table is full of deleted entries, and the old table keeps
 * a pointer to the new one. A table that a full collection has found alive counts as alive for the
 * collector of young objects until the next full collection, whatever became of it. So it keeps the
 * next table alive, with the entries that were in it, which keeps the one after it: most of what
 * passes through the Map is copied twice, and fills the old generation. Here a new Map, to which no
 * old table points, takes the place of the old one from time to time.
 */
export class BriefMap<K, V> {
  #entries = new Map<K, V>();
  /** Entries that were added since `#entries` was made. */
  #additions = 0;
  /** Iterations under way, which must see what is deleted meanwhile. */
  #iterations = 0;

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  set(key: K, value: V): void {
    if (++this.#additions >= RENEWAL_ADDITIONS) this.#renew();
    this.#entries.set(key, value);
  }

  /** Returns whether there was such an entry. */
  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** The entries in the order of their first addition; as of Map, they may change meanwhile. */
  [Symbol.iterator](): Iterator<readonly [K, V], void> & Iterable<readonly [K, V]> {
    // Nothing is the most frequent, and costs less without a generator.
    return this.#entries.size === 0 ? this.#entries.entries() : this.#iterate();
  }

  *#iterate(): Generator<readonly [K, V], void> {
    this.#iterations++;
    try {
      yield* this.#entries;
    } finally {
      this.#iterations--;
    }
  }

  /** The keys, as the entries. */
  *keys(): Generator<K, void> {
    for (const [key] of this) yield key;
  }

  /** The values, as the entries. */
  *values(): Generator<V, void> {
    for (const [, value] of this) yield value;
  }

  #renew(): void {
    const { size } = this.#entries;
    if (this.#additions < size * RENEWAL_SIZES || size > MAX_RENEWED_ENTRIES) return;
    if (this.#iterations > 0) return;
    this.#entries = new Map(this.#entries);
    this.#additions = 0;
  }
}

/** A set whose elements come and go all the time, as of BriefMap. */
export class BriefSet<T> {
  readonly #elements = new BriefMap<T, undefined>();

  get size(): number {
    return this.#elements.size;
  }

  has(element: T): boolean {
    return this.#elements.has(element);
  }

  add(element: T): void {
    this.#elements.set(element, undefined);
  }

  /** Returns whether it was an element. */
  delete(element: T): boolean {
    return this.#elements.delete(element);
  }

  clear(): void {
    this.#elements.clear();
  }

  /** The elements in the order in which they were added; as of Set, they may change meanwhile. */
  [Symbol.iterator](): Generator<T, void> {
    return this.#elements.keys();
  }
}

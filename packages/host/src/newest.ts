/** Bounded Maps and Sets: the oldest entry, by the order in which they were added, goes first. */

/** A Map, a Set, or a map of another kind. */
interface InOrder<K> {
  readonly size: number;
  keys(): Iterable<K>;
  delete(key: K): boolean;
}

/**
 * Removes the oldest entries until at most `max` are left.
 * @param dropped called with the key of each before it goes
 */
export function keepNewest<K>(
  entries: InOrder<K>,
  max: number,
  dropped?: (oldest: K) => void,
): void {
  if (entries.size <= max) return;
  for (const oldest of entries.keys()) {
    if (entries.size <= max) return;
    dropped?.(oldest);
    entries.delete(oldest);
  }
}

/** Sets an entry, which becomes the newest one, and keeps the newest `max`. */
export function setNewest<K, V>(entries: Map<K, V>, key: K, value: V, max: number): void {
  entries.delete(key);
  entries.set(key, value);
  keepNewest(entries, max);
}

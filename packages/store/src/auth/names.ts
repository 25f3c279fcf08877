/**
 * Names of users and roles in the order of their UTF-8 bytes, which is the order of etcd's buckets
 * and of Go's sort.Strings. JavaScript compares UTF-16 units, which differs above U+FFFF.
 */
import { fromUtf8, toLatin1 } from "@quorate/proto";

/** The sort key of a name: its UTF-8 bytes, one character a byte. */
export function nameKey(name: string): string {
  return toLatin1(fromUtf8(name));
}

/** Orders two names as etcd does: negative, 0 or positive. */
export function compareNames(a: string, b: string): number {
  if (a === b) return 0;
  return nameKey(a) < nameKey(b) ? -1 : 1;
}

/** A set of names that is kept in order, so that a list of it needs no sort. */
export class SortedNames {
  readonly #keys: string[] = [];
  readonly #names: string[] = [];

  get size(): number {
    return this.#names.length;
  }

  /** Adds a name that is not in the set. Names that come in order are added at the end. */
  add(name: string): void {
    const key = nameKey(name);
    const at = this.#placeOf(key);
    this.#keys.splice(at, 0, key);
    this.#names.splice(at, 0, name);
  }

  /** Removes a name of the set. */
  delete(name: string): void {
    const at = this.#placeOf(nameKey(name));
    this.#keys.splice(at, 1);
    this.#names.splice(at, 1);
  }

  /** The names in order, as a new array. */
  list(): string[] {
    return this.#names.slice();
  }

  #placeOf(key: string): number {
    const keys = this.#keys;
    let low = 0;
    let high = keys.length;
    const last = keys.at(-1);
    if (last !== undefined && last < key) return high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((keys[middle] ?? "") < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/**
 * An ordered map from keys (latin1 strings, so that string order is byte order) to values: a B+tree
 * of two levels.
 *
 *     firsts  ["",        "m",        ...]      the least key that may be in each leaf; the first
 *                                               is open below
 *     leaves  [[a, b, c], [m, n, q],  ...]      keys and, beside them, values; at most LEAF_KEYS of
 *                                               them
 *
 * Two arrays a leaf instead of a node a key keep a million keys small. The upper level is one
 * array: with a million keys it has some 6000 places, and what moves in it when a leaf splits is a
 * few dozen kilobytes, once in a hundred insertions.
 */

/** Most keys in a leaf. */
export const LEAF_KEYS = 256;

interface Leaf<V> {
  readonly keys: string[];
  readonly values: V[];
}

/** The first place in sorted `keys` whose key is not below `key`. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

export class KeyTree<V> {
  readonly #firsts: string[] = [""];
  readonly #leaves: Leaf<V>[] = [{ keys: [], values: [] }];
  #size = 0;

  /** Number of keys. */
  get size(): number {
    return this.#size;
  }

  /** Number of leaves, at least one. */
  get leafCount(): number {
    return this.#leaves.length;
  }

  /** The value of a key, or undefined. */
  get(key: string): V | undefined {
    const leaf = this.#leaves[this.#leafOf(key)];
    const at = lowerBound(leaf.keys, key);
    return leaf.keys[at] === key ? leaf.values[at] : undefined;
  }

  /** Puts a value; one that the key had before is replaced. */
  set(key: string, value: V): void {
    const index = this.#leafOf(key);
    const { keys, values } = this.#leaves[index];
    const at = lowerBound(keys, key);
    if (keys[at] === key) {
      values[at] = value;
      return;
    }
    keys.splice(at, 0, key);
    values.splice(at, 0, value);
    this.#size++;
    if (keys.length > LEAF_KEYS)
      this.#split(index, at === keys.length - 1 && index === this.#leaves.length - 1);
  }

  /** Takes a key out; false if it was not there. */
  delete(key: string): boolean {
    const index = this.#leafOf(key);
    const { keys, values } = this.#leaves[index];
    const at = lowerBound(keys, key);
    if (keys[at] !== key) return false;
    keys.splice(at, 1);
    values.splice(at, 1);
    this.#size--;
    if (keys.length < LEAF_KEYS / 4) this.#join(index);
    return true;
  }

  /**
   * Visits the keys from `from` (included) to `to` (excluded; undefined: to the end) in order,
   * until `visit` gives false. The tree must not be changed meanwhile.
   */
  scan(from: string, to: string | undefined, visit: (key: string, value: V) => boolean): void {
    this.scanPart(from, to, Number.POSITIVE_INFINITY, visit);
  }

  /**
   * Visits at most `most` keys (at least one) as `scan` does. Returns the key to continue from in a
   * later call, or undefined where the range is at its end or `visit` returned false. The tree may
   * change between two calls: each key that is there during all of them is visited once.
   */
  scanPart(
    from: string,
    to: string | undefined,
    most: number,
    visit: (key: string, value: V) => boolean,
  ): string | undefined {
    const leaves = this.#leaves;
    let left = most;
    let index = this.#leafOf(from);
    let at = lowerBound(leaves[index].keys, from);
    for (; index < leaves.length; index++, at = 0) {
      const { keys, values } = leaves[index];
      // The bound is looked for once a leaf, not once a key.
      const inside =
        to === undefined || (index + 1 < leaves.length && this.#firsts[index + 1] <= to);
      const last = inside ? keys.length : lowerBound(keys, to);
      const end = Math.min(last, at + left);
      left -= Math.max(0, end - at);
      for (; at < end; at++) {
        if (!visit(keys[at], values[at])) return undefined;
      }
      if (end < last) return keys[end];
      if (!inside) return undefined;
    }
    return undefined;
  }

  /** The leaf in which a key is, or belongs. */
  #leafOf(key: string): number {
    const firsts = this.#firsts;
    let low = 1;
    let high = firsts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (firsts[middle] <= key) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /**
   * Cuts a leaf in two: in the middle, or, where keys come in order at the end, so that the left
   * one stays full.
   */
  #split(index: number, atEnd: boolean): void {
    const { keys, values } = this.#leaves[index];
    const cut = atEnd ? keys.length - 1 : keys.length >>> 1;
    // Slices, not splices: the halves get arrays of their own size.
    const left = { keys: keys.slice(0, cut), values: values.slice(0, cut) };
    const right = { keys: keys.slice(cut), values: values.slice(cut) };
    this.#leaves[index] = left;
    this.#leaves.splice(index + 1, 0, right);
    this.#firsts.splice(index + 1, 0, right.keys[0]);
  }

  /** Joins a leaf with a neighbour where both together leave room for new keys. */
  #join(index: number): void {
    const left = index > 0 ? index - 1 : index;
    const right = left + 1;
    if (right >= this.#leaves.length) return;
    const a = this.#leaves[left];
    const b = this.#leaves[right];
    if (a.keys.length + b.keys.length > LEAF_KEYS / 2) return;
    this.#leaves[left] = { keys: a.keys.concat(b.keys), values: a.values.concat(b.values) };
    this.#leaves.splice(right, 1);
    this.#firsts.splice(right, 1);
  }
}

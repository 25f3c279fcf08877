/**
 * An ordered map from keys (latin1 strings, so that string order is byte order) to values: a B+tree
 * of two levels.
 *
 *     firsts  ["",        "m",        ...]      the least key that may be in each leaf; the first
 *                                               is open below
 *     leaves  [[a, b, c], [m, n, q],  ...]      keys and, beside them, values; at most LEAF_KEYS of
 *                                               them
 *
 * Two arrays per leaf instead of a node per key keep a million keys small. The upper level is one
 * array: with a million keys it has some 6000 entries, and a leaf split moves a few dozen kilobytes
 * of it, once in a hundred insertions.
 */

/** Maximum keys in a leaf. */
export const LEAF_KEYS = 256;

interface Leaf<V> {
  readonly keys: string[];
  readonly values: V[];
}

/** The first position in sorted `keys` whose key is not below `key`. */
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
  /** Where `getNext` found its last key. */
  #foundLeaf = 0;
  #foundAt = 0;
  /** The key that `get` missed last, and where it belongs: it is often added next. */
  #missed: string | undefined;
  #missedLeaf = 0;
  #missedAt = 0;

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
    const index = this.#leafOf(key);
    const leaf = this.#leaves[index];
    const at = lowerBound(leaf.keys, key);
    if (leaf.keys[at] === key) return leaf.values[at];
    this.#missed = key;
    this.#missedLeaf = index;
    this.#missedAt = at;
    return undefined;
  }

  /** Like `get`, and faster for a key that follows the one of the last call. */
  getNext(key: string): V | undefined {
    const leaf = this.#leaves[this.#foundLeaf];
    const next = this.#foundAt + 1;
    if (leaf !== undefined && next < leaf.keys.length && leaf.keys[next] === key) {
      this.#foundAt = next;
      return leaf.values[next];
    }
    const index = this.#leafOf(key);
    const { keys, values } = this.#leaves[index];
    const at = lowerBound(keys, key);
    if (keys[at] !== key) return undefined;
    this.#foundLeaf = index;
    this.#foundAt = at;
    return values[at];
  }

  /** Puts a value, replacing the key's previous one. */
  set(key: string, value: V): void {
    if (this.#append(key, value)) return;
    const wasMissed = key === this.#missed;
    const index = wasMissed ? this.#missedLeaf : this.#leafOf(key);
    const { keys, values } = this.#leaves[index];
    const at = wasMissed ? this.#missedAt : lowerBound(keys, key);
    if (keys[at] === key) {
      values[at] = value;
      return;
    }
    this.#missed = undefined;
    keys.splice(at, 0, key);
    values.splice(at, 0, value);
    this.#size++;
    if (keys.length > LEAF_KEYS)
      this.#split(index, at === keys.length - 1 && index === this.#leaves.length - 1);
  }

  /** Puts a key that is above all others, without a search; false if it is not. */
  #append(key: string, value: V): boolean {
    const { keys, values } = this.#leaves[this.#leaves.length - 1];
    const { length } = keys;
    if (length === 0 || length === LEAF_KEYS || keys[length - 1] >= key) return false;
    this.#missed = undefined;
    keys.push(key);
    values.push(value);
    this.#size++;
    return true;
  }

  /** Removes a key; false if it did not exist. */
  delete(key: string): boolean {
    const index = this.#leafOf(key);
    const { keys, values } = this.#leaves[index];
    const at = lowerBound(keys, key);
    if (keys[at] !== key) return false;
    this.#missed = undefined;
    keys.splice(at, 1);
    values.splice(at, 1);
    this.#size--;
    if (keys.length < LEAF_KEYS / 4) this.#join(index);
    return true;
  }

  /**
   * Visits the keys from `from` (included) to `to` (excluded; undefined: to the end) in order,
   * until `visit` returns false. The tree must not be changed meanwhile.
   */
  scan(from: string, to: string | undefined, visit: (key: string, value: V) => boolean): void {
    this.scanPart(from, to, Number.POSITIVE_INFINITY, visit);
  }

  /**
   * Visits at most `most` keys (at least one) as `scan` does. Returns the key to continue from, or
   * undefined at the end of the range or if `visit` returned false. The tree may change between two
   * calls: each key that exists during all of them is visited once.
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
      // The bound is searched once per leaf, not once per key.
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

  /** The leaf of a key, whether it exists or not. */
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
   * Splits a leaf: in the middle, or, when keys are appended in order, so that the left half stays
   * full.
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

  /** Joins a leaf with a neighbour if the result has space for new keys. */
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

/**
 * An ordered map from keys (latin1 strings, so that string order is byte order) to values: a B+tree
 * of three levels.
 *
 *     tops      ["", ...]                       the least key that may be in each branch
 *     branches  firsts  ["",  "m",  ...]        and in each leaf; the first is open below
 *               leaves  [[a, b], [m, n], ...]   keys and, beside them, values
 *
 * Two arrays per leaf instead of a node per key keep a million keys small: some 6000 leaves, which
 * are 16 branches. A leaf that splits moves the places of at most BRANCH_LEAVES others: in one
 * array of all leaves, with fifty million keys, it would move a megabyte.
 */

/** Maximum keys in a leaf. */
export const LEAF_KEYS = 256;
/** Maximum leaves in a branch. */
export const BRANCH_LEAVES = 512;

interface Leaf<V> {
  readonly keys: string[];
  readonly values: V[];
}

interface Branch<V> {
  readonly firsts: string[];
  readonly leaves: Leaf<V>[];
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

/** The last place whose first key is not above `key`; the first one is open below. */
function placeOf(firsts: readonly string[], key: string): number {
  let low = 1;
  let high = firsts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (firsts[middle] <= key) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export class KeyTree<V> {
  readonly #tops: string[] = [""];
  readonly #branches: Branch<V>[] = [{ firsts: [""], leaves: [{ keys: [], values: [] }] }];
  #size = 0;
  #leafCount = 1;
  /** Where `getNext` found its last key; undefined once leaves have been split or joined. */
  #foundLeaf: Leaf<V> | undefined;
  #foundAt = 0;
  /** The key that `get` missed last, and where it belongs: it is often added next. */
  #missed: string | undefined;
  #missedBranch = 0;
  #missedLeaf = 0;
  #missedAt = 0;
  readonly #leafKeys: number;
  readonly #branchLeaves: number;

  /** @param leafKeys at least 8, as branchLeaves: few make a small tree of many nodes, in tests */
  constructor(leafKeys: number = LEAF_KEYS, branchLeaves: number = BRANCH_LEAVES) {
    this.#leafKeys = leafKeys;
    this.#branchLeaves = branchLeaves;
  }

  /** Number of keys. */
  get size(): number {
    return this.#size;
  }

  /** Number of leaves, at least one. */
  get leafCount(): number {
    return this.#leafCount;
  }

  /** The value of a key, or undefined. */
  get(key: string): V | undefined {
    const top = placeOf(this.#tops, key);
    const { firsts, leaves } = this.#branches[top];
    const place = placeOf(firsts, key);
    const leaf = leaves[place];
    const at = lowerBound(leaf.keys, key);
    if (leaf.keys[at] === key) return leaf.values[at];
    this.#missed = key;
    this.#missedBranch = top;
    this.#missedLeaf = place;
    this.#missedAt = at;
    return undefined;
  }

  /** Like `get`, and faster for a key that follows the one of the last call. */
  getNext(key: string): V | undefined {
    const leaf = this.#foundLeaf;
    const next = this.#foundAt + 1;
    if (leaf !== undefined && next < leaf.keys.length && leaf.keys[next] === key) {
      this.#foundAt = next;
      return leaf.values[next];
    }
    const { firsts, leaves } = this.#branches[placeOf(this.#tops, key)];
    const found = leaves[placeOf(firsts, key)];
    const at = lowerBound(found.keys, key);
    if (found.keys[at] !== key) return undefined;
    this.#foundLeaf = found;
    this.#foundAt = at;
    return found.values[at];
  }

  /** Puts a value, replacing the key's previous one. */
  set(key: string, value: V): void {
    if (this.#append(key, value)) return;
    const wasMissed = key === this.#missed;
    const top = wasMissed ? this.#missedBranch : placeOf(this.#tops, key);
    const branch = this.#branches[top];
    const place = wasMissed ? this.#missedLeaf : placeOf(branch.firsts, key);
    const { keys, values } = branch.leaves[place];
    const at = wasMissed ? this.#missedAt : lowerBound(keys, key);
    if (keys[at] === key) {
      values[at] = value;
      return;
    }
    this.#missed = undefined;
    keys.splice(at, 0, key);
    values.splice(at, 0, value);
    this.#size++;
    if (keys.length <= this.#leafKeys) return;
    const isLast = top === this.#branches.length - 1 && place === branch.leaves.length - 1;
    this.#split(top, place, isLast && at === keys.length - 1);
  }

  /** Puts a key that is above all others, without a search; false if it is not. */
  #append(key: string, value: V): boolean {
    const { leaves } = this.#branches[this.#branches.length - 1];
    const { keys, values } = leaves[leaves.length - 1];
    const { length } = keys;
    if (length === 0 || length === this.#leafKeys || keys[length - 1] >= key) return false;
    this.#missed = undefined;
    keys.push(key);
    values.push(value);
    this.#size++;
    return true;
  }

  /** Removes a key; false if it did not exist. */
  delete(key: string): boolean {
    const top = placeOf(this.#tops, key);
    const { firsts, leaves } = this.#branches[top];
    const place = placeOf(firsts, key);
    const { keys, values } = leaves[place];
    const at = lowerBound(keys, key);
    if (keys[at] !== key) return false;
    this.#missed = undefined;
    keys.splice(at, 1);
    values.splice(at, 1);
    this.#size--;
    if (keys.length < this.#leafKeys / 4) this.#join(top, place);
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
    let left = most;
    let top = placeOf(this.#tops, from);
    let branch = this.#branches[top];
    let place = placeOf(branch.firsts, from);
    let at = lowerBound(branch.leaves[place].keys, from);
    for (;;) {
      const { keys, values } = branch.leaves[place];
      const isLastOfBranch = place + 1 === branch.leaves.length;
      const next = isLastOfBranch ? this.#tops[top + 1] : branch.firsts[place + 1];
      // The bound is searched once per leaf, not once per key.
      const inside = to === undefined || (next !== undefined && next <= to);
      const last = inside ? keys.length : lowerBound(keys, to);
      const end = Math.min(last, at + left);
      left -= Math.max(0, end - at);
      for (; at < end; at++) {
        if (!visit(keys[at], values[at])) return undefined;
      }
      if (end < last) return keys[end];
      if (!inside || next === undefined) return undefined;
      at = 0;
      if (!isLastOfBranch) place++;
      else {
        branch = this.#branches[++top];
        place = 0;
      }
    }
  }

  /**
   * Splits a leaf: in the middle, or, when keys are appended in order, so that the left half stays
   * full.
   */
  #split(top: number, place: number, atEnd: boolean): void {
    const { firsts, leaves } = this.#branches[top];
    const { keys, values } = leaves[place];
    const cut = atEnd ? keys.length - 1 : keys.length >>> 1;
    // Slices, not splices: the halves get arrays of their own size.
    const right = { keys: keys.slice(cut), values: values.slice(cut) };
    leaves[place] = { keys: keys.slice(0, cut), values: values.slice(0, cut) };
    leaves.splice(place + 1, 0, right);
    firsts.splice(place + 1, 0, right.keys[0]);
    this.#leafCount++;
    this.#foundLeaf = undefined;
    if (leaves.length > this.#branchLeaves) this.#splitBranch(top, atEnd);
  }

  #splitBranch(top: number, atEnd: boolean): void {
    const { firsts, leaves } = this.#branches[top];
    const cut = atEnd ? leaves.length - 1 : leaves.length >>> 1;
    const right = { firsts: firsts.slice(cut), leaves: leaves.slice(cut) };
    this.#branches[top] = { firsts: firsts.slice(0, cut), leaves: leaves.slice(0, cut) };
    this.#branches.splice(top + 1, 0, right);
    this.#tops.splice(top + 1, 0, right.firsts[0]);
  }

  /** Joins a leaf with a neighbour of its branch, and then a branch, if the result has space. */
  #join(top: number, place: number): void {
    const branch = this.#branches[top];
    if (!this.#joinLeaves(branch, place - 1)) this.#joinLeaves(branch, place);
    if (branch.leaves.length >= this.#branchLeaves / 4) return;
    if (!this.#joinBranches(top - 1)) this.#joinBranches(top);
  }

  /** The leaf at `left` and the next one; false if they stay as they are. */
  #joinLeaves({ firsts, leaves }: Branch<V>, left: number): boolean {
    const right = left + 1;
    if (left < 0 || right >= leaves.length) return false;
    const a = leaves[left];
    const b = leaves[right];
    if (a.keys.length + b.keys.length > this.#leafKeys / 2) return false;
    leaves[left] = { keys: a.keys.concat(b.keys), values: a.values.concat(b.values) };
    leaves.splice(right, 1);
    firsts.splice(right, 1);
    this.#leafCount--;
    this.#foundLeaf = undefined;
    return true;
  }

  /** The branch at `left` and the next one. */
  #joinBranches(left: number): boolean {
    const right = left + 1;
    if (left < 0 || right >= this.#branches.length) return false;
    const a = this.#branches[left];
    const b = this.#branches[right];
    if (a.leaves.length + b.leaves.length > this.#branchLeaves / 2) return false;
    this.#branches[left] = {
      firsts: a.firsts.concat(b.firsts),
      leaves: a.leaves.concat(b.leaves),
    };
    this.#branches.splice(right, 1);
    this.#tops.splice(right, 1);
    return true;
  }
}

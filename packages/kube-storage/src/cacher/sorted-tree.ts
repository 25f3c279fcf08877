/**
 * A sorted map from keys to values of which any moment can be kept (a persistent B+ tree). `freeze`
 * costs nothing; afterwards a change copies the nodes on its way, once each: a node belongs to the
 * edit that made it, and only that edit may change it in place.
 *
 *     tree.set(a); const before = tree.freeze(); tree.delete(a.key);   // before still has a
 *
 *     inner   firsts:   [  -  , "d" , "m" ]     "d": no key of child 1 is below, no key of
 *             children: [  o  ,  o  ,  o  ]     child 0 at or above it; firsts[0] is not used
 *                          |     |     |
 *     leaf    items:    [a b c][d e g][m n]
 */

export class SortedTree<V extends Keyed> {
  #edit: object = {};
  #root: TreeNode<V>;
  /** The value that the present change replaces or removes. */
  #previous: V | undefined;
  /** The right half of a node that the present change has split, and its least key. */
  #right: { readonly node: TreeNode<V>; readonly first: string } | undefined;

  /** @param view what the tree begins with */
  constructor(view?: SortedView<V>) {
    this.#root = view?.root ?? leafOf<V>(this.#edit, []);
  }

  get size(): number {
    return this.#root.size;
  }

  get(key: string): V | undefined {
    return valueAt(this.#root, key);
  }

  /** The present state, which later changes do not touch. */
  freeze(): SortedView<V> {
    this.#edit = {};
    return new SortedView(this.#root);
  }

  /** Adds a value, or replaces the one with its key and returns that. */
  set(value: V): V | undefined {
    this.#previous = undefined;
    this.#root = this.#insert(this.#root, value);
    const right = this.#takeRight();
    if (right !== undefined)
      this.#root = innerOf(this.#edit, ["", right.first], [this.#root, right.node]);
    return this.#previous;
  }

  /** Removes the value with this key and returns it. */
  delete(key: string): V | undefined {
    this.#previous = this.get(key);
    if (this.#previous === undefined) return undefined;
    this.#root = this.#remove(this.#root, key);
    while (this.#root.children.length === 1) this.#root = this.#root.children[0];
    return this.#previous;
  }

  #insert(node: TreeNode<V>, value: V): TreeNode<V> {
    const own = writable(node, this.#edit);
    if (own.items !== undefined) {
      const place = placeOf(own.items, value.key);
      const present = own.items[place];
      if (present !== undefined && present.key === value.key) {
        this.#previous = present;
        own.items[place] = value;
        return own;
      }
      own.items.splice(place, 0, value);
      own.size++;
      this.#splitLeaf(own, own.items, place);
      return own;
    }
    const place = childOf(own, value.key);
    own.children[place] = this.#insert(own.children[place], value);
    if (this.#previous === undefined) own.size++;
    const right = this.#takeRight();
    if (right !== undefined) {
      own.children.splice(place + 1, 0, right.node);
      own.firsts.splice(place + 1, 0, right.first);
      this.#splitInner(own, place + 1);
    }
    return own;
  }

  #takeRight(): { readonly node: TreeNode<V>; readonly first: string } | undefined {
    const right = this.#right;
    this.#right = undefined;
    return right;
  }

  /** Appended keys leave full nodes behind, so that a sorted load fills the tree. */
  #splitLeaf(node: TreeNode<V>, items: V[], place: number): void {
    if (items.length <= MAX_NODE_ENTRIES) return;
    const at = place === items.length - 1 ? place : items.length >> 1;
    const moved = items.splice(at);
    node.size = items.length;
    this.#right = { node: leafOf(this.#edit, moved), first: moved[0].key };
  }

  #splitInner(node: TreeNode<V>, place: number): void {
    const { children, firsts } = node;
    if (children.length <= MAX_NODE_ENTRIES) return;
    const at = place === children.length - 1 ? place : children.length >> 1;
    const movedFirsts = firsts.splice(at);
    const right = innerOf(this.#edit, movedFirsts, children.splice(at));
    node.size -= right.size;
    this.#right = { node: right, first: movedFirsts[0] };
  }

  #remove(node: TreeNode<V>, key: string): TreeNode<V> {
    const own = writable(node, this.#edit);
    own.size--;
    if (own.items !== undefined) {
      own.items.splice(placeOf(own.items, key), 1);
      return own;
    }
    const place = childOf(own, key);
    const child = this.#remove(own.children[place], key);
    own.children[place] = child;
    const { length } = own.children;
    if (child.size === 0 && length > 1) {
      own.children.splice(place, 1);
      own.firsts.splice(place, 1);
    } else if (entriesOf(child) < MIN_NODE_ENTRIES && length > 1) {
      this.#join(own, Math.max(0, place - 1));
    }
    return own;
  }

  /** Joins a child with its right neighbour if both fit into one node. */
  #join(node: TreeNode<V>, place: number): void {
    const { children, firsts } = node;
    const left = children[place];
    const right = children[place + 1];
    if (entriesOf(left) + entriesOf(right) > MAX_NODE_ENTRIES - MIN_NODE_ENTRIES) return;
    if (left.items !== undefined && right.items !== undefined) {
      children[place] = leafOf(this.#edit, [...left.items, ...right.items]);
    } else {
      // Keys of the right node's first child may be below its own firsts[0], never below ours.
      const rightFirsts = [firsts[place + 1], ...right.firsts.slice(1)];
      children[place] = innerOf(
        this.#edit,
        [...left.firsts, ...rightFirsts],
        [...left.children, ...right.children],
      );
    }
    children.splice(place + 1, 1);
    firsts.splice(place + 1, 1);
  }
}

function entriesOf<V extends Keyed>(node: TreeNode<V>): number {
  return node.items?.length ?? node.children.length;
}

/** What a tree holds: immutable values with their key. */
interface Keyed {
  readonly key: string;
}

/** More children or items than this split a node. */
const MAX_NODE_ENTRIES = 32;
/** A node with fewer is joined with a neighbour where both fit into one. */
const MIN_NODE_ENTRIES = 8;

interface TreeNode<V extends Keyed> {
  readonly edit: object;
  /** Items below this node. */
  size: number;
  /** A leaf's; undefined in an inner node. */
  readonly items: V[] | undefined;
  readonly firsts: string[];
  readonly children: TreeNode<V>[];
}

const NONE: never[] = [];

function leafOf<V extends Keyed>(edit: object, items: V[]): TreeNode<V> {
  return { edit, size: items.length, items, firsts: NONE, children: NONE };
}

function innerOf<V extends Keyed>(
  edit: object,
  firsts: string[],
  children: TreeNode<V>[],
): TreeNode<V> {
  let size = 0;
  for (const child of children) size += child.size;
  return { edit, size, items: undefined, firsts, children };
}

/** The node itself if it belongs to `edit`, else a copy that does. */
function writable<V extends Keyed>(node: TreeNode<V>, edit: object): TreeNode<V> {
  if (node.edit === edit) return node;
  if (node.items !== undefined) return leafOf(edit, node.items.slice());
  const { size, firsts, children } = node;
  return { edit, size, items: undefined, firsts: firsts.slice(), children: children.slice() };
}

/** The place of the first item whose key is not below `key`. */
function placeOf<V extends Keyed>(items: readonly V[], key: string): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The place of the child that holds `key`, if any does. */
function childOf<V extends Keyed>(node: TreeNode<V>, key: string): number {
  const { firsts } = node;
  let low = 0;
  let high = firsts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (firsts[middle] <= key) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Walks over the values in the order of their keys. */
export class Cursor<V extends Keyed> {
  /** The way from the root to the leaf, and the next place at each node. */
  readonly #nodes: TreeNode<V>[] = [];
  readonly #places: number[] = [];

  /** @param from the first key */
  constructor(root: TreeNode<V>, from: string) {
    let node = root;
    while (node.items === undefined) {
      const place = childOf(node, from);
      this.#nodes.push(node);
      this.#places.push(place + 1);
      node = node.children[place];
    }
    this.#nodes.push(node);
    this.#places.push(placeOf(node.items, from));
  }

  /** The next value; undefined after the last one. */
  next(): V | undefined {
    const nodes = this.#nodes;
    const places = this.#places;
    for (let depth = nodes.length - 1; depth >= 0; depth = nodes.length - 1) {
      const node = nodes[depth];
      const place = places[depth];
      if (node.items !== undefined && place < node.items.length) {
        places[depth]++;
        return node.items[place];
      }
      if (node.items === undefined && place < node.children.length) {
        places[depth]++;
        nodes.push(node.children[place]);
        places.push(0);
        continue;
      }
      nodes.pop();
      places.pop();
    }
    return undefined;
  }
}

/** The values that a tree had when it was frozen. */
export class SortedView<V extends Keyed> {
  readonly root: TreeNode<V>;

  constructor(root: TreeNode<V>) {
    this.root = root;
  }

  get size(): number {
    return this.root.size;
  }

  get(key: string): V | undefined {
    return valueAt(this.root, key);
  }

  /** A cursor at the first value whose key is not below `key`. */
  cursor(key: string): Cursor<V> {
    return new Cursor(this.root, key);
  }

  /** How many values have keys below `key`. */
  countBelow(key: string): number {
    let node = this.root;
    let count = 0;
    while (node.items === undefined) {
      const place = childOf(node, key);
      for (let i = 0; i < place; i++) count += node.children[i].size;
      node = node.children[place];
    }
    return count + placeOf(node.items, key);
  }
}

function valueAt<V extends Keyed>(root: TreeNode<V>, key: string): V | undefined {
  let node = root;
  while (node.items === undefined) node = node.children[childOf(node, key)];
  const found = node.items[placeOf(node.items, key)];
  return found !== undefined && found.key === key ? found : undefined;
}

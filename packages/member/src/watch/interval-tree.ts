/**
 * Which ranges hold a key: a balanced search tree (AVL) of ranges, each node knowing the furthest
 * end below it.
 *
 *                [d, k)  furthest: end          a key is looked for in a subtree only if it lies
 *                                               before the furthest end there,
 *               /      \                        and to the right of a node only if it lies at or
 *                                               behind the node's start
 *       [a, f) f        [m, end) end
 *
 * Ranges are [from, to) of latin1 strings; `to` undefined goes on to the end. Equal ranges share
 * one value.
 */

class Node<V> {
  readonly from: string;
  readonly to: string | undefined;
  readonly value: V;
  left: Node<V> | undefined = undefined;
  right: Node<V> | undefined = undefined;
  height = 1;
  /** The furthest end in this subtree; undefined: no end. */
  furthest: string | undefined;

  constructor(from: string, to: string | undefined, value: V) {
    this.from = from;
    this.to = to;
    this.value = value;
    this.furthest = to;
  }
}

function compareEnds(a: string | undefined, b: string | undefined): number {
  if (a === b) return 0;
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  return a < b ? -1 : 1;
}

function compare<V>(from: string, to: string | undefined, node: Node<V>): number {
  if (from !== node.from) return from < node.from ? -1 : 1;
  return compareEnds(to, node.to);
}

const heightOf = (node: Node<unknown> | undefined): number => node?.height ?? 0;

/** Brings a node's own figures in line with those of its children. */
function update<V>(node: Node<V>): void {
  const { left, right } = node;
  node.height = 1 + Math.max(heightOf(left), heightOf(right));
  let furthest = node.to;
  if (left !== undefined && compareEnds(left.furthest, furthest) > 0) furthest = left.furthest;
  if (right !== undefined && compareEnds(right.furthest, furthest) > 0) furthest = right.furthest;
  node.furthest = furthest;
}

/** Puts `top`, the root of a node's left subtree, in the node's place. */
function rotateRight<V>(node: Node<V>, top: Node<V>): Node<V> {
  node.left = top.right;
  top.right = node;
  update(node);
  update(top);
  return top;
}

/** Puts `top`, the root of a node's right subtree, in the node's place. */
function rotateLeft<V>(node: Node<V>, top: Node<V>): Node<V> {
  node.right = top.left;
  top.left = node;
  update(node);
  update(top);
  return top;
}

/**
 * Updates a node whose subtrees differ in height by two at the most, and returns the root of
 * the balanced subtree.
 */
function balance<V>(node: Node<V>): Node<V> {
  const { left, right } = node;
  const tilt = heightOf(left) - heightOf(right);
  if (left !== undefined && tilt > 1) {
    const inner = left.right;
    const isInner = inner !== undefined && heightOf(left.left) < inner.height;
    return rotateRight(node, isInner ? rotateLeft(left, inner) : left);
  }
  if (right !== undefined && tilt < -1) {
    const inner = right.left;
    const isInner = inner !== undefined && heightOf(right.right) < inner.height;
    return rotateLeft(node, isInner ? rotateRight(right, inner) : right);
  }
  update(node);
  return node;
}

export class IntervalTree<V> {
  #root: Node<V> | undefined;
  #size = 0;

  /** Number of different ranges. */
  get size(): number {
    return this.#size;
  }

  /** Levels of the tree: at most 1.45 times the logarithm of its size. */
  get height(): number {
    return heightOf(this.#root);
  }

  /** The value of a range, or undefined. */
  get(from: string, to: string | undefined): V | undefined {
    let node = this.#root;
    while (node !== undefined) {
      const order = compare(from, to, node);
      if (order === 0) return node.value;
      node = order < 0 ? node.left : node.right;
    }
    return undefined;
  }

  /** Adds a range that is not in the tree. */
  add(from: string, to: string | undefined, value: V): void {
    const insert = (node: Node<V> | undefined): Node<V> => {
      if (node === undefined) return new Node(from, to, value);
      if (compare(from, to, node) < 0) node.left = insert(node.left);
      else node.right = insert(node.right);
      return balance(node);
    };
    this.#root = insert(this.#root);
    this.#size++;
  }

  /** Takes a range out that is in the tree. */
  delete(from: string, to: string | undefined): void {
    const removeLeast = (node: Node<V>): Node<V> | undefined => {
      if (node.left === undefined) return node.right;
      node.left = removeLeast(node.left);
      return balance(node);
    };
    const remove = (node: Node<V> | undefined): Node<V> | undefined => {
      if (node === undefined) throw new RangeError("the range is not in the tree");
      const order = compare(from, to, node);
      if (order < 0) node.left = remove(node.left);
      else if (order > 0) node.right = remove(node.right);
      else {
        if (node.left === undefined) return node.right;
        if (node.right === undefined) return node.left;
        let next = node.right;
        while (next.left !== undefined) next = next.left;
        const right = removeLeast(node.right);
        next.left = node.left;
        next.right = right;
        return balance(next);
      }
      return balance(node);
    };
    this.#root = remove(this.#root);
    this.#size--;
  }

  /**
   * Visits the values of all ranges that hold a key, in the order of the ranges. The tree must not
   * be changed meanwhile.
   */
  stab(key: string, visit: (value: V) => void): void {
    const search = (node: Node<V> | undefined): void => {
      if (node === undefined || (node.furthest !== undefined && node.furthest <= key)) return;
      search(node.left);
      if (key < node.from) return;
      if (node.to === undefined || key < node.to) visit(node.value);
      search(node.right);
    };
    search(this.#root);
  }
}

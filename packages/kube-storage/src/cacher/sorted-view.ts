/** A sorted set of values at one moment. Later changes of the tree do not touch it. */
import { childOf, type Keyed, placeOf, type TreeNode } from "./tree-node.ts";

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

export function valueAt<V extends Keyed>(root: TreeNode<V>, key: string): V | undefined {
  let node = root;
  while (node.items === undefined) node = node.children[childOf(node, key)];
  const found = node.items[placeOf(node.items, key)];
  return found !== undefined && found.key === key ? found : undefined;
}

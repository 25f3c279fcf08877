/**
 * Nodes of a persistent B+ tree. A node belongs to the edit that made it; only that edit may change
 * it in place, others copy it first.
 *
 *     inner   firsts:   [  -  , "d" , "m" ]     "d": no key of child 1 is below, no key of
 *             children: [  o  ,  o  ,  o  ]     child 0 at or above it; firsts[0] is not used
 *                          |     |     |
 *     leaf    items:    [a b c][d e g][m n]
 */

/** What a tree holds: immutable values with their key. */
export interface Keyed {
  readonly key: string;
}

/** More children or items than this split a node. */
export const MAX_NODE_ENTRIES = 32;
/** A node with fewer is joined with a neighbour where both fit into one. */
export const MIN_NODE_ENTRIES = 8;

export interface TreeNode<V extends Keyed> {
  readonly edit: object;
  /** Items below this node. */
  size: number;
  /** A leaf's; undefined in an inner node. */
  readonly items: V[] | undefined;
  readonly firsts: string[];
  readonly children: TreeNode<V>[];
}

const NONE: never[] = [];

export function leafOf<V extends Keyed>(edit: object, items: V[]): TreeNode<V> {
  return { edit, size: items.length, items, firsts: NONE, children: NONE };
}

export function innerOf<V extends Keyed>(
  edit: object,
  firsts: string[],
  children: TreeNode<V>[],
): TreeNode<V> {
  let size = 0;
  for (const child of children) size += child.size;
  return { edit, size, items: undefined, firsts, children };
}

/** The node itself if it belongs to `edit`, else a copy that does. */
export function writable<V extends Keyed>(node: TreeNode<V>, edit: object): TreeNode<V> {
  if (node.edit === edit) return node;
  if (node.items !== undefined) return leafOf(edit, node.items.slice());
  const { size, firsts, children } = node;
  return { edit, size, items: undefined, firsts: firsts.slice(), children: children.slice() };
}

/** The place of the first item whose key is not below `key`. */
export function placeOf<V extends Keyed>(items: readonly V[], key: string): number {
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
export function childOf<V extends Keyed>(node: TreeNode<V>, key: string): number {
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

/**
 * A sorted map from keys to values of which any moment can be kept (a persistent B+ tree). `freeze`
 * costs nothing; afterwards a change copies the nodes on its way, once each.
 *
 *     tree.set(a); const before = tree.freeze(); tree.delete(a.key);   // before still has a
 */
import { SortedView, valueAt } from "./sorted-view.ts";
import {
  childOf,
  innerOf,
  type Keyed,
  leafOf,
  MAX_NODE_ENTRIES,
  MIN_NODE_ENTRIES,
  placeOf,
  type TreeNode,
  writable,
} from "./tree-node.ts";

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

/**
 * Sets of field paths (structured-merge-diff: fieldpath/set.go), as a trie:
 *
 *     .spec.replicas, .spec        root
 *                                   └ f:spec (member)
 *                                      └ f:replicas (member)
 *
 * A path in the set does not mean that its parents are in it, and the other way round. Sets are
 * immutable: operations share unchanged parts. No node is empty except the root, so a set is empty
 * exactly if its root has no children.
 */

import { type JsonObject, MAX_JSON_DEPTH } from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { type Path, type PathElement, parsePathElement, sortPathElements } from "./path-element.ts";

export interface FieldSet {
  /** Whether the path that leads here is in the set. False at the root. */
  readonly member: boolean;
  readonly children: ReadonlyMap<PathElement, FieldSet> | undefined;
}

/** The set without paths. */
export const EMPTY_SET: FieldSet = { member: false, children: undefined };

/** The set of only this path, seen from itself. */
export const LEAF: FieldSet = { member: true, children: undefined };

export function isEmptySet(set: FieldSet): boolean {
  return !set.member && set.children === undefined;
}

/** Makes a node; undefined if there is nothing in it. */
export function nodeOf(
  member: boolean,
  children: Map<PathElement, FieldSet>,
): FieldSet | undefined {
  if (children.size > 0) return { member, children };
  return member ? LEAF : undefined;
}

interface MutableSet {
  member: boolean;
  children: Map<PathElement, MutableSet> | undefined;
}

/** Collects paths. Nothing may be inserted after the set was taken. */
export class FieldSetBuilder {
  readonly #root: MutableSet = { member: false, children: undefined };

  /** The root path is ignored: an object as a whole has no owner. */
  insert(path: Path): void {
    if (path.length === 0) return;
    let at = this.#root;
    for (const element of path) {
      at.children ??= new Map();
      let child = at.children.get(element);
      if (child === undefined) {
        child = { member: false, children: undefined };
        at.children.set(element, child);
      }
      at = child;
    }
    at.member = true;
  }

  /** Inserts all paths of a set, in time in proportion to that set's size. */
  insertAll(set: FieldSet): void {
    mergeInto(this.#root, set);
  }

  build(): FieldSet {
    return this.#root.children === undefined ? EMPTY_SET : this.#root;
  }
}

function mergeInto(target: MutableSet, { member, children }: FieldSet): void {
  target.member ||= member;
  for (const [element, child] of children ?? []) {
    target.children ??= new Map();
    let at = target.children.get(element);
    if (at === undefined) {
      at = { member: false, children: undefined };
      target.children.set(element, at);
    }
    mergeInto(at, child);
  }
}

/** A set of these paths. */
export function fieldSetOf(...paths: readonly Path[]): FieldSet {
  const builder = new FieldSetBuilder();
  for (const path of paths) builder.insert(path);
  return builder.build();
}

export function hasPath(set: FieldSet, path: Path): boolean {
  if (path.length === 0) return false;
  let at: FieldSet | undefined = set;
  for (const element of path) {
    at = at.children?.get(element);
    if (at === undefined) return false;
  }
  return at.member;
}

export function unionOf(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b || isEmptySet(b)) return a;
  if (isEmptySet(a)) return b;
  const children = new Map(a.children);
  for (const [element, right] of b.children ?? []) {
    const left = children.get(element);
    children.set(element, left === undefined ? right : unionOf(left, right));
  }
  return nodeOf(a.member || b.member, children) ?? EMPTY_SET;
}

export function intersectionOf(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a;
  const children = new Map<PathElement, FieldSet>();
  for (const [element, left] of a.children ?? []) {
    const right = b.children?.get(element);
    if (right === undefined) continue;
    const common = intersectionOf(left, right);
    if (!isEmptySet(common)) children.set(element, common);
  }
  return nodeOf(a.member && b.member, children) ?? EMPTY_SET;
}

/** The paths of `a` that are not in `b`. Children of paths in `b` stay. */
export function differenceOf(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return EMPTY_SET;
  if (isEmptySet(b) || isEmptySet(a)) return a;
  const children = new Map<PathElement, FieldSet>();
  for (const [element, left] of a.children ?? []) {
    const right = b.children?.get(element);
    const rest = right === undefined ? left : differenceOf(left, right);
    if (!isEmptySet(rest)) children.set(element, rest);
  }
  return nodeOf(a.member && !b.member, children) ?? EMPTY_SET;
}

/** The paths of `a` that are neither in `b` nor below a path in `b`. */
export function recursiveDifferenceOf(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmptySet(b) || isEmptySet(a)) return a;
  const children = new Map<PathElement, FieldSet>();
  for (const [element, left] of a.children ?? []) {
    const right = b.children?.get(element);
    if (right?.member) continue;
    const rest = right === undefined ? left : recursiveDifferenceOf(left, right);
    if (!isEmptySet(rest)) children.set(element, rest);
  }
  return nodeOf(a.member && !b.member, children) ?? EMPTY_SET;
}

/** The children in the order of managedFields. */
export function sortedChildren(set: FieldSet): readonly (readonly [PathElement, FieldSet])[] {
  if (set.children === undefined) return [];
  if (set.children.size < 2) return [...set.children];
  return sortPathElements([...set.children.keys()]).map((key) => [
    key,
    defined(defined(set.children, "the children").get(key), "the child"),
  ]);
}

/**
 * All paths: at each level first the members, then what is below them, both in the order of
 * managedFields. Conflicts are listed so.
 */
export function pathsOf(set: FieldSet): Path[] {
  const paths: Path[] = [];
  const visit = (node: FieldSet, prefix: Path): void => {
    const children = sortedChildren(node);
    for (const [element, child] of children) if (child.member) paths.push([...prefix, element]);
    for (const [element, child] of children) visit(child, [...prefix, element]);
  };
  visit(set, []);
  return paths;
}

const NOTHING: JsonObject = {};

/**
 * Field sets as JSON (metav1.FieldsV1):
 *
 *     {"f:spec": {".": {}, "f:replicas": {}}}
 *
 * A field with an empty object is in the set; with "." the field and what is below it are.
 *
 * Reads a set. Unknown kinds of steps are skipped.
 * @throws Error for malformed ones
 */
export function fieldSetFromJson(json: JsonObject): FieldSet {
  const children = readChildren(json, 0);
  return children === undefined ? EMPTY_SET : { member: false, children };
}

function readNode(json: unknown, depth: number): FieldSet {
  if (json === null) return { member: true, children: undefined };
  if (typeof json !== "object" || Array.isArray(json)) throw new Error("expected an object");
  if (depth > MAX_JSON_DEPTH) throw new Error("exceeded max depth");
  const children = readChildren(json as JsonObject, depth);
  const member = children === undefined || Object.hasOwn(json as JsonObject, ".");
  return { member, children };
}

function readChildren(json: JsonObject, depth: number): Map<PathElement, FieldSet> | undefined {
  let children: Map<PathElement, FieldSet> | undefined;
  for (const key of Object.keys(json)) {
    if (key === ".") continue;
    const element = parsePathElement(key);
    if (element === undefined) continue;
    children ??= new Map();
    children.set(element, readNode(json[key], depth + 1));
  }
  return children;
}

/** Writes a set, in Go's order of fields. */
export function fieldSetToJson(set: FieldSet): JsonObject {
  const json: Record<string, JsonObject> = {};
  if (set.member) json["."] = NOTHING;
  for (const [element, child] of sortedChildren(set)) {
    json[element] = child.children === undefined ? NOTHING : fieldSetToJson(child);
  }
  return json;
}

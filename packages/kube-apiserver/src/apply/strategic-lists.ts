/**
 * Merged lists of strategic merge patches: lists of maps by a key field, lists of scalars as sets.
 * The order of the result is the patch's for its items, the present one for all others, and both
 * are interleaved as far as the present order says how.
 */

import { ApiError } from "@quorate/kube-storage";
import { goType, goValue } from "./go-text.ts";
import { unprocessable } from "./patch-limits.ts";
import { type Fields, isList, isMap } from "./typed-value.ts";

type List = readonly unknown[];
/** Merges two items with the same key. */
export type MergeItem = (original: Fields, patch: Fields) => Fields;

/**
 * Merges or, for `isDeletion`, removes the items of a patch.
 * @param mergeKey "" for lists of scalars
 */
export function mergeItems(
  original: List,
  patch: List,
  mergeKey: string,
  isDeletion: boolean,
  mergeItem: MergeItem,
): List {
  if (original.length === 0 && patch.length === 0) return original;
  if (elementType(original, patch) !== "map[string]interface {}") {
    if (isDeletion) {
      const gone = new Set(patch);
      return original.filter((item) => !gone.has(item));
    }
    const merged = [...new Set([...original, ...patch])];
    return interleave(merged, patch, original, mergeKey);
  }
  if (mergeKey === "") throw patchError("cannot merge lists without merge key for struct");
  const [kept, items] = runDirectives(original as Fields[], patch as Fields[], mergeKey);
  return interleave(mergeByKey(kept, items, mergeKey, mergeItem), items, kept, mergeKey);
}

/** The type that all items have. */
function elementType(...lists: readonly List[]): string {
  let type: string | undefined;
  for (const item of lists.flat()) {
    // Go's numbers in one list are of one type unless a client mixes 1 and 1.5.
    const own = typeof item === "number" ? "number" : goType(item);
    if (type === undefined && isList(item)) throw unprocessable();
    type ??= own;
    if (own !== type) throw patchError(`list element types are not identical: ${goValue(lists)}`);
  }
  if (type === undefined) throw patchError("no elements in any of the given slices");
  return type;
}

function noMergeKey(item: Fields, mergeKey: string): Error {
  return patchError(`map: ${goValue(item)} does not contain declared merge key: ${mergeKey}`);
}

/** Returns what directives leave of the present items, and the items without directives. */
function runDirectives(
  original: readonly Fields[],
  patch: readonly Fields[],
  mergeKey: string,
): [Fields[], Fields[]] {
  const items: Fields[] = [];
  const gone = new Set<unknown>();
  let replace = false;
  for (const item of patch) {
    if (!Object.hasOwn(item, DIRECTIVE)) items.push(item);
    else if (item[DIRECTIVE] === "delete") {
      if (!Object.hasOwn(item, mergeKey)) throw noMergeKey(item, mergeKey);
      gone.add(item[mergeKey]);
    } else if (item[DIRECTIVE] === "replace") replace = true;
    else if (item[DIRECTIVE] === "merge") {
      throw patchError("merging lists cannot yet be specified in the patch");
    } else throw badPatchType(item[DIRECTIVE], item);
  }
  if (replace) return [items, []];
  const isGone = (item: Fields): boolean =>
    Object.hasOwn(item, mergeKey) && gone.has(item[mergeKey]);
  return [gone.size === 0 ? [...original] : original.filter((item) => !isGone(item)), items];
}

function mergeByKey(
  original: readonly Fields[],
  patch: readonly Fields[],
  mergeKey: string,
  mergeItem: MergeItem,
): Fields[] {
  const merged = [...original];
  const places = new Map<unknown, number>();
  merged.forEach((item, at) => {
    if (Object.hasOwn(item, mergeKey) && !places.has(item[mergeKey])) {
      places.set(item[mergeKey], at);
    }
  });
  for (const item of patch) {
    if (!Object.hasOwn(item, mergeKey)) throw noMergeKey(item, mergeKey);
    const place = places.get(item[mergeKey]);
    const present = place === undefined ? undefined : merged[place];
    if (place === undefined || present === undefined)
      places.set(item[mergeKey], merged.push(item) - 1);
    else merged[place] = mergeItem(present, item);
  }
  return merged;
}

/**
 * Orders a merged list.
 * @param order demanded by the patch, for the items in it
 * @param original the present list, whose order all others keep
 */
export function interleave(list: List, order: List, original: List, mergeKey: string): List {
  const keyOf = (item: unknown): unknown => keyIn(item, mergeKey);
  const ordered = ranksOf(order, keyOf);
  const present = ranksOf(original, keyOf);
  const demanded = list.filter((item) => ordered.has(keyOf(item)));
  const others = list.filter((item) => !ordered.has(keyOf(item)));
  sortByRank(demanded, ordered, keyOf);
  sortByRank(others, present, keyOf);
  const result: unknown[] = [];
  let left = 0;
  for (const item of demanded) {
    const rank = present.get(keyOf(item));
    while (left < others.length && rank !== undefined) {
      const other = present.get(keyOf(others[left]));
      if (other === undefined || other >= rank) break;
      result.push(others[left++]);
    }
    result.push(item);
  }
  return [...result, ...others.slice(left)];
}

/** The value that identifies an item. */
function keyIn(item: unknown, mergeKey: string): unknown {
  if (mergeKey === "") return item;
  if (!isMap(item)) {
    throw patchError(`expected a map[string]interface {}, but received a ${goType(item)}`);
  }
  if (!Object.hasOwn(item, mergeKey)) throw noMergeKey(item, mergeKey);
  return item[mergeKey];
}

function ranksOf(list: List, keyOf: (item: unknown) => unknown): Map<unknown, number> {
  const ranks = new Map<unknown, number>();
  list.forEach((item, at) => {
    const key = keyOf(item);
    if (!ranks.has(key)) ranks.set(key, at);
  });
  return ranks;
}

function sortByRank(
  list: unknown[],
  ranks: ReadonlyMap<unknown, number>,
  keyOf: (item: unknown) => unknown,
): void {
  const rank = (item: unknown): number => ranks.get(keyOf(item)) ?? Number.MAX_SAFE_INTEGER;
  list.sort((a, b) => rank(a) - rank(b));
}

/** Throws where a list in a patch does not keep the order that the patch demands. */
export function checkOrder(patch: List, order: List, mergeKey: string): void {
  if (patch.length === 0 || order.length === 0) return;
  const items = patch.filter((item) => {
    if (mergeKey !== "" && !isMap(item)) keyIn(item, mergeKey);
    return mergeKey === "" || (item as Fields)[DIRECTIVE] !== "delete";
  });
  let at = 0;
  for (let place = 0; at < items.length && place < order.length; ) {
    const item = items[at];
    // Kubernetes skips other directives only while there is an order left to compare with.
    if (isMap(item) && Object.hasOwn(item, DIRECTIVE)) at++;
    else if (keyIn(item, mergeKey) === keyIn(order[place++], mergeKey)) at++;
  }
  if (at < items.length) {
    throw patchError(
      `The order in patch list:\n${goValue(patch)}\n doesn't match $setElementOrder list:\n` +
        `${goValue(order)}\n`,
    );
  }
}

/** Throws where a list cannot be ordered: its items differ in type, or are maps without a key. */
export function checkItems(original: List, patch: List, mergeKey: string): void {
  if (elementType(original, patch) !== "map[string]interface {}" || mergeKey !== "") return;
  throw noMergeKey([...original, ...patch][0] as Fields, mergeKey);
}

/**
 * The order that items keep that a patch does not order. Where the patch deletes items, Kubernetes
 * counts in their places the items that it adds.
 */
export function presentOrder(original: List, patch: List, mergeKey: string): List {
  if (mergeKey === "") return original;
  const [kept, items] = runDirectives(original as Fields[], patch as Fields[], mergeKey);
  if (items.length === 0 || kept.length === original.length) return original;
  const keys = new Set(kept.map((item) => item[mergeKey]));
  const added = items.filter((item) => !keys.has(item[mergeKey]));
  return [...kept, ...added].slice(0, original.length);
}

/** The field of a map that says what to do with it. */
export const DIRECTIVE = "$patch";

/** A patch that Kubernetes refuses with an error that is no status: HTTP 500 with its text. */
export function patchError(message: string): ApiError {
  return new ApiError(500, "", message);
}

export function badPatchType(directive: unknown, patch: Fields): ApiError {
  return patchError(`unknown patch type: ${goValue(directive)} in map: ${goValue(patch)}`);
}

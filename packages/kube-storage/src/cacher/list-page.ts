/** A page of a list out of a view of the cache, selected in slices of time. */

import type { Pauses } from "@quorate/host";
import { throwIfAborted } from "../meta/cancellation.ts";
import { attributesMatch, type SelectionPredicate, selectsAll } from "../meta/selectors.ts";
import { decodeContinue, encodeContinue } from "../storage/continue-token.ts";
import type { CallOptions, ListOptions, ListResult, Versioner } from "../storage/interface.ts";
import { endOfPrefix } from "../storage/keys.ts";
import { listPlan } from "../storage/list-options.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import type { Element } from "./object-set.ts";
import type { SortedView } from "./sorted-tree.ts";

/** Objects between two looks at the clock. */
const OBJECTS_PER_LOOK = 64;

export interface ListPage {
  /** Ends with "/". */
  readonly prefix: string;
  readonly startKey: string;
  readonly predicate: SelectionPredicate;
  /** Objects at the most; 0 for all. */
  readonly limit: number;
  readonly revision: number;
}

/** A page, and how many objects were looked at. */
export interface Listed {
  readonly result: ListResult;
  readonly fetched: number;
}

/** Where elements come from, sorted by key. */
interface Source {
  next(): Element | undefined;
}

/** Lists a view. */
export function listView(
  view: SortedView<Element>,
  page: ListPage,
  slices: Pauses,
  signal: CallOptions["signal"],
): Promise<Listed> {
  return list(view.cursor(page.startKey), page, slices, signal, () => {
    const end = view.countBelow(endOfPrefix(page.prefix));
    return end - view.countBelow(page.startKey) - page.limit;
  });
}

/** Lists elements that an index has found, sorted by key. */
export function listFound(
  found: readonly Element[],
  page: ListPage,
  slices: Pauses,
  signal: CallOptions["signal"],
): Promise<Listed> {
  const below = found.filter(({ key }) => key.startsWith(page.prefix));
  let next = 0;
  return list({ next: () => below[next++] }, page, slices, signal, () => 0);
}

/** @param remaining how many follow a full page; counted only where everything is selected */
async function list(
  source: Source,
  page: ListPage,
  slices: Pauses,
  signal: CallOptions["signal"],
  remaining: () => number,
): Promise<Listed> {
  const { prefix, predicate, limit, revision } = page;
  const isAll = selectsAll(predicate);
  const items: StoredObject[] = [];
  let fetched = 0;
  let lastKey = "";
  const inRange = (element: Element | undefined): element is Element =>
    element !== undefined && element.key.startsWith(prefix);
  let element = source.next();
  while (inRange(element) && (limit === 0 || items.length < limit)) {
    if (isAll || attributesMatch(predicate, element.attributes)) {
      items.push(element.stored);
      lastKey = element.key;
    }
    element = source.next();
    if (++fetched % OBJECTS_PER_LOOK === 0) {
      const pause = slices.next();
      if (pause !== undefined) {
        await pause;
        throwIfAborted(signal);
      }
    }
  }
  const hasMore = limit > 0 && inRange(element);
  return {
    fetched,
    result: {
      items,
      resourceVersion: revision,
      continueToken: hasMore ? encodeContinue(`${lastKey}\0`, prefix, revision) : "",
      remainingItemCount: hasMore && isAll ? remaining() : undefined,
    },
  };
}

export interface ListRoute {
  readonly read: "consistent" | "latest" | "exact";
  /** Exact: the revision; latest: the least one; consistent: 0. */
  readonly revision: number;
  /** The first key of the page. */
  readonly startKey: string;
}

/**
 * Which lists the cache serves, and from which revision (apiserver: pkg/storage/cacher/
 * delegator.go and delegator/interface.go):
 *
 *     resourceVersion    match          limit   continue    read
 *     "" or any          ""             any     at N        exact N
 *     "" or any          ""             any     latest      consistent
 *     ""                 ""             any     -           consistent
 *     "0"                "", NotOlder   any     -           latest, all pages in one
 *     N                  "", NotOlder   -       -           latest, not older than N
 *     N                  ""             > 0     -           exact N
 *     N                  Exact          any     -           exact N
 *
 * How the cache reads this list; undefined where the store below has to. Throws StorageError for
 * options that contradict each other.
 * @param key of the list; a prefix ends with "/"
 */
export function listRoute(
  key: string,
  versioner: Versioner,
  options: ListOptions,
): ListRoute | undefined {
  const plan = listPlan(key, versioner, options);
  const { resourceVersion, resourceVersionMatch, predicate, recursive } = options;
  const exact = (revision: number, startKey = key): ListRoute | undefined =>
    recursive ? { read: "exact", revision, startKey } : undefined;
  const revision = versioner.parse(resourceVersion);
  if (resourceVersionMatch === "Exact") return exact(revision);
  if (resourceVersionMatch === "NotOlderThan") return { read: "latest", revision, startKey: key };
  if (predicate.continueToken !== "") {
    if (!recursive) return undefined;
    const { startKey } = decodeContinue(predicate.continueToken, key);
    if (plan.revision > 0) return exact(plan.revision, startKey);
    return { read: "consistent", revision: 0, startKey };
  }
  if (predicate.limit > 0 && revision > 0) return exact(revision);
  if (resourceVersion === "") return { read: "consistent", revision: 0, startKey: key };
  return { read: "latest", revision, startKey: key };
}

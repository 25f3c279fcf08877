/** A page of a list out of a view of the cache, selected in slices of time. */

import type { Pauses } from "@quorate/host";
import { throwIfAborted } from "../storage/abandoned.ts";
import { encodeContinue } from "../storage/continue-token.ts";
import type { CallOptions, ListResult, SelectionPredicate } from "../storage/interface.ts";
import { attributesMatch, selectsAll } from "../storage/predicate.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import type { Element } from "./object-set.ts";
import type { SortedView } from "./sorted-view.ts";

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

/** The first key after all keys with this prefix, which ends with "/". */
function endOfPrefix(prefix: string): string {
  return `${prefix.slice(0, -1)}0`;
}

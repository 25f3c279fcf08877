/**
 * Lists in pages, pinned to the revision of the first one (apiserver: pkg/storage/etcd3/store.go,
 * GetList). A page of a list with selectors is filled by several requests, each for twice as many
 * keys as the one before.
 */

import type { Pauses } from "@quorate/host";
import { defined, fromUtf8, toUtf8 } from "@quorate/proto";
import { throwIfAborted } from "../meta/cancellation.ts";
import { type AttributesOf, objectMatches, selectsAll } from "../meta/selectors.ts";
import { ClusterError, type ClusterRange, type ClusterRangeOptions } from "./cluster-client.ts";
import { encodeContinue } from "./continue-token.ts";
import { StorageError, tooLarge, tooOld } from "./errors.ts";
import { type EtcdValues, endOfKey } from "./etcd-values.ts";
import type { ListOptions, ListResult, Versioner } from "./interface.ts";
import { endOfPrefix } from "./keys.ts";
import { type ListPlan, listPlan, minimumRevision } from "./list-options.ts";
import type { StoredObject } from "./stored-object.ts";

/** A request for a page of a list with selectors asks for so many keys at most. */
const MAX_GROWN_LIMIT = 10_000;

const EXPIRED = "The resourceVersion for the provided list is too old.";
const CONTINUE_EXPIRED =
  "The provided continue parameter is too old to display a consistent list result. " +
  "You can start a new list without the continue parameter, or use the continue token in this " +
  "response to retrieve the remainder of the results. Continuing with the provided token results " +
  "in an inconsistent list - objects that were created, modified, or deleted between the time the " +
  "first chunk was returned and now may show up in the list.";

export interface ListDeps {
  readonly values: EtcdValues;
  readonly versioner: Versioner;
  readonly attributesOf: AttributesOf;
  readonly slices: Pauses;
  range(start: Uint8Array, options: ClusterRangeOptions): Promise<ClusterRange>;
  currentRevision(): Promise<number>;
}

/** @param prefix as in the store; ends with "/" where `recursive` is set */
export async function listPages(
  prefix: string,
  options: ListOptions,
  deps: ListDeps,
): Promise<ListResult> {
  const { predicate, recursive } = options;
  const plan = listPlan(prefix, deps.versioner, options);
  const minimum = minimumRevision(deps.versioner, prefix, options.resourceVersion);
  let start = fromUtf8(plan.startKey);
  const end = recursive ? fromUtf8(endOfPrefix(prefix)) : endOfKey(start);
  const paging = recursive && predicate.limit > 0;
  const items: StoredObject[] = [];
  let limit = paging ? predicate.limit : 0;
  let { revision } = plan;
  for (;;) {
    const page = await pageOf(prefix, plan, { end, revision, limit }, start, options, deps);
    if (minimum > page.revision) throw tooLarge(prefix, minimum, page.revision);
    if (revision === 0) revision = page.revision;
    const taken = await takeMatching(page, items, paging, options, deps);
    const hasMore = taken < page.records.length || page.records.length < page.count;
    if (hasMore && page.records.length === 0)
      throw new StorageError(
        "Internal",
        prefix,
        "no results were found, but etcd indicated there were more values remaining",
      );
    if (!hasMore || !paging) return { items, resourceVersion: revision, ...LAST_PAGE };
    const lastKey = defined(page.records[taken - 1], "the last record").key;
    if (items.length >= predicate.limit)
      return {
        items,
        resourceVersion: revision,
        continueToken: encodeContinue(`${toUtf8(lastKey)}\0`, prefix, revision),
        // With selectors the count includes objects that do not match.
        remainingItemCount: selectsAll(predicate) ? page.count - predicate.limit : undefined,
      };
    start = endOfKey(lastKey);
    limit = Math.max(limit, Math.min(limit * 2, MAX_GROWN_LIMIT));
  }
}

const LAST_PAGE = { continueToken: "", remainingItemCount: undefined };

async function pageOf(
  prefix: string,
  plan: ListPlan,
  range: ClusterRangeOptions,
  start: Uint8Array,
  options: ListOptions,
  deps: ListDeps,
): Promise<ClusterRange> {
  try {
    return await deps.range(start, range);
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    if (error.code === "FutureRevision")
      throw tooLarge(prefix, range.revision, await deps.currentRevision());
    if (error.code !== "Compacted") throw error;
    if (options.predicate.continueToken === "") throw tooOld(prefix, EXPIRED);
    // -1: at the latest revision.
    throw tooOld(prefix, CONTINUE_EXPIRED, encodeContinue(plan.startKey, prefix, -1));
  }
}

/** Adds the matching objects of a page, up to the limit. Returns how many records it looked at. */
async function takeMatching(
  page: ClusterRange,
  items: StoredObject[],
  paging: boolean,
  options: ListOptions,
  deps: ListDeps,
): Promise<number> {
  const { predicate, signal } = options;
  let taken = 0;
  for (const record of page.records) {
    if (paging && items.length >= predicate.limit) break;
    taken++;
    const { stored } = await deps.values.read(record);
    if (objectMatches(predicate, deps.attributesOf, stored.object())) items.push(stored);
    const pause = deps.slices.next();
    if (pause !== undefined) {
      await pause;
      throwIfAborted(signal);
    }
  }
  return taken;
}

/**
 * Lists in pages, pinned to the revision of the first one (apiserver: pkg/storage/etcd3/store.go,
 * GetList). A page of a list with selectors is filled by several requests, each for twice as many
 * keys as the one before.
 */

import type { Pauses } from "@quorate/host";
import { defined, fromUtf8, toUtf8 } from "@quorate/proto";
import { throwIfAborted } from "../meta/cancellation.ts";
import { type AttributesOf, objectMatches, selectsAll } from "../meta/selectors.ts";
import {
  ClusterError,
  type ClusterPart,
  type ClusterRange,
  type ClusterRangeOptions,
} from "./cluster-client.ts";
import { encodeContinue } from "./continue-token.ts";
import { StorageError, tooLarge, tooOld } from "./errors.ts";
import { type EtcdValues, endOfKey } from "./etcd-values.ts";
import type { ListOptions, ListResult, Versioner } from "./interface.ts";
import { endOfPrefix } from "./keys.ts";
import { type ListPlan, listPlan, minimumRevision } from "./list-options.ts";
import type { StoredObject } from "./stored-object.ts";

/**
 * A request for a page of a list with selectors asks for so many keys at most; larger pages and
 * lists without pages are read in parts.
 */
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
  rangeParts(start: Uint8Array, options: ClusterRangeOptions): AsyncIterable<ClusterPart>;
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
  const page = new Page(paging, options, deps);
  const { items } = page;
  let limit = paging ? predicate.limit : 0;
  let { revision } = plan;
  for (;;) {
    page.begin();
    const range = { end, revision, limit };
    for await (const part of partsOf(prefix, plan, range, start, options, deps)) {
      const { revision: latest = minimum } = part.end ?? {};
      if (minimum > latest) throw tooLarge(prefix, minimum, latest);
      await page.take(part);
    }
    const { count, lastKey } = page;
    if (revision === 0) revision = page.revision;
    if (page.isIncomplete && lastKey === undefined)
      throw new StorageError(
        "Internal",
        prefix,
        "no results were found, but etcd indicated there were more values remaining",
      );
    if (!page.isIncomplete || !paging || lastKey === undefined)
      return { items, resourceVersion: revision, ...LAST_PAGE };
    if (items.length >= predicate.limit)
      return {
        items,
        resourceVersion: revision,
        continueToken: encodeContinue(`${toUtf8(lastKey)}\0`, prefix, revision),
        // With selectors the count includes objects that do not match.
        remainingItemCount: selectsAll(predicate) ? count - predicate.limit : undefined,
      };
    start = endOfKey(lastKey);
    limit = Math.max(limit, Math.min(limit * 2, MAX_GROWN_LIMIT));
  }
}

const LAST_PAGE = { continueToken: "", remainingItemCount: undefined };

/** One request: in one part, where it asks for few keys. Throws StorageError. */
async function* partsOf(
  prefix: string,
  plan: ListPlan,
  range: ClusterRangeOptions,
  start: Uint8Array,
  options: ListOptions,
  deps: ListDeps,
): AsyncGenerator<ClusterPart, undefined> {
  try {
    if (options.recursive && (range.limit === 0 || range.limit > MAX_GROWN_LIMIT)) {
      yield* deps.rangeParts(start, range);
    } else {
      const { records, ...end } = await deps.range(start, range);
      yield { records, end };
    }
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

/** The objects of a page, and how far its present request has come. */
class Page {
  readonly items: StoredObject[] = [];
  readonly #isPaging: boolean;
  readonly #options: ListOptions;
  readonly #deps: ListDeps;
  /** What the last part said. */
  #end: ClusterPart["end"];
  /** The last record that was looked at. */
  #lastKey: Uint8Array | undefined;
  #looked = 0;

  constructor(isPaging: boolean, options: ListOptions, deps: ListDeps) {
    this.#isPaging = isPaging;
    this.#options = options;
    this.#deps = deps;
  }

  get lastKey(): Uint8Array | undefined {
    return this.#lastKey;
  }

  get count(): number {
    return defined(this.#end, "the last part").count;
  }

  get revision(): number {
    return defined(this.#end, "the last part").revision;
  }

  /** Whether the request left keys of its range out, or some that it read do not fit. */
  get isIncomplete(): boolean {
    return this.#looked < this.count;
  }

  /** The next request begins. */
  begin(): void {
    [this.#end, this.#lastKey, this.#looked] = [undefined, undefined, 0];
  }

  /** Adds the matching objects of a part, up to the limit. */
  async take({ records, end }: ClusterPart): Promise<void> {
    const { predicate, signal, forEach } = this.#options;
    const { values, attributesOf, slices } = this.#deps;
    this.#end = end;
    let last: Uint8Array | undefined;
    for (const record of records) {
      if (this.#isPaging && this.items.length >= predicate.limit) break;
      this.#looked++;
      last = record.key;
      const { stored } = await values.read(record);
      if (objectMatches(predicate, attributesOf, stored.object())) {
        if (forEach === undefined) this.items.push(stored);
        else forEach(stored);
      }
      const pause = slices.next();
      if (pause !== undefined) {
        await pause;
        throwIfAborted(signal);
      }
    }
    // A copy: else the whole part stays in memory, and a client may reuse it.
    if (last !== undefined) this.#lastKey = last.slice();
  }
}

/**
 * Compares the cache with the store now and then: keys and revisions of all objects at one revision
 * (apiserver: consistencyChecker in pkg/storage/cacher/delegator.go). Kubernetes stops serving
 * snapshots where they differ; here the cache is filled again.
 */
import { type Clock, type Logger, Pauses, type Random, type Timer } from "@quorate/host";
import { SELECT_ALL } from "../meta/selectors.ts";
import { textOf } from "../storage/errors.ts";
import type { StorageInterface } from "../storage/interface.ts";
import type { Element } from "./object-set.ts";
import type { SortedView } from "./sorted-tree.ts";

/** Between two comparisons; up to half as much again is added by chance. */
export const CHECK_PERIOD_MS = 300_000;
/** Objects of one page of the store's list. */
const CHECK_PAGE_OBJECTS = 500;

export type CheckOutcome = "success" | "failure" | "error";

export interface ConsistencyCheckerDeps {
  readonly storage: StorageInterface;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** The cache's objects and their revision; undefined while it is filled. */
  present(): { readonly view: SortedView<Element>; readonly revision: number } | undefined;
  /** Counts a comparison; after "failure" the cache has to be filled again. */
  checked(outcome: CheckOutcome): void;
}

export class ConsistencyChecker {
  readonly #prefix: string;
  readonly #deps: ConsistencyCheckerDeps;
  #timer: Timer | undefined;
  #isStopped = false;

  /** @param prefix of all keys: "/configmaps/" */
  constructor(prefix: string, deps: ConsistencyCheckerDeps) {
    this.#prefix = prefix;
    this.#deps = deps;
    this.#plan();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  #plan(): void {
    if (this.#isStopped) return;
    const { clock, random } = this.#deps;
    this.#timer = clock.after(CHECK_PERIOD_MS * (1 + random.unit() / 2), () => {
      // The check catches all errors.
      void this.#check().then(() => this.#plan());
    });
  }

  async #check(): Promise<void> {
    const { logger, checked } = this.#deps;
    try {
      const different = await this.#firstDifference();
      if (this.#isStopped) return;
      if (different !== undefined)
        logger.error("watch cache differs from its store", { prefix: this.#prefix, ...different });
      checked(different === undefined ? "success" : "failure");
    } catch (error) {
      if (this.#isStopped) return;
      logger.warn("watch cache cannot be compared with its store", {
        prefix: this.#prefix,
        error: textOf(error),
      });
      checked("error");
    }
  }

  /** The first place where cache and store differ, for the log. */
  async #firstDifference(): Promise<Record<string, string | number> | undefined> {
    const { storage, clock, present } = this.#deps;
    const cached = present();
    if (cached === undefined) throw new Error("cache is not ready");
    const { view, revision } = cached;
    const cursor = view.cursor(this.#prefix);
    const slices = new Pauses(clock.turns);
    let continueToken = "";
    do {
      const page = await storage.getList(this.#prefix, {
        resourceVersion: continueToken === "" ? String(revision) : "",
        resourceVersionMatch: continueToken === "" ? "Exact" : "",
        recursive: true,
        predicate: { ...SELECT_ALL, limit: CHECK_PAGE_OBJECTS, continueToken },
      });
      if (page.resourceVersion !== revision)
        throw new Error(`the store listed revision ${page.resourceVersion}, not ${revision}`);
      for (const item of page.items) {
        const mine = cursor.next();
        if (mine?.key !== item.key || mine.stored.resourceVersion !== item.resourceVersion)
          return difference(revision, mine, item);
        await slices.next();
      }
      ({ continueToken } = page);
    } while (continueToken !== "" && !this.#isStopped);
    const rest = this.#isStopped ? undefined : cursor.next();
    return rest === undefined ? undefined : difference(revision, rest, undefined);
  }
}

function difference(
  revision: number,
  cached: Element | undefined,
  stored: { readonly key: string; readonly resourceVersion: number } | undefined,
): Record<string, string | number> {
  return {
    revision,
    "cached-key": cached?.key ?? "",
    "cached-revision": cached?.stored.resourceVersion ?? 0,
    "stored-key": stored?.key ?? "",
    "stored-revision": stored?.resourceVersion ?? 0,
  };
}

/**
 * A cache in front of the storage of one resource (apiserver: pkg/storage/cacher).
 *
 *     create, delete, count            ->  storage below (delete with the cached object)
 *     guaranteedUpdate                 ->  storage below, beginning with the cached object
 *     get at a revision, lists         ->  cache, when it is as fresh as the request demands
 *     get of the latest                ->  cache, when the store says that this is the present
 *                                          revision of the object; else storage below
 *     watch                            ->  cache
 *
 * Objects and events are shared by all readers. Memory: the present objects, a window of changes
 * (event-window.ts), and a few hundred bytes a watcher.
 */
import { type Clock, type Logger, Pauses, type Random } from "@quorate/host";
import { throwIfAborted, unlessAborted } from "../meta/cancellation.ts";
import type { GroupVersionKind, GroupVersionResource } from "../meta/kinds.ts";
import type { KubeObject } from "../meta/object.ts";
import { type AttributesOf, selectsAll } from "../meta/selectors.ts";
import { ApiError, internalError } from "../meta/status.ts";
import { bookmarkEvent } from "../storage/bookmark.ts";
import { keyNotFound, StorageError, textOf } from "../storage/errors.ts";
import type {
  CallOptions,
  DeleteOptions,
  GetOptions,
  ListOptions,
  ListResult,
  StorageInterface,
  StorageStats,
  UpdateFunction,
  UpdateOptions,
  Versioner,
  Watch,
} from "../storage/interface.ts";
import { interpretStorageError } from "../storage/interpret-error.ts";
import { checkedKey } from "../storage/keys.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import { BookmarkSchedule } from "./bookmark-schedule.ts";
import { CacheWatcher, EndedWatch, Watchers, watchStart } from "./cache-watcher.ts";
import { CacherMetrics } from "./cacher-metrics.ts";
import { ConsistencyChecker } from "./consistency-checker.ts";
import { DEFAULT_WINDOW_LIMITS, type WindowLimits } from "./event-window.ts";
import { type Listed, type ListRoute, listFound, listRoute, listView } from "./list-page.ts";
import { ProgressRequester } from "./progress-requester.ts";
import { PumpQueue } from "./pump-queue.ts";
import { Readiness } from "./readiness.ts";
import { HISTORY_REVISIONS, Reflector } from "./reflector.ts";
import { RevisionReader } from "./revision-reader.ts";
import { WatchCache } from "./watch-cache.ts";

export interface CacherOptions {
  /** Of the bookmarks. */
  readonly kind: GroupVersionKind;
  readonly resource: Pick<GroupVersionResource, "group" | "resource">;
  /** What all keys begin with: "/configmaps". */
  readonly resourcePrefix: string;
  readonly attributesOf: AttributesOf;
  /** Fields that selectors often demand exactly; lists and watches look them up. Up to a few. */
  readonly indexFields?: readonly string[];
  readonly window?: Partial<WindowLimits>;
  /** How the cache is filled; by lists in pages if absent. */
  readonly fill?: "list" | "watch-list";
  /** Revisions of history with which the cache is filled; HISTORY_REVISIONS if absent. */
  readonly historyRevisions?: number;
}

export interface CacherDeps {
  /** The storage below. It stays open when the Cacher closes. */
  readonly storage: StorageInterface;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export class Cacher implements StorageInterface {
  readonly versioner: Versioner;
  readonly metrics: CacherMetrics;
  readonly #options: CacherOptions;
  readonly #deps: CacherDeps;
  /** What all keys begin with: "/configmaps/". */
  readonly #prefix: string;
  readonly #cache: WatchCache;
  readonly #readiness: Readiness;
  readonly #reflector: Reflector;
  readonly #checker: ConsistencyChecker;
  readonly #catchUp: CatchUp;
  readonly #watchers: Watchers;
  /** Those that receive each report of progress, such as the watch of a Cacher above this one. */
  readonly #progressWatchers = new Set<CacheWatcher>();
  readonly #queue: PumpQueue;
  readonly #bookmarks: BookmarkSchedule;
  readonly #progress: ProgressRequester;
  readonly #revisions: RevisionReader;

  /** Begins to fill the cache at once. */
  constructor(options: CacherOptions, deps: CacherDeps) {
    const { storage, clock } = deps;
    const { attributesOf, indexFields = [], fill = "list" } = options;
    const { historyRevisions = HISTORY_REVISIONS } = options;
    const prefix = `${options.resourcePrefix}/`;
    this.#options = options;
    this.#deps = deps;
    this.#prefix = prefix;
    this.versioner = storage.versioner;
    this.metrics = new CacherMetrics(options.resource);
    this.#readiness = new Readiness(clock);
    this.#watchers = new Watchers(prefix, indexFields);
    this.#queue = new PumpQueue(clock);
    this.#bookmarks = new BookmarkSchedule(clock);
    this.#progress = new ProgressRequester(clock, () => storage.requestWatchProgress());
    this.#revisions = new RevisionReader(() => storage.currentResourceVersion());
    this.#cache = new WatchCache(
      { attributesOf, indexFields, window: { ...DEFAULT_WINDOW_LIMITS, ...options.window } },
      {
        clock,
        metrics: this.metrics,
        progress: this.#progress,
        dispatch: (event, index) => this.#watchers.dispatch(event, index),
      },
    );
    this.#catchUp = new CatchUp(this.#progress, () => this.#readiness.ready());
    this.#reflector = new Reflector({ prefix, attributesOf, fill, historyRevisions }, deps, {
      emptySet: () => this.#cache.emptySet(),
      replace: (objects, revision, readyAt) => {
        this.#endWatches();
        this.#cache.replace(objects, revision);
        this.metrics.initializations++;
        this.#catchUp.begin(readyAt, this.#cache.resourceVersion);
      },
      apply: (event) => {
        this.#cache.apply(event);
        this.#catchUp.reached(this.#cache.resourceVersion);
      },
      progress: (revision) => {
        this.#cache.progress(revision);
        this.#catchUp.reached(this.#cache.resourceVersion);
        for (const watcher of this.#progressWatchers) watcher.offerBookmark();
      },
      lost: (error, isUnreadable) => {
        this.#catchUp.cancel();
        this.#readiness.pending(error, isUnreadable);
        this.#endWatches();
      },
    });
    this.#checker = new ConsistencyChecker(prefix, {
      ...deps,
      present: () => {
        const revision = this.#cache.resourceVersion;
        return this.#readiness.isReady ? { view: this.#cache.view(), revision } : undefined;
      },
      checked: (outcome) => {
        this.metrics.consistencyChecks[outcome]++;
        if (outcome === "failure") this.#reflector.refill("the cache differed from its store");
      },
    });
    this.#reflector.start();
  }

  /** Objects in the cache. */
  get cachedCount(): number {
    return this.#cache.objectCount;
  }

  get watcherCount(): number {
    return this.#watchers.size;
  }

  create(
    key: string,
    object: KubeObject,
    ttlSeconds: number,
    options?: CallOptions,
  ): Promise<StoredObject> {
    return this.#deps.storage.create(key, object, ttlSeconds, options);
  }

  delete(key: string, options: DeleteOptions = {}): Promise<StoredObject> {
    return this.#deps.storage.delete(key, { ...options, cached: this.#cache.get(key)?.stored });
  }

  guaranteedUpdate(
    key: string,
    update: UpdateFunction,
    options: UpdateOptions,
  ): Promise<StoredObject> {
    const cached = this.#cache.get(key)?.stored;
    return this.#deps.storage.guaranteedUpdate(key, update, { ...options, cached });
  }

  async get(key: string, options: GetOptions = {}): Promise<StoredObject | undefined> {
    const { resourceVersion = "", signal, ignoreNotFound } = options;
    if (!this.#readiness.isReady) return this.#deps.storage.get(key, options);
    const whole = checkedKey(this.#prefix, key, false);
    if (resourceVersion === "")
      return latestObject(this.#cache, this.#deps.storage, key, whole, options);
    await this.#cache.waitUntilFresh(this.versioner.parse(resourceVersion), signal);
    const element = this.#cache.get(whole);
    if (element === undefined && ignoreNotFound !== true) throw keyNotFound(whole);
    return element?.stored;
  }

  async getList(key: string, options: ListOptions): Promise<ListResult> {
    const whole = checkedKey(this.#prefix, key, options.recursive);
    const route = listRoute(whole, this.versioner, options);
    const { predicate } = options;
    const isPage = predicate.limit > 0 && selectsAll(predicate);
    if (route === undefined || (!this.#readiness.isReady && isPage))
      return this.#deps.storage.getList(key, options);
    // The store says which object it is.
    if (this.#readiness.isUnreadable) return this.#deps.storage.getList(key, options);
    await this.#readiness.wait(options.signal);
    if (route.read === "consistent") return this.#consistentList(key, whole, route, options);
    const listed = await this.#listAt(whole, route.revision, route, options);
    return listed ?? this.#deps.storage.getList(key, options);
  }

  async watch(key: string, options: ListOptions): Promise<Watch> {
    const whole = checkedKey(this.#prefix, key, options.recursive);
    const { signal, predicate, timeoutMs } = options;
    const parsed = this.versioner.parse(options.resourceVersion);
    await this.#readiness.wait(signal);
    const { generation } = this.#readiness;
    let revision = parsed;
    try {
      if (options.resourceVersion === "" && options.sendInitialEvents !== undefined)
        revision = await this.#latestRevision(options);
      if (options.sendInitialEvents === true) await this.#cache.waitUntilFresh(revision, signal);
    } catch (error) {
      if (signal?.aborted === true) throw error;
      return new EndedWatch(this.#watchError(error));
    }
    throwIfAborted(signal);
    // The cache was filled again meanwhile: the client begins again, too.
    if (!this.#readiness.isReady || this.#readiness.generation !== generation)
      return new EndedWatch(undefined);
    const start = watchStart(this.#cache, this.#options.kind, whole, revision, options);
    if (start instanceof ApiError) return new EndedWatch(start);
    const { clock } = this.#deps;
    const abort = () => watcher.end(undefined);
    const watcher = new CacheWatcher(
      {
        key: whole,
        predicate,
        scope: this.#watchers.scopeOf(whole, predicate),
        deadlineMs: timeoutMs === undefined ? undefined : clock.monotonicMs() + timeoutMs,
      },
      start,
      {
        cache: this.#cache,
        queue: this.#queue,
        bookmarks: this.#bookmarks,
        metrics: this.metrics,
        bookmark: () => bookmarkEvent(this.#options.kind, this.#cache.resourceVersion, false),
        closed: () => {
          signal?.removeEventListener("abort", abort);
          this.#watchers.remove(watcher);
          this.#progressWatchers.delete(watcher);
        },
      },
    );
    signal?.addEventListener("abort", abort);
    this.#watchers.add(watcher);
    if (options.progressNotify === true) this.#progressWatchers.add(watcher);
    return watcher;
  }

  stats(options?: CallOptions): Promise<StorageStats> {
    return this.#deps.storage.stats(options);
  }

  requestWatchProgress(): Promise<void> {
    return this.#deps.storage.requestWatchProgress();
  }

  currentResourceVersion(options?: CallOptions): Promise<number> {
    return this.#deps.storage.currentResourceVersion(options);
  }

  compactRevision(): number {
    return this.#deps.storage.compactRevision?.() ?? 0;
  }

  readiness(): string | undefined {
    return this.#readiness.reason;
  }

  async close(): Promise<void> {
    this.#readiness.stop();
    this.#reflector.stop();
    this.#catchUp.cancel();
    this.#checker.stop();
    this.#endWatches();
  }

  #latestRevision({ signal }: CallOptions): Promise<number> {
    return unlessAborted(signal, this.#revisions.read());
  }

  /** A list that has every write acknowledged before it. */
  async #consistentList(
    key: string,
    whole: string,
    route: ListRoute,
    options: ListOptions,
  ): Promise<ListResult> {
    let fallback = false;
    try {
      const revision = await this.#latestRevision(options);
      let listed: ListResult | undefined;
      try {
        listed = await this.#listAt(whole, revision, route, options);
      } catch (error) {
        if (!isTooLarge(error)) throw error;
        fallback = true;
      }
      const result = listed ?? (await this.#deps.storage.getList(key, options));
      this.metrics.consistentRead(true, fallback);
      return result;
    } catch (error) {
      this.metrics.consistentRead(false, fallback);
      throw error;
    }
  }

  /** The list, when the cache has reached `revision`; undefined where the cache has no such. */
  async #listAt(
    whole: string,
    revision: number,
    route: ListRoute,
    options: ListOptions,
  ): Promise<ListResult | undefined> {
    const { signal, predicate, resourceVersion, recursive } = options;
    const cache = this.#cache;
    await cache.waitUntilFresh(revision, signal);
    const isExact = route.read === "exact";
    if (isExact && revision < this.compactRevision()) return undefined;
    const page = {
      prefix: whole,
      startKey: route.startKey,
      predicate,
      limit: resourceVersion === "0" ? 0 : predicate.limit,
      revision: isExact ? revision : cache.resourceVersion,
    };
    const slices = new Pauses(this.#deps.clock.turns);
    const list = (listed: Promise<Listed>, index: string) => this.#counted(listed, index);
    if (!recursive) {
      const element = cache.get(whole);
      const found = element === undefined ? [] : [element];
      return list(listFound(found, page, slices, signal), "");
    }
    const index = isExact || route.startKey !== whole ? undefined : this.#indexFor(options);
    if (index !== undefined) {
      const found = cache.byValue(index.field, index.value);
      return list(listFound(found, page, slices, signal), index.field);
    }
    const view = isExact ? cache.viewAt(revision) : cache.view();
    return view && list(listView(view, page, slices, signal), "");
  }

  async #counted(listed: Promise<Listed>, index: string): Promise<ListResult> {
    const { result, fetched } = await listed;
    this.metrics.listed(index, fetched, result.items.length);
    return result;
  }

  #indexFor({ predicate }: ListOptions): { field: string; value: string } | undefined {
    for (const field of this.#options.indexFields ?? []) {
      const value = predicate.field.exactValue(field);
      if (value !== undefined) return { field, value };
    }
    return undefined;
  }

  #watchError(error: unknown): ApiError {
    const interpreted = interpretStorageError(error, "watch", this.#options.resource, "");
    return interpreted instanceof ApiError ? interpreted : internalError(textOf(error));
  }

  #endWatches(): void {
    for (const watcher of this.#watchers.all()) watcher.end(undefined);
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof StorageError && error.code === "TooLargeResourceVersion";
}

/**
 * The time between the list that fills a cache and the moment from which it is served: a list of
 * some time ago is followed by the changes since.
 */
class CatchUp {
  readonly #progress: ProgressRequester;
  readonly #done: () => void;
  /** The revision to be reached; undefined while none is. */
  #target: number | undefined;

  /** @param progress is asked for, because the latest change may be another resource's */
  constructor(progress: ProgressRequester, done: () => void) {
    this.#progress = progress;
    this.#done = done;
  }

  /** The cache has been filled as of `revision`, and is served from `target` on. */
  begin(target: number, revision: number): void {
    this.cancel();
    this.#target = target;
    this.#progress.add();
    this.reached(revision);
  }

  reached(revision: number): void {
    if (this.#target === undefined || revision < this.#target) return;
    this.cancel();
    this.#done();
  }

  cancel(): void {
    if (this.#target === undefined) return;
    this.#target = undefined;
    this.#progress.remove();
  }
}

/**
 * The present object: the one of the cache where its revision is the present one, or where a change
 * has arrived since that was asked; its value is not read again then. Else the store's.
 * @param whole the key as the cache has it
 */
async function latestObject(
  cache: Pick<WatchCache, "get">,
  storage: StorageInterface,
  key: string,
  whole: string,
  options: GetOptions,
): Promise<StoredObject | undefined> {
  const before = cache.get(whole);
  if (before === undefined || storage.revisionOf === undefined) return storage.get(key, options);
  const revision = await storage.revisionOf(key, options);
  const element = cache.get(whole);
  if (revision > 0 && element !== undefined) {
    const { resourceVersion } = element.stored;
    const isNewer = element !== before && resourceVersion > revision;
    if (resourceVersion === revision || isNewer) return element.stored;
  }
  return storage.get(key, options);
}

/**
 * One watch of the cache, and the index of all (apiserver: pkg/storage/cacher/cache_watcher.go).
 *
 *     initial        the objects of a frozen view, then perhaps a bookmark that ends them
 *     catching up    events of the window, from nextIndex to its end
 *     live           each event when it happens
 *
 * There is no buffer of its own: a listener that takes no more leaves the watcher behind at an
 * index of the window, from which it goes on later. A watcher that is still behind when the window
 * drops that event is terminated, and its client begins again at its latest revision.
 */
import { defined } from "@quorate/proto";
import type { GroupVersionKind } from "../meta/kinds.ts";
import { attributesMatch, type SelectionPredicate, selectsAll } from "../meta/selectors.ts";
import { type ApiError, expired } from "../meta/status.ts";
import { bookmarkEvent } from "../storage/bookmark.ts";
import type { ListOptions, Watch, WatchEvent, WatchListener } from "../storage/interface.ts";
import type { Bookmarked, BookmarkSchedule } from "./bookmark-schedule.ts";
import type { CacherMetrics } from "./cacher-metrics.ts";
import type { WindowEvent } from "./event-window.ts";
import type { Element } from "./object-set.ts";
import type { Pumped, PumpQueue } from "./pump-queue.ts";
import type { Cursor } from "./sorted-tree.ts";
import type { WatchCache } from "./watch-cache.ts";

/** Objects or events that a watcher looks at before the next one's turn. */
const PUMP_STEPS = 64;

/** Where a watch begins. */
export interface WatchStart {
  /** At the first of the objects to begin with; undefined for none. */
  readonly initial: Cursor<Element> | undefined;
  /** Sent after the initial objects; undefined for none. */
  readonly initialEnd: WatchEvent | undefined;
  /** The first event of the window to look at. */
  readonly nextIndex: number;
  /** Only newer events are sent. */
  readonly afterRevision: number;
}

export interface CacheWatcherOptions {
  /** One object's key, or a prefix that ends with "/". */
  readonly key: string;
  readonly predicate: SelectionPredicate;
  readonly scope: WatchScope;
  readonly deadlineMs: number | undefined;
}

export interface CacheWatcherDeps {
  readonly cache: WatchCache;
  readonly queue: PumpQueue;
  readonly bookmarks: BookmarkSchedule;
  readonly metrics: CacherMetrics;
  /** A bookmark at the cache's revision. */
  bookmark(): WatchEvent;
  /** Called once, when the watch is over. */
  closed(watcher: CacheWatcher): void;
}

export class CacheWatcher implements Watch, ScopedWatcher, Pumped, Bookmarked {
  readonly scope: WatchScope;
  readonly deadlineMs: number | undefined;
  readonly #options: CacheWatcherOptions;
  readonly #deps: CacheWatcherDeps;
  readonly #matches: (element: Element) => boolean;
  readonly #afterRevision: number;
  #listener: WatchListener | undefined;
  #initial: Cursor<Element> | undefined;
  #initialEnd: WatchEvent | undefined;
  /** All events of the window below this index are sent, or do not concern this watcher. */
  #nextIndex: number;
  #isLive = false;
  #isPaused = false;
  #isBookmarkDue = false;
  #isOver = false;
  /** Why it ended before it was started. */
  #endedBefore: { readonly error: ApiError | undefined } | undefined;

  constructor(options: CacheWatcherOptions, start: WatchStart, deps: CacheWatcherDeps) {
    this.scope = options.scope;
    this.deadlineMs = options.deadlineMs;
    this.#options = options;
    this.#deps = deps;
    this.#initial = start.initial;
    this.#initialEnd = start.initialEnd;
    this.#nextIndex = start.nextIndex;
    this.#afterRevision = start.afterRevision;
    this.#matches = matcherOf(options.key, options.predicate);
    if (options.predicate.allowWatchBookmarks) deps.bookmarks.add(this);
  }

  start(listener: WatchListener): void {
    this.#listener = listener;
    if (this.#endedBefore !== undefined) listener.ended(this.#endedBefore.error);
    else if (!this.#isOver) this.#deps.queue.add(this);
  }

  resume(): void {
    if (!this.#isPaused || this.#isOver) return;
    this.#isPaused = false;
    this.#deps.queue.add(this);
  }

  stop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#deps.queue.remove(this);
    this.#deps.bookmarks.remove(this);
    this.#initial = undefined;
    this.#deps.closed(this);
  }

  /** Ends the watch from this side. */
  end(error: ApiError | undefined): void {
    if (this.#isOver) return;
    this.stop();
    if (this.#listener === undefined) this.#endedBefore = { error };
    else this.#listener.ended(error);
  }

  /** An event has happened that may concern this watcher. */
  offer(event: WindowEvent, index: number): void {
    if (this.#isOver || index < this.#nextIndex) return;
    if (!this.#isLive) {
      this.#terminateIfLost();
    } else if (this.#isPaused) {
      this.#isLive = false;
      this.#nextIndex = index;
    } else {
      this.#nextIndex = index + 1;
      this.#sendEvent(event);
    }
  }

  offerBookmark(): void {
    this.#isBookmarkDue = true;
    if (this.#isLive && !this.#isPaused) this.#sendDueBookmark();
  }

  pump(): boolean {
    for (let step = 0; step < PUMP_STEPS; step++) {
      if (this.#isPaused || this.#isOver) return false;
      if (this.#initial !== undefined) this.#sendInitial(this.#initial);
      else if (!this.#isLive && this.#terminateIfLost()) return false;
      else if (!this.#isLive && this.#nextIndex < this.#deps.cache.window.endIndex)
        this.#sendEvent(this.#deps.cache.window.at(this.#nextIndex++));
      else {
        this.#isLive = true;
        this.#sendDueBookmark();
        return false;
      }
    }
    return true;
  }

  #sendInitial(cursor: Cursor<Element>): void {
    const element = cursor.next();
    if (element !== undefined && element.key.startsWith(this.#options.key)) {
      if (!this.#matches(element)) return;
      this.#deps.metrics.initEvents++;
      this.#send({ type: "ADDED", object: element.stored });
      return;
    }
    this.#initial = undefined;
    const end = this.#initialEnd;
    this.#initialEnd = undefined;
    if (end !== undefined) this.#send(end);
  }

  #sendEvent(event: WindowEvent): void {
    if (event.resourceVersion <= this.#afterRevision) return;
    const seen = event.seenBy(this.#matches);
    if (seen !== undefined) this.#send(seen);
  }

  /** A bookmark says that all events up to its revision are sent, so it waits for those. */
  #sendDueBookmark(): void {
    if (!this.#isBookmarkDue || this.#isOver) return;
    this.#isBookmarkDue = false;
    if (this.#deps.cache.resourceVersion > this.#afterRevision) this.#send(this.#deps.bookmark());
  }

  #send(event: WatchEvent): void {
    this.#isPaused = !defined(this.#listener, "the listener").event(event);
  }

  /** Ends the watch if the window has dropped an event that it has not looked at. */
  #terminateIfLost(): boolean {
    if (this.#nextIndex >= this.#deps.cache.window.startIndex) return false;
    this.#deps.metrics.terminatedWatchers++;
    this.end(undefined);
    return true;
  }
}

/** Whether an object is below the key, and selected. */
function matcherOf(key: string, predicate: SelectionPredicate): (element: Element) => boolean {
  const isPrefix = key.endsWith("/");
  const isBelow = (other: string) =>
    other.startsWith(key) && (isPrefix || other.length === key.length || other[key.length] === "/");
  if (selectsAll(predicate)) return (element) => isBelow(element.key);
  return (element) => isBelow(element.key) && attributesMatch(predicate, element.attributes);
}

/** A watch that has ended before it began. */
export class EndedWatch implements Watch {
  readonly #error: ApiError | undefined;

  /** @param error sent to the client; undefined: it should begin again */
  constructor(error: ApiError | undefined) {
    this.#error = error;
  }

  start(listener: WatchListener): void {
    listener.ended(this.#error);
  }

  resume(): void {}

  stop(): void {}
}

/** A scope, in the words of Watchers. */
export type WatchScope = string;

/** A watcher, as far as events are concerned. */
export interface ScopedWatcher {
  readonly scope: WatchScope;
  /** An event has happened in its scope. */
  offer(event: WindowEvent, index: number): void;
  /** The watch is over. @param error undefined: the client begins again */
  end(error: ApiError | undefined): void;
}

/**
 * The watchers of a resource by what they are interested in, so that an event costs only those
 * (apiserver: indexedWatchers). A watcher has one scope:
 *
 *     all              every object
 *     value V          an indexed field has the value V, before or after the change
 *     namespace N      /configmaps/N/…
 *     object N/O       /configmaps/N/O
 *     name O           objects of this name in all namespaces
 */
export class Watchers {
  readonly #prefix: string;
  readonly #indexFields: readonly string[];
  readonly #scopes = new Map<WatchScope, Set<ScopedWatcher>>();
  #size = 0;

  /** @param prefix of all keys: "/configmaps/" */
  constructor(prefix: string, indexFields: readonly string[]) {
    this.#prefix = prefix;
    this.#indexFields = indexFields;
  }

  get size(): number {
    return this.#size;
  }

  /** @param key of the watch; a prefix ends with "/" */
  scopeOf(key: string, { field }: SelectionPredicate): WatchScope {
    for (const indexed of this.#indexFields) {
      const value = field.exactValue(indexed);
      if (value !== undefined) return valueScope(indexed, value);
    }
    const [first, second] = this.#segments(key);
    const name = field.exactValue("metadata.name");
    if (first === undefined) {
      const namespace = field.exactValue("metadata.namespace");
      if (namespace !== undefined && namespace !== "") return `in ${namespace}`;
      return name === undefined ? "all" : `name ${name}`;
    }
    if (second !== undefined) return `object ${first}/${second}`;
    // A key without a second segment is a namespace, or the name of an object without one.
    return key.endsWith("/") ? `in ${first}` : `object ${first}`;
  }

  add(watcher: ScopedWatcher): void {
    const watchers = this.#scopes.get(watcher.scope);
    if (watchers === undefined) this.#scopes.set(watcher.scope, new Set([watcher]));
    else watchers.add(watcher);
    this.#size++;
  }

  remove(watcher: ScopedWatcher): void {
    const watchers = this.#scopes.get(watcher.scope);
    if (watchers?.delete(watcher) !== true) return;
    this.#size--;
    if (watchers.size === 0) this.#scopes.delete(watcher.scope);
  }

  all(): ScopedWatcher[] {
    return [...this.#scopes.values()].flatMap((watchers) => [...watchers]);
  }

  /** Offers an event to those that may be interested in it. */
  dispatch(event: WindowEvent, index: number): void {
    this.#offer("all", event, index);
    const [first, second] = this.#segments(event.key);
    if (second === undefined) {
      this.#offer(`object ${first}`, event, index);
      this.#offer(`name ${first}`, event, index);
    } else {
      this.#offer(`in ${first}`, event, index);
      this.#offer(`object ${first}/${second}`, event, index);
      this.#offer(`name ${second}`, event, index);
    }
    for (const field of this.#indexFields) {
      const after = fieldOf(event.current, field);
      const before = fieldOf(event.previous, field);
      if (after !== undefined) this.#offer(valueScope(field, after), event, index);
      if (before !== undefined && before !== after)
        this.#offer(valueScope(field, before), event, index);
    }
  }

  #offer(scope: WatchScope, event: WindowEvent, index: number): void {
    const watchers = this.#scopes.get(scope);
    if (watchers === undefined) return;
    for (const watcher of watchers) watcher.offer(event, index);
  }

  /** The first two segments of a key after the resource. */
  #segments(key: string): [string | undefined, string | undefined] {
    const rest = key.slice(this.#prefix.length);
    if (rest === "") return [undefined, undefined];
    const slash = rest.indexOf("/");
    if (slash < 0) return [rest, undefined];
    const second = rest.slice(slash + 1);
    return [rest.slice(0, slash), second === "" ? undefined : second];
  }
}

function valueScope(field: string, value: string): WatchScope {
  return `value ${field}=${value}`;
}

function fieldOf(element: Element | undefined, field: string): string | undefined {
  return element === undefined ? undefined : (element.attributes.fields[field] ?? "");
}

/**
 * Where a watch of the cache begins (apiserver: getAllEventsSinceLocked in watch_cache.go): the
 * start, or the client's error for a revision before the window. Without a revision and without
 * sendInitialEvents a watch begins with the present objects, as it always has.
 * @param kind of the bookmark that ends the initial objects
 * @param revision after which events follow; 0 for any
 */
export function watchStart(
  cache: WatchCache,
  kind: GroupVersionKind,
  key: string,
  revision: number,
  { sendInitialEvents, predicate }: ListOptions,
): WatchStart | ApiError {
  const { window, resourceVersion } = cache;
  const isListWatch = sendInitialEvents === true;
  if (isListWatch || (revision === 0 && sendInitialEvents === undefined)) {
    const hasEnd = isListWatch && predicate.allowWatchBookmarks;
    return {
      initial: cache.view().cursor(key),
      initialEnd: hasEnd ? bookmarkEvent(kind, resourceVersion, true) : undefined,
      nextIndex: window.endIndex,
      afterRevision: resourceVersion,
    };
  }
  const after = revision === 0 ? resourceVersion : revision;
  if (after < window.completeAfter)
    return expired(`too old resource version: ${after} (${window.completeAfter})`);
  return {
    initial: undefined,
    initialEnd: undefined,
    nextIndex: window.firstAfter(after),
    afterRevision: after,
  };
}

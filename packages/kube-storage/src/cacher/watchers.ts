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

import type { SelectionPredicate } from "../meta/selectors.ts";
import type { ApiError } from "../meta/status.ts";
import type { WindowEvent } from "./event-window.ts";
import type { Element } from "./object-set.ts";

export type WatchScope = string;

/** A watcher, as far as events are concerned. */
export interface ScopedWatcher {
  readonly scope: WatchScope;
  /** An event has happened in its scope. */
  offer(event: WindowEvent, index: number): void;
  /** The watch is over. @param error undefined: the client begins again */
  end(error: ApiError | undefined): void;
}

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

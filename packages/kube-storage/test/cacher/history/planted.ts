/** Bugs of the Cacher's source that random histories have to find, as text before and after. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { changeSource, countPlaces, replacePlaces } from "@quorate/host/testing";
import type { Below } from "./below.ts";

interface PlantedBug {
  /** In packages/kube-storage/src/cacher, unless it begins with "../". */
  readonly file: string;
  readonly before: string;
  readonly after: string;
  /** The store in whose histories the bug shows; "fake" if absent. */
  readonly below?: Below;
}

/** By what the cache, or the store below it, does wrong. */
export const PLANTED_BUGS: Readonly<Record<string, PlantedBug>> = {
  "an event lost at the window's edge": {
    file: "watch-start.ts",
    before: "if (after < window.completeAfter)",
    after: "if (after < window.completeAfter - 2)",
  },
  "an exact list from before the window's edge": {
    file: "event-window.ts",
    before: "this.#completeAfter = event.resourceVersion;",
    after: "this.#completeAfter = event.resourceVersion - 1;",
  },
  "a slow watcher goes on behind the window's edge": {
    file: "cache-watcher.ts",
    before: "if (this.#nextIndex >= this.#deps.cache.window.startIndex) return false;",
    after: `const { startIndex } = this.#deps.cache.window;
    if (this.#nextIndex === startIndex - 1) this.#nextIndex = startIndex;
    if (this.#nextIndex >= startIndex) return false;`,
  },
  "an event twice after catch-up": {
    file: "cache-watcher.ts",
    before: "this.#nextIndex = index;",
    after: "this.#nextIndex = Math.max(this.#deps.cache.window.startIndex, index - 1);",
  },
  "an event of the initial objects again": {
    file: "watch-start.ts",
    before: "nextIndex: window.endIndex, afterRevision: resourceVersion,",
    after:
      "nextIndex: Math.max(window.startIndex, window.endIndex - 1), afterRevision: resourceVersion - 1,",
  },
  "a bookmark ahead of an event": {
    file: "cache-watcher.ts",
    before: "if (this.#isLive && !this.#isPaused) this.#sendDueBookmark();",
    after:
      "if (this.#listener !== undefined && this.#initial === undefined) this.#sendDueBookmark();",
  },
  "a bookmark before events on their way": {
    file: "cacher.ts",
    before:
      "bookmark: () => bookmarkEvent(this.#options.kind, this.#cache.resourceVersion, false),",
    after:
      "bookmark: () => bookmarkEvent(this.#options.kind, this.#cache.resourceVersion + 1, false),",
  },
  "a stale consistent read": {
    file: "cacher.ts",
    before: "const revision = await this.#latestRevision(options);",
    after: "const revision = this.#cache.resourceVersion;",
  },
  "a stale get": {
    file: "cacher.ts",
    before: "const revision = await storage.revisionOf(key, options);",
    after: "const revision = before.stored.resourceVersion;",
  },
  "a consistent read shares an earlier one's revision": {
    file: "revision-reader.ts",
    before: "if (this.#running === undefined) return this.#start();",
    after: "if (this.#next === undefined) return this.#running ?? this.#start();",
  },
  "a lost update in guaranteedUpdate": {
    file: "cacher.ts",
    before: "return this.#deps.storage.guaranteedUpdate(key, update, { ...options, cached });",
    after: `let first: ReturnType<UpdateFunction> | undefined;
    const once: UpdateFunction = (present, ttl) => (first ??= update(present, ttl));
    return this.#deps.storage.guaranteedUpdate(key, once, { ...options, cached });`,
  },
  "a lost update in the store's guaranteedUpdate": {
    file: "../storage/etcd-store.ts",
    before: "state = await this.#stateOf(storeKey, present, ignoreNotFound);",
    after:
      "state = { ...(await this.#stateOf(storeKey, present, ignoreNotFound)), object: state.object };",
    below: "etcd",
  },
  "an exact list with one event too many": {
    file: "watch-cache.ts",
    before: "for (let i = from.index - 1; i >= index; i--) {",
    after: "for (let i = from.index - 1; i > index; i--) {",
  },
  "a watcher does not see an object leave its selector": {
    file: "event-window.ts",
    before: "return before ? this.#asDeleted(previous) : undefined;",
    after: "return before && current === undefined ? this.#asDeleted(previous) : undefined;",
  },
  "a change of an indexed field is not offered by its old value": {
    file: "watchers.ts",
    before: "if (before !== undefined && before !== after)",
    after: "if (before !== undefined && after === undefined)",
  },
  "events are repeated after a lost connection": {
    file: "reflector.ts",
    before: "this.#revision = Math.max(this.#revision, object.resourceVersion);",
    after: "this.#revision = Math.max(this.#revision, object.resourceVersion - 1);",
  },
};

const pathOf = ({ file }: PlantedBug) =>
  fileURLToPath(new URL(`../../../src/cacher/${file}`, import.meta.url));

/** Those that each build hunts; `./dev sim cacher --planted` hunts all. */
export const HUNTED_BUGS: readonly string[] = [
  "an event lost at the window's edge",
  "an event twice after catch-up",
  "a bookmark ahead of an event",
  "a stale consistent read",
  "a lost update in guaranteedUpdate",
];

/** How often the text before is in the source; it has to be there once. */
export function placesOf(bug: PlantedBug): number {
  return countPlaces(readFileSync(pathOf(bug), "utf8"), bug.before);
}

/** This thread loads the Cacher with the bug from now on. */
export function plant(bug: PlantedBug): void {
  changeSource(pathOf(bug), (source) => replacePlaces(source, bug.before, bug.after));
}

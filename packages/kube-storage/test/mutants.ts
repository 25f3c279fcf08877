/** Bugs of Kubernetes' storage layer. */
import type { CatalogueBug } from "@quorate/sim";
import type { Below } from "./cacher/history/below.ts";

/** The contract of storages and the units' tests catch them. */
const STORAGE = {
  tests: [
    "packages/kube-storage/test/storage-memory.test.ts",
    "packages/kube-storage/test/storage-units.test.ts",
  ],
  sim: "no",
} as const;

export const BUGS: Readonly<Record<string, CatalogueBug>> = {
  "an update overwrites a change that came in between": {
    at: "kube-storage/src/storage/etcd-store.ts#EtcdStore.guaranteedUpdate",
    find: "$state = await this.#stateOf($storeKey, $present, $ignoreNotFound);",
    put: "return this.#values.stored(key, $present?.modRevision ?? revision, data);",
    ...STORAGE,
  },
  "an update that changes nothing does not write a stale value": {
    at: "kube-storage/src/storage/etcd-store.ts#EtcdStore.guaranteedUpdate",
    find: "if (!$state.stale) return this.#values.stored($key, $state.revision, $data);",
    put: "return this.#values.stored($key, $state.revision, $data);",
    ...STORAGE,
  },
  "a cached object that equals the new one is not compared with the store": {
    at: "kube-storage/src/storage/etcd-store.ts#EtcdStore.guaranteedUpdate",
    find: "!$state.isCurrent",
    put: "false",
    ...STORAGE,
  },
  "a refusal of a stale cached object is final": {
    at: "kube-storage/src/storage/etcd-store.ts#EtcdStore.#freshState",
    find: "if ($state.isCurrent) throw $error;",
    put: "throw $error;",
    ...STORAGE,
  },
  "an update drops the time to live": {
    at: "kube-storage/src/storage/etcd-store.ts#EtcdStore.#leaseFor",
    find: `$state.revision === 0 ? 0n : "keep"`,
    put: "0n",
    ...STORAGE,
  },
  "a deletion does not check what came in between": {
    at: "kube-storage/src/storage/etcd-store.ts#EtcdStore.delete",
    find: "await this.#stateOf($storeKey, $present, false)",
    put: "{ ...state, revision: $present?.modRevision ?? 0 }",
    ...STORAGE,
  },
  "the next page is read at the latest revision": {
    at: "kube-storage/src/storage/list-options.ts#listPlan",
    find: "Math.max($revision, 0)",
    put: "0",
    ...STORAGE,
  },
  "a page begins with the last object of the one before": {
    at: "kube-storage/src/storage/etcd-list.ts#listPages",
    find: `encodeContinue(\`\${toUtf8($lastKey)}\\0\`, $prefix, $revision)`,
    put: "encodeContinue(toUtf8($lastKey), $prefix, $revision)",
    ...STORAGE,
  },
  "a list without pages is in memory as a whole": {
    at: "kube-storage/src/storage/etcd-list.ts#partsOf",
    find: "$range.limit === 0",
    put: "false",
    ...STORAGE,
  },
  "a list returns data older than it was asked for": {
    at: "kube-storage/src/storage/etcd-list.ts#listPages",
    find: "if ($minimum > $latest) throw tooLarge($prefix, $minimum, $latest);",
    put: "",
    ...STORAGE,
  },
  "a watch repeats the last object of its list": {
    at: "kube-storage/src/storage/etcd-watch.ts#EtcdWatch.#sendChanges",
    find: "this.#revision + 1",
    put: "this.#revision",
    ...STORAGE,
  },
  "a change that leaves the selector is not seen": {
    at: "kube-storage/src/storage/etcd-watch.ts#EtcdWatch.#eventOf",
    find: "$oldMatches && !$isCreated ? $deleted : undefined",
    put: "undefined",
    ...STORAGE,
  },
  "a deleted object has the revision of its last change": {
    at: "kube-storage/src/storage/etcd-watch.ts#EtcdWatch.#eventOf",
    find: "(await $values.readEvent($previous, $record.modRevision)).stored",
    put: "(await $values.read($previous)).stored",
    ...STORAGE,
  },
  "a listener that pauses loses events": {
    at: "kube-storage/src/storage/etcd-watch.ts#EtcdWatch.#sendChanges",
    find: "if ($event !== undefined) await this.#send($event);",
    put: "if ($event !== undefined && this.#goOn === undefined) void this.#send($event);",
    ...STORAGE,
  },
  "a continue token leaves its prefix": {
    at: "kube-storage/src/storage/continue-token.ts#decodeContinue",
    find: "!isClean($path)",
    put: `$path === ""`,
    ...STORAGE,
  },
  "a lease is shared beyond its end": {
    at: "kube-storage/src/storage/lease-manager.ts#LeaseManager.leaseFor",
    find: "$latest !== undefined && $endMs < $latest.endMs && $soon",
    put: "$latest !== undefined && $soon",
    ...STORAGE,
  },
};

/** A bug that random histories of the Cacher find. */
export interface CacherBug extends CatalogueBug {
  /** The store in whose histories the bug shows; "fake" if absent. */
  readonly below?: Below;
  /** Each build hunts it; `./dev sim cacher --planted` hunts all. */
  readonly isHunted?: true;
}

/** By what the cache, or the store below it, does wrong. */
export const CACHER_BUGS: Readonly<Record<string, CacherBug>> = {
  "an event lost at the window's edge": {
    at: "kube-storage/src/cacher/cache-watcher.ts#watchStart",
    find: "$after < $window.completeAfter",
    put: "$after < $window.completeAfter- 2",
    isHunted: true,
  },
  "an exact list from before the window's edge": {
    at: "kube-storage/src/cacher/event-window.ts#EventWindow.#dropOldest",
    find: "$event.resourceVersion",
    put: "$event.resourceVersion- 1",
  },
  "a slow watcher goes on behind the window's edge": {
    at: "kube-storage/src/cacher/cache-watcher.ts#CacheWatcher.#terminateIfLost",
    find: "if (this.#nextIndex >= this.#deps.cache.window.startIndex) return false;",
    put: `
      const { startIndex } = this.#deps.cache.window;
      if (this.#nextIndex === startIndex - 1) this.#nextIndex = startIndex;
      if (this.#nextIndex >= startIndex) return false;`,
  },
  "an event twice after catch-up": {
    at: "kube-storage/src/cacher/cache-watcher.ts#CacheWatcher.offer",
    find: `
      this.#isLive = false;
      this.#nextIndex = $index;`,
    put: `
      this.#isLive = false;
      this.#nextIndex = Math.max(this.#deps.cache.window.startIndex, $index - 1);`,
    isHunted: true,
  },
  "an event of the initial objects again": {
    at: "kube-storage/src/cacher/cache-watcher.ts#watchStart",
    find: `
      {
        initial: $initial,
        initialEnd: $end,
        nextIndex: $window.endIndex,
        afterRevision: $revision,
      }`,
    put: `
      {
        initial: $initial,
        initialEnd: $end,
        nextIndex: Math.max($window.startIndex, $window.endIndex - 1),
        afterRevision: $revision - 1,
      }`,
  },
  "a bookmark ahead of an event": {
    at: "kube-storage/src/cacher/cache-watcher.ts#CacheWatcher.offerBookmark",
    find: "this.#isLive && !this.#isPaused",
    put: "this.#listener !== undefined && this.#initial === undefined",
    isHunted: true,
  },
  "a bookmark before events on their way": {
    at: "kube-storage/src/cacher/cacher.ts#Cacher.watch",
    find: "this.#cache.resourceVersion",
    put: "this.#cache.resourceVersion + 1",
  },
  "a stale consistent read": {
    at: "kube-storage/src/cacher/cacher.ts#Cacher.#consistentList",
    find: "await this.#latestRevision($options)",
    put: "this.#cache.resourceVersion",
    isHunted: true,
  },
  "a stale get": {
    at: "kube-storage/src/cacher/cacher.ts#latestObject",
    find: "await $storage.revisionOf($key, $options)",
    put: "before.stored.resourceVersion",
  },
  "a consistent read shares an earlier one's revision": {
    at: "kube-storage/src/cacher/revision-reader.ts#RevisionReader.read",
    find: "if (this.#running === undefined) return this.#start();",
    put: "if (this.#next === undefined) return this.#running ?? this.#start();",
  },
  "a lost update in guaranteedUpdate": {
    at: "kube-storage/src/cacher/cacher.ts#Cacher.guaranteedUpdate",
    find: "return this.#deps.storage.guaranteedUpdate($key, $update, $options);",
    put: `
      let first;
      const once = (present, ttl) => (first ??= $update(present, ttl));
      return this.#deps.storage.guaranteedUpdate($key, once, $options);`,
    isHunted: true,
  },
  "a lost update in the store's guaranteedUpdate": {
    at: "kube-storage/src/storage/etcd-store.ts#EtcdStore.guaranteedUpdate",
    find: "await this.#stateOf($storeKey, $present, $ignoreNotFound)",
    put: "{ ...(await this.#stateOf($storeKey, $present, $ignoreNotFound)), object: state.object }",
    below: "etcd",
  },
  "an exact list with one event too many": {
    at: "kube-storage/src/cacher/watch-cache.ts#Snapshots.viewAt",
    find: "for (let $i = $end; $i >= $index; $i--) $undo;",
    put: "for (let $i = $end; $i > $index; $i--) $undo;",
  },
  "a watcher does not see an object leave its selector": {
    at: "kube-storage/src/cacher/event-window.ts#WindowEvent.seenBy",
    find: "$before ? this.#asDeleted($previous) : undefined",
    put: "$before && current === undefined ? this.#asDeleted($previous) : undefined",
  },
  "a change of an indexed field is not offered by its old value": {
    at: "kube-storage/src/cacher/cache-watcher.ts#Watchers.dispatch",
    find: "$before !== undefined && $before !== $after",
    put: "$before !== undefined && $after === undefined",
  },
  "events are repeated after a lost connection": {
    at: "kube-storage/src/cacher/reflector.ts#Reflector.#take",
    find: "Math.max(this.#revision, $object.resourceVersion)",
    put: "Math.max(this.#revision, $object.resourceVersion- 1)",
  },
};

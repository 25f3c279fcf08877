/** Bugs of Kubernetes' storage, which the contract of storages and the units' tests catch. */
import type { Mutant } from "../../../test/mutants/mutant.ts";

const tests = [
  "packages/kube-storage/test/storage-memory.test.ts",
  "packages/kube-storage/test/storage-units.test.ts",
];

const bugs: readonly (readonly [name: string, file: string, before: string, after: string])[] = [
  [
    "an update overwrites a change that came in between",
    "etcd-store.ts",
    "state = await this.#stateOf(storeKey, present, ignoreNotFound);",
    "return this.#values.stored(key, present?.modRevision ?? revision, data);",
  ],
  [
    "an update that changes nothing does not write a stale value",
    "etcd-store.ts",
    "if (!state.stale) return this.#values.stored(key, state.revision, data);",
    "return this.#values.stored(key, state.revision, data);",
  ],
  [
    "a cached object that equals the new one is not compared with the store",
    "etcd-store.ts",
    "if (!state.isCurrent) {",
    "if (false as boolean) {",
  ],
  [
    "a refusal of a stale cached object is final",
    "etcd-store.ts",
    "if (state.isCurrent) throw error;",
    "throw error;",
  ],
  [
    "an update drops the time to live",
    "etcd-store.ts",
    'if (ttlSeconds === undefined) return state.revision === 0 ? 0n : "keep";',
    "if (ttlSeconds === undefined) return 0n;",
  ],
  [
    "a deletion does not check what came in between",
    "etcd-store.ts",
    "state = await this.#stateOf(storeKey, present, false);",
    "state = { ...state, revision: present?.modRevision ?? 0 };",
  ],
  [
    "the next page is read at the latest revision",
    "list-options.ts",
    "return { startKey, revision: Math.max(revision, 0) };",
    "return { startKey, revision: 0 };",
  ],
  [
    "a page begins with the last object of the one before",
    "etcd-list.ts",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source's text
    "continueToken: encodeContinue(`${toUtf8(lastKey)}\\0`, prefix, revision),",
    "continueToken: encodeContinue(toUtf8(lastKey), prefix, revision),",
  ],
  [
    "a list returns data older than it was asked for",
    "etcd-list.ts",
    "if (minimum > page.revision) throw tooLarge(prefix, minimum, page.revision);",
    "",
  ],
  [
    "a watch repeats the last object of its list",
    "etcd-watch.ts",
    "revision: this.#revision + 1,",
    "revision: this.#revision,",
  ],
  [
    "a change that leaves the selector is not seen",
    "etcd-watch.ts",
    'return oldMatches && !isCreated ? { type: "DELETED", object: old } : undefined;',
    "return undefined;",
  ],
  [
    "a deleted object has the revision of its last change",
    "etcd-watch.ts",
    "(await values.read(previous, record.modRevision)).stored",
    "(await values.read(previous)).stored",
  ],
  [
    "a listener that pauses loses events",
    "etcd-watch.ts",
    "if (event !== undefined) await this.#send(event);",
    "if (event !== undefined && this.#goOn === undefined) void this.#send(event);",
  ],
  [
    "a continue token leaves its prefix",
    "continue-token.ts",
    "if (!isClean(path)) refuse(",
    "if (path === '') refuse(",
  ],
  ["a lease is shared beyond its end", "lease-manager.ts", "endMs < latest.endMs &&", ""],
];

export const MUTANTS: readonly Mutant[] = bugs.map(([name, file, before, after]) => ({
  name,
  file: `kube-storage/src/storage/${file}`,
  before,
  after,
  tests,
  sim: "no",
}));

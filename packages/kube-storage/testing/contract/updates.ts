/** guaranteedUpdate, encryption and statistics (apiserver: pkg/storage/testing/store_tests.go). */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import type { KubeObject } from "../../src/meta/object.ts";
import { keyOfPod, listOptions, pod } from "../example-pods.ts";
import {
  type Case,
  change,
  create,
  rejectsWith,
  type StorageContractOptions,
} from "./under-test.ts";

const READY_LIMIT_MS = 30_000;
const FOO: KubeObject = pod("ns", "foo", { uid: "A" });
const KEY: string = keyOfPod(FOO);

export function updateCases(add: Case, options: StorageContractOptions): void {
  plainCases(add);
  conflictCases(add);
  cachedCases(add);
  transformerCases(add, options);
  statCases(add);
}

function plainCases(add: Case): void {
  add("guaranteedUpdate of nothing rejects, or creates", async (it) => {
    const update = (present: KubeObject | undefined) => {
      assert.equal(present, undefined);
      return { object: FOO };
    };
    await rejectsWith(
      it.storage.guaranteedUpdate(KEY, update, { ignoreNotFound: false }),
      "KeyNotFound",
    );
    const stored = await it.storage.guaranteedUpdate(KEY, update, { ignoreNotFound: true });
    assert.deepEqual((await it.storage.get(KEY))!.object(), stored.object());
  });

  add("guaranteedUpdate writes what the function returns", async (it) => {
    const before = await create(it, FOO);
    const after = await change(it, KEY, { annotations: { version: "2" } });
    assert.ok(after.resourceVersion > before.resourceVersion);
    assert.deepEqual(after.object().metadata.annotations, { version: "2" });
  });

  add("an update that changes nothing writes nothing", async (it) => {
    const before = await create(it, FOO);
    for (const metadata of [{}, { selfLink: "somewhere" }, { resourceVersion: "3" }]) {
      const after = await change(it, KEY, metadata);
      assert.equal(after.resourceVersion, before.resourceVersion);
      assert.deepEqual(after.object(), before.object());
    }
  });

  add("the order of fields is no change", async (it) => {
    const before = await create(it, FOO);
    const after = await it.storage.guaranteedUpdate(
      KEY,
      ({ metadata, ...rest } = FOO) => ({
        object: {
          metadata: Object.fromEntries(Object.entries(metadata).reverse()),
          ...Object.fromEntries(Object.entries(rest).reverse()),
        } as KubeObject,
      }),
      { ignoreNotFound: false },
    );
    assert.equal(after.resourceVersion, before.resourceVersion);
  });

  add("guaranteedUpdate checks preconditions", async (it) => {
    const before = await create(it, FOO);
    const update = (uid: string) =>
      it.storage.guaranteedUpdate(KEY, (present) => ({ object: present! }), {
        ignoreNotFound: false,
        preconditions: { uid },
      });
    await rejectsWith(update("B"), "InvalidObj");
    assert.equal((await update("A")).resourceVersion, before.resourceVersion);
  });

  add("the function's error is the result", async (it) => {
    await create(it, FOO);
    const update = (): never => {
      throw new RangeError("no");
    };
    await assert.rejects(
      it.storage.guaranteedUpdate(KEY, update, { ignoreNotFound: false }),
      RangeError,
    );
  });
}

function conflictCases(add: Case): void {
  add("a conflict calls the function again with the present object", async (it) => {
    await create(it, FOO);
    const seen: string[] = [];
    await it.storage.guaranteedUpdate(
      KEY,
      async (present) => {
        seen.push(present!.metadata.labels?.by ?? "");
        if (seen.length === 1) await change(it, KEY, { labels: { by: "other" } });
        return { object: { ...present!, metadata: { ...present!.metadata, generation: 2 } } };
      },
      { ignoreNotFound: false },
    );
    assert.deepEqual(seen, ["", "other"]);
    const { metadata } = (await it.storage.get(KEY))!.object();
    assert.deepEqual([metadata.labels, metadata.generation], [{ by: "other" }, 2]);
  });

  add("no update of many at once is lost", async (it) => {
    await create(it, FOO);
    const writers = Array.from({ length: 8 }, () =>
      it.storage.guaranteedUpdate(
        KEY,
        (present) => {
          const generation = (present!.metadata.generation ?? 0) + 1;
          return { object: { ...present!, metadata: { ...present!.metadata, generation } } };
        },
        { ignoreNotFound: false },
      ),
    );
    await Promise.all(writers);
    assert.equal((await it.storage.get(KEY))!.object().metadata.generation, 8);
  });
}

function cachedCases(add: Case): void {
  add("an update of a stale cached object is repeated with the present one", async (it) => {
    const original = await create(it, FOO);
    await change(it, KEY, { generation: 2 });
    let conflicts = 0;
    const updated = await it.storage.guaranteedUpdate(
      KEY,
      (present) => {
        if (present!.metadata.generation !== 2) {
          conflicts++;
          throw new Error("stale object");
        }
        return { object: { ...present!, metadata: { ...present!.metadata, generation: 3 } } };
      },
      { ignoreNotFound: false, cached: original },
    );
    assert.ok(conflicts <= 1);
    assert.equal(updated.object().metadata.generation, 3);
    let attempts = 0;
    const refused = it.storage.guaranteedUpdate(
      KEY,
      () => {
        attempts++;
        throw new Error("not admitted");
      },
      { ignoreNotFound: false, cached: updated },
    );
    await assert.rejects(refused, /not admitted/);
    assert.ok(attempts <= 2);
  });

  add("a cached object that equals the new one is checked against the store", async (it) => {
    const original = await create(it, FOO);
    const changed = await change(it, KEY, { labels: { a: "1" } });
    const back = await it.storage.guaranteedUpdate(KEY, () => ({ object: FOO }), {
      ignoreNotFound: false,
      cached: original,
    });
    assert.ok(back.resourceVersion > changed.resourceVersion);
    assert.equal(back.object().metadata.labels, undefined);
    const same = await it.storage.guaranteedUpdate(KEY, () => ({ object: FOO }), {
      ignoreNotFound: false,
      cached: back,
    });
    assert.equal(same.resourceVersion, back.resourceVersion);
  });
}

function transformerCases(add: Case, { isCache = false }: StorageContractOptions): void {
  add("a stale value is written again, though nothing changed", async (it) => {
    const before = await create(it, FOO);
    it.transformer.stale = true;
    const after = await change(it, KEY, {});
    assert.ok(after.resourceVersion > before.resourceVersion);
    const cached = await it.storage.guaranteedUpdate(KEY, () => ({ object: FOO }), {
      ignoreNotFound: false,
      cached: after,
    });
    assert.ok(cached.resourceVersion > after.resourceVersion);
  });

  add("a value in another form is written in the present one", async (it) => {
    it.transformer.prefix = "test: ";
    const before = await create(it, FOO);
    it.transformer.prefix = "test:";
    const after = await it.storage.guaranteedUpdate(KEY, () => ({ object: FOO }), {
      ignoreNotFound: false,
      cached: before,
    });
    assert.ok(after.resourceVersion > before.resourceVersion);
    assert.equal((await change(it, KEY, {})).resourceVersion, after.resourceVersion);
  });

  // A cache decrypts once, when the value arrives.
  if (isCache) return;
  add("a value that cannot be decrypted fails reads and writes", async (it) => {
    await create(it, pod("first", "bar"));
    it.transformer.prefix = "other:";
    const broken = await create(it, FOO);
    it.transformer.prefix = "test:";
    await rejectsWith(it.storage.getList("/pods/", listOptions()), "Internal");
    await rejectsWith(it.storage.get(KEY), "Internal");
    await rejectsWith(change(it, KEY, {}), "Internal");
    await rejectsWith(
      it.storage.guaranteedUpdate(KEY, (present) => ({ object: present! }), {
        ignoreNotFound: false,
        cached: broken,
      }),
      "Internal",
    );
    await rejectsWith(it.storage.delete(KEY), "Internal");
    await rejectsWith(it.storage.get(KEY), "Internal");
  });
}

function statCases(add: Case): void {
  add("stats count the resource's objects", async (it) => {
    assert.equal((await it.storage.stats()).objectCount, 0);
    await create(it, FOO);
    await create(it, pod("ns", "bar"));
    await it.increaseRevision();
    assert.equal((await it.storage.stats()).objectCount, 2);
    await it.storage.delete(KEY);
    assert.equal((await it.storage.stats()).objectCount, 1);
  });

  add("currentResourceVersion is that of the last write", async (it) => {
    const { resourceVersion } = await create(it, FOO);
    assert.equal(await it.storage.currentResourceVersion(), resourceVersion);
    assert.equal(await it.increaseRevision(), await it.storage.currentResourceVersion());
    // A cache reads behind the writes; it may not have what was there at its start yet.
    const endMs = performance.now() + READY_LIMIT_MS;
    while (it.storage.readiness() !== undefined && performance.now() < endMs) await delay(1);
    assert.equal(it.storage.readiness(), undefined);
  });

  add("an aborted call rejects with the signal's reason", async (it) => {
    const stop = new AbortController();
    stop.abort(new RangeError("gone"));
    const { signal } = stop;
    await assert.rejects(it.storage.get(KEY, { signal }), RangeError);
    await assert.rejects(it.storage.getList("/pods/", listOptions({ signal })), RangeError);
    await assert.rejects(it.storage.create(KEY, FOO, 0, { signal }), RangeError);
    await assert.rejects(it.storage.delete(KEY, { signal }), RangeError);
    assert.equal(await it.storage.get(KEY, { ignoreNotFound: true }), undefined);
  });
}

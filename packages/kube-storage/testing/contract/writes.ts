/** create, get, delete and guaranteedUpdate (apiserver: pkg/storage/testing/store_tests.go). */
import assert from "node:assert/strict";
import { toUtf8 } from "@quorate/proto";
import type { KubeObject } from "../../src/meta/object.ts";
import { StorageError } from "../../src/storage/errors.ts";
import { keyOfPod, listOptions, pod } from "../example-pods.ts";
import {
  type Case,
  change,
  create,
  record,
  rejectsWith,
  type StorageContractOptions,
} from "./under-test.ts";

const FOO: KubeObject = pod("ns", "foo", { uid: "A" });
const KEY: string = keyOfPod(FOO);

export function writeCases(add: Case, options: StorageContractOptions): void {
  createCases(add);
  getCases(add, options);
  deleteCases(add);
  cachedDeleteCases(add);
  keyCases(add);
}

function createCases(add: Case): void {
  add("create returns the object with its revision", async (it) => {
    await rejectsWith(it.storage.get(KEY), "KeyNotFound");
    const stored = await create(it, FOO);
    assert.ok(stored.resourceVersion > 0);
    assert.equal(stored.key, KEY);
    assert.deepEqual(stored.object(), {
      ...FOO,
      metadata: { ...FOO.metadata, resourceVersion: String(stored.resourceVersion) },
    });
    assert.deepEqual(JSON.parse(toUtf8(stored.json())), stored.object());
  });

  add("create refuses an object with a resourceVersion", async (it) => {
    await assert.rejects(
      it.storage.create(KEY, pod("ns", "foo", { resourceVersion: "1" }), 0),
      /resourceVersion should not be set on objects to be created/,
    );
  });

  add("create refuses a key that exists", async (it) => {
    await create(it, FOO);
    await rejectsWith(create(it, FOO), "KeyExists");
  });

  add("an object with a time to live goes", async (it) => {
    const stored = await it.storage.create(KEY, FOO, 1);
    const watch = await record(it, KEY, {
      resourceVersion: String(stored.resourceVersion),
      recursive: false,
    });
    it.advance(5000);
    assert.equal(await watch.nextText(), "DELETED foo");
    watch.stop();
  });

  add("an update keeps the time to live, or sets another", async (it) => {
    await it.storage.create(KEY, FOO, 1);
    const kept = await change(it, KEY, { labels: { a: "1" } });
    const watch = await record(it, KEY, {
      resourceVersion: String(kept.resourceVersion),
      recursive: false,
    });
    it.advance(5000);
    assert.equal(await watch.nextText(), "DELETED foo");
    const created = await it.storage.guaranteedUpdate(KEY, () => ({ object: FOO, ttlSeconds: 1 }), {
      ignoreNotFound: true,
    });
    assert.ok(created.resourceVersion > kept.resourceVersion);
    it.advance(5000);
    assert.equal(await watch.nextText(), "ADDED foo");
    assert.equal(await watch.nextText(), "DELETED foo");
    watch.stop();
  });
}

function getCases(add: Case, { isCache = false }: StorageContractOptions): void {
  add("get at a revision returns an object that is not older", async (it) => {
    const created = await create(it, FOO);
    const updated = await change(it, KEY, { annotations: { a: "1" } });
    const other = await create(it, pod("ns", "bar"));
    for (const revision of [updated, other].map((one) => String(one.resourceVersion))) {
      const got = await it.storage.get(KEY, { resourceVersion: revision });
      assert.deepEqual(got!.object(), updated.object());
    }
    assert.deepEqual((await it.storage.get(KEY))!.object(), updated.object());
    const possible = [created.resourceVersion, updated.resourceVersion];
    const any = await it.storage.get(KEY, { resourceVersion: "0", ignoreNotFound: true });
    if (!isCache) assert.notEqual(any, undefined);
    if (any !== undefined) assert.ok(possible.includes(any.resourceVersion));
    const older = await it.storage.get(KEY, { resourceVersion: String(created.resourceVersion) });
    assert.ok(possible.includes(older!.resourceVersion));
  });

  add("get refuses a revision that is not there yet, and one that is none", async (it) => {
    await create(it, FOO);
    const error = it.storage.get(KEY, { resourceVersion: "9223372036854775807" });
    await assert.rejects(error, /Too large resource version/);
    await assert.rejects(it.storage.get(KEY, { resourceVersion: "abc" }), /abc/);
  });

  add("get of nothing rejects, or resolves with undefined", async (it) => {
    await rejectsWith(it.storage.get("/pods/nothing"), "KeyNotFound");
    assert.equal(await it.storage.get("/pods/nothing", { ignoreNotFound: true }), undefined);
  });
}

function deleteCases(add: Case): void {
  add("delete returns the object at the revision of the deletion", async (it) => {
    const stored = await create(it, FOO);
    const deleted = await it.storage.delete(KEY);
    assert.ok(deleted.resourceVersion > stored.resourceVersion);
    assert.deepEqual(deleted.object().metadata, {
      ...stored.object().metadata,
      resourceVersion: String(deleted.resourceVersion),
    });
    await rejectsWith(it.storage.get(KEY), "KeyNotFound");
    await rejectsWith(it.storage.delete(KEY), "KeyNotFound");
  });

  add("delete checks preconditions", async (it) => {
    const stored = await create(it, FOO);
    const wrongUid = it.storage.delete(KEY, { preconditions: { uid: "B" } });
    await assert.rejects(wrongUid, (error) => {
      assert.ok(error instanceof StorageError && error.code === "InvalidObj");
      const [what, key = "", version, why] = error.message.split(/, (?=Key|Res|Add)/);
      assert.equal(what, "StorageError: invalid object, Code: 4");
      assert.ok(key.endsWith("/pods/ns/foo"), key);
      assert.equal(version, "ResourceVersion: 0");
      const uids = "UID in precondition: B, UID in object meta: A";
      assert.equal(why, `AdditionalErrorMsg: Precondition failed: ${uids}`);
      return true;
    });
    await rejectsWith(
      it.storage.delete(KEY, { preconditions: { resourceVersion: "1" } }),
      "InvalidObj",
    );
    const resourceVersion = String(stored.resourceVersion);
    await it.storage.delete(KEY, { preconditions: { uid: "A", resourceVersion } });
  });

  add("delete validates again after a conflict", async (it) => {
    await create(it, FOO);
    let calls = 0;
    const deleted = await it.storage.delete(KEY, {
      validate: async () => {
        if (calls++ === 0) await change(it, KEY, { labels: { foo: "bar" } });
      },
    });
    assert.equal(calls, 2);
    assert.deepEqual(deleted.object().metadata.labels, { foo: "bar" });
    await rejectsWith(it.storage.get(KEY), "KeyNotFound");
  });
}

function cachedDeleteCases(add: Case): void {
  add("delete with a cached object, present or stale", async (it) => {
    const original = await create(it, FOO);
    await it.storage.delete(KEY, { cached: original });
    await rejectsWith(it.storage.delete(KEY, { cached: original }), "KeyNotFound");
    const stale = await create(it, FOO);
    const updated = await change(it, KEY, { labels: { foo: "bar" } });
    const deleted = await it.storage.delete(KEY, { cached: stale });
    assert.ok(deleted.resourceVersion > updated.resourceVersion);
    assert.deepEqual(deleted.object().metadata.labels, { foo: "bar" });
  });

  add("a refused deletion with a cached object is checked against the present one", async (it) => {
    const original = await create(it, FOO);
    let calls = 0;
    const refuse = (): never => {
      calls++;
      throw new Error("refused");
    };
    await assert.rejects(it.storage.delete(KEY, { cached: original, validate: refuse }), /refused/);
    assert.equal(calls, 1);
    await change(it, KEY, { labels: { foo: "bar" } });
    let looks = 0;
    await it.storage.delete(KEY, {
      cached: original,
      validate: ({ metadata }) => {
        looks++;
        if (metadata.labels?.foo !== "bar") throw new Error("stale object");
      },
    });
    assert.ok(looks <= 2);
  });

  add("a deletion that only the stale object allows is refused", async (it) => {
    const original = await create(it, FOO);
    const updated = await change(it, KEY, { uid: "other", labels: { foo: "barbar" } });
    await rejectsWith(
      it.storage.delete(KEY, { cached: original, preconditions: { uid: "A" } }),
      "InvalidObj",
    );
    const validate = ({ metadata }: KubeObject): void => {
      if (metadata.labels?.foo === "barbar") throw new Error("not now");
    };
    await assert.rejects(it.storage.delete(KEY, { cached: original, validate }), /not now/);
    assert.deepEqual((await it.storage.get(KEY))!.object(), updated.object());
    const { resourceVersion } = await it.storage.delete(KEY, {
      cached: original,
      preconditions: { uid: "other" },
    });
    assert.ok(resourceVersion > updated.resourceVersion);
  });
}

function keyCases(add: Case): void {
  add("keys outside the resource are refused", async (it) => {
    const { storage } = it;
    const bad: readonly (readonly [string, RegExp])[] = [
      ["", /empty key/],
      ["/", /empty key/],
      [".", /invalid key/],
      ["..", /invalid key/],
      ["/pods/../secrets", /invalid key/],
      ["/pods/./a", /invalid key/],
      ["pods", /lacks resource prefix/],
      ["/pods.apps", /lacks resource prefix/],
      ["/foo/", /lacks resource prefix/],
    ];
    for (const [key, message] of bad) {
      await assert.rejects(storage.create(key, FOO, 0), message);
      await assert.rejects(storage.get(key), message);
      await assert.rejects(storage.getList(key, listOptions()), message);
      await assert.rejects(storage.watch(key, listOptions()), message);
      await assert.rejects(storage.delete(key), message);
      const update = storage.guaranteedUpdate(key, () => ({ object: FOO }), {
        ignoreNotFound: true,
      });
      await assert.rejects(update, message);
    }
    await assert.rejects(storage.get("/pods"), /lacks resource prefix/);
    await assert.rejects(
      storage.getList("/pods", listOptions({ recursive: false })),
      /lacks resource prefix/,
    );
    assert.deepEqual((await storage.getList("/pods", listOptions())).items, []);
  });
}

/** getList (apiserver: pkg/storage/testing/store_tests.go). */
import assert from "node:assert/strict";
import type { KubeObject } from "../../src/meta/object.ts";
import type { SelectionPredicate } from "../../src/meta/selectors.ts";
import { decodeContinue, encodeContinue } from "../../src/storage/continue-token.ts";
import { StorageError } from "../../src/storage/errors.ts";
import type { ListResult, ResourceVersionMatch } from "../../src/storage/interface.ts";
import type { StoredObject } from "../../src/storage/stored-object.ts";
import { keyOfPod, listOptions, pod, predicate, where } from "../example-pods.ts";
import {
  type Case,
  change,
  create,
  namesOf,
  rejectsWith,
  type StorageContractOptions,
  type StorageUnderTest,
} from "./under-test.ts";

interface Seed {
  /** Before the first object. */
  readonly initial: number;
  /** first/bar as it was created, then changed: it has a label. */
  readonly first: StoredObject;
  readonly changed: StoredObject;
  readonly secondBar: StoredObject;
  readonly secondFoo: StoredObject;
  /** Of the last write. */
  readonly last: number;
}

/** first/bar (created and changed), second/bar, second/foo, third/barfoo. */
async function seed(it: StorageUnderTest): Promise<Seed> {
  const initial = await it.storage.currentResourceVersion();
  const first = await create(it, pod("first", "bar"));
  const secondBar = await create(it, pod("second", "bar"));
  const secondFoo = await create(it, pod("second", "foo", {}, "fakeNode"));
  const changed = await change(it, keyOfPod(first.object()), { labels: { changed: "yes" } });
  const third = await create(it, pod("third", "barfoo"));
  const last = third.resourceVersion;
  return { initial, first, changed, secondBar, secondFoo, last };
}

/** Lists as a client would: a revision, a match, and parts of the predicate. */
function list(
  it: StorageUnderTest,
  key: string,
  revision: number | string = "",
  match: ResourceVersionMatch = "",
  more: Partial<SelectionPredicate> = {},
): Promise<ListResult> {
  return it.storage.getList(
    key,
    listOptions({
      resourceVersion: String(revision),
      resourceVersionMatch: match,
      predicate: predicate(more),
    }),
  );
}

export function listCases(add: Case, options: StorageContractOptions): void {
  revisionCases(add, options);
  exactCases(add);
  selectorCases(add);
  pageCases(add, options);
  continueCases(add);
  singleCases(add);
}

function revisionCases(add: Case, { isCache = false }: StorageContractOptions): void {
  add("a list has all objects below its key, in the order of keys", async (it) => {
    const { last, changed } = await seed(it);
    const all = await list(it, "/pods/");
    assert.deepEqual(namesOf(all), ["first/bar", "second/bar", "second/foo", "third/barfoo"]);
    assert.equal(all.resourceVersion, last);
    assert.deepEqual([all.continueToken, all.remainingItemCount], ["", undefined]);
    const one = await list(it, "/pods/first");
    assert.deepEqual(one.items[0]?.object(), changed.object());
    assert.deepEqual(namesOf(await list(it, "/pods/sec")), []);
    assert.deepEqual(namesOf(await list(it, "/pods/none/")), []);
    const latest = await it.increaseRevision();
    assert.equal((await list(it, "/pods/none/")).resourceVersion, latest);
  });

  add("a list not older than a revision", async (it) => {
    const { initial, last } = await seed(it);
    for (const match of ["", "NotOlderThan"] as const) {
      const now = await list(it, "/pods/second/", last, match);
      assert.deepEqual(namesOf(now), ["second/bar", "second/foo"]);
      assert.ok(now.resourceVersion >= last);
      for (const old of [0, initial]) {
        const any = await list(it, "/pods/second/", old, match);
        if (!isCache) assert.equal(any.items.length, 2);
        assert.ok(any.resourceVersion >= old);
      }
    }
  });

  add("revisions that are none, or not there yet, are refused", async (it) => {
    await seed(it);
    await assert.rejects(list(it, "/pods/", "abc"), /abc/);
    await assert.rejects(list(it, "/pods/", "9223372036854775807"), /Too large resource version/);
    const token = encodeContinue("/pods/second/foo", "/pods/", 1);
    await assert.rejects(
      list(it, "/pods/", "1", "", { continueToken: token, limit: 1 }),
      /specifying resource version is not allowed when using continue/,
    );
  });
}

function exactCases(add: Case): void {
  add("a list at exactly a revision", async (it) => {
    const { first, secondBar, secondFoo, last } = await seed(it);
    const before = await list(it, "/pods/first/", first.resourceVersion, "Exact");
    assert.deepEqual(before.items[0]?.object(), first.object());
    assert.equal(before.resourceVersion, first.resourceVersion);
    const nothing = await list(it, "/pods/second/", first.resourceVersion, "Exact");
    assert.deepEqual([nothing.items.length, nothing.resourceVersion], [0, first.resourceVersion]);
    const half = await list(it, "/pods/", secondBar.resourceVersion, "Exact");
    assert.deepEqual(namesOf(half), ["first/bar", "second/bar"]);
    const page = await list(it, "/pods/", secondFoo.resourceVersion, "Exact", { limit: 1 });
    assert.deepEqual(namesOf(page), ["first/bar"]);
    assert.equal(page.remainingItemCount, 2);
    // Before there was a match, a limit made the revision exact.
    const legacy = await list(it, "/pods/", last, "", { limit: 1 });
    assert.equal(legacy.resourceVersion, last);
    assert.equal(legacy.remainingItemCount, 3);
  });

  add("a list at a compacted revision is too old", async (it) => {
    const { initial, first, last } = await seed(it);
    await it.compact(last);
    for (const old of [initial, first.resourceVersion])
      await assert.rejects(list(it, "/pods/", old, "Exact"), (error) => {
        assert.ok(error instanceof StorageError && error.code === "TooOldResourceVersion");
        assert.equal(error.message, "The resourceVersion for the provided list is too old.");
        assert.equal(error.continueToken, "");
        return true;
      });
    assert.equal((await list(it, "/pods/", last, "Exact")).items.length, 4);
  });
}

function selectorCases(add: Case): void {
  add("selectors of labels and fields", async (it) => {
    await seed(it);
    const label = where("changed", "=", "yes");
    assert.deepEqual(namesOf(await list(it, "/pods/", "", "", { label })), ["first/bar"]);
    const byNode = { field: where("spec.nodeName", "=", "fakeNode") };
    assert.deepEqual(namesOf(await list(it, "/pods/", "", "", byNode)), ["second/foo"]);
    const notBar = { field: where("metadata.name", "!=", "bar") };
    assert.deepEqual(namesOf(await list(it, "/pods/", "", "", notBar)), [
      "second/foo",
      "third/barfoo",
    ]);
    const none = { label, ...byNode };
    assert.deepEqual(namesOf(await list(it, "/pods/", "", "", none)), []);
  });

  add("a page with a selector is full, whatever lies between", async (it) => {
    for (const name of ["a1", "b1", "b2", "b3", "b4", "b5", "b6", "a2", "c1"])
      await create(it, pod("ns", name, name.startsWith("a") ? { labels: { a: "yes" } } : {}));
    const label = where("a", "=", "yes");
    const both = await list(it, "/pods/", "", "", { label, limit: 2 });
    assert.deepEqual(namesOf(both), ["ns/a1", "ns/a2"]);
    assert.notEqual(both.continueToken, "");
    assert.equal(both.remainingItemCount, undefined);
    const rest = { label, limit: 2, continueToken: both.continueToken };
    const last = await list(it, "/pods/", "", "", rest);
    assert.deepEqual([last.items.length, last.continueToken], [0, ""]);
    const rare = { field: where("metadata.name", "=", "c1"), limit: 1 };
    const found = await list(it, "/pods/", "", "", rare);
    assert.deepEqual([namesOf(found), found.continueToken], [["ns/c1"], ""]);
  });
}

function pageCases(add: Case, { isCache = false }: StorageContractOptions): void {
  add("pages continue at the revision of the first", async (it) => {
    const { last, secondBar } = await seed(it);
    const page = await list(it, "/pods/", "", "", { limit: 1 });
    assert.deepEqual(namesOf(page), ["first/bar"]);
    assert.deepEqual([page.resourceVersion, page.remainingItemCount], [last, 3]);
    assert.deepEqual(decodeContinue(page.continueToken, "/"), {
      startKey: "/first/bar\0",
      revision: last,
    });
    await it.storage.delete(keyOfPod(secondBar.object()));
    await create(it, pod("second", "baz"));
    const { continueToken } = page;
    const rest = await list(it, "/pods/", "", "", { continueToken });
    assert.deepEqual(namesOf(rest), ["second/bar", "second/foo", "third/barfoo"]);
    assert.deepEqual([rest.resourceVersion, rest.continueToken], [last, ""]);
    const second = await list(it, "/pods/", "", "", { continueToken, limit: 2 });
    assert.deepEqual(namesOf(second), ["second/bar", "second/foo"]);
    assert.equal(second.remainingItemCount, 1);
    const zero = await list(it, "/pods/", "0", "", {
      continueToken: second.continueToken,
      limit: 1,
    });
    assert.deepEqual(namesOf(zero), ["third/barfoo"]);
    assert.deepEqual([zero.continueToken, zero.resourceVersion], ["", last]);
  });

  add("a page of exactly all objects is the last", async (it) => {
    await seed(it);
    const page = await list(it, "/pods/", "", "", { limit: 4 });
    assert.deepEqual(
      [page.items.length, page.continueToken, page.remainingItemCount],
      [4, "", undefined],
    );
  });

  // A cache may hold the pages of a list longer than the store.
  if (isCache) return;
  add("an expired list can go on inconsistently", async (it) => {
    const { secondFoo } = await seed(it);
    const { continueToken } = await list(it, "/pods/", "", "", { limit: 1 });
    const changed = await change(it, keyOfPod(secondFoo.object()), { labels: { state: "new" } });
    await it.compact(changed.resourceVersion);
    let newer = "";
    await assert.rejects(list(it, "/pods/", "", "", { continueToken }), (error) => {
      assert.ok(error instanceof StorageError && error.code === "TooOldResourceVersion");
      assert.match(error.message, /^The provided continue parameter is too old to display/);
      newer = error.continueToken;
      return true;
    });
    const page = await list(it, "/pods/", "", "", { continueToken: newer, limit: 1 });
    assert.deepEqual(namesOf(page), ["second/bar"]);
    assert.ok(page.resourceVersion >= changed.resourceVersion);
    const rest = await list(it, "/pods/", "0", "", { continueToken: page.continueToken });
    assert.deepEqual(rest.items[0]?.object(), changed.object());
    assert.equal(rest.resourceVersion, page.resourceVersion);
  });
}

function continueCases(add: Case): void {
  add("continue tokens that are none are refused", async (it) => {
    await seed(it);
    const token = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const bad: readonly (readonly [string, RegExp])[] = [
      ["%%%", /continue key is not valid: illegal base64 data at input byte 0/],
      ["abc", /not valid: invalid character 'i' looking for beginning of value/],
      [token({ v: "meta.k8s.io/v1", rv: "1" }), /unmarshal string into Go struct field/],
      [token([]), /continue key is not valid/],
      [token({ v: "v2", rv: 1, start: "a" }), /server does not recognize this encoded version v2/],
      [token({ v: "meta.k8s.io/v1", start: "a" }), /incorrect encoded start resourceVersion/],
      [token({ v: "meta.k8s.io/v1", rv: 1, start: "" }), /encoded start key empty/],
      [token({ v: "meta.k8s.io/v1", rv: 1, start: "../secrets/a" }), /continue key is not valid/],
      [token({ v: "meta.k8s.io/v1", rv: 1, start: "a//b" }), /continue key is not valid/],
    ];
    for (const [continueToken, message] of bad) {
      const page = list(it, "/pods/", "", "", { continueToken, limit: 1 });
      await assert.rejects(page, message);
      await rejectsWith(
        list(it, "/pods/", "", "", { continueToken, limit: 1 }),
        "InvalidContinueToken",
      );
    }
  });
}

function singleCases(add: Case): void {
  add("a list of one key", async (it) => {
    const { first, changed } = await seed(it);
    const object: KubeObject = first.object();
    const one = (resourceVersion = "", match: ResourceVersionMatch = "", name = "bar") =>
      it.storage.getList(keyOfPod(pod("first", name)), {
        ...listOptions({ resourceVersion, resourceVersionMatch: match, recursive: false }),
        predicate: predicate({ field: where("metadata.name", "=", object.metadata.name!) }),
      });
    assert.deepEqual((await one()).items[0]?.object(), changed.object());
    const before = await one(String(first.resourceVersion), "Exact");
    assert.deepEqual(before.items[0]?.object(), object);
    assert.deepEqual((await one("", "", "none")).items, []);
    await assert.rejects(one("9223372036854775807"), /Too large resource version/);
    await create(it, pod("first", "barely"));
    assert.equal((await one()).items.length, 1);
  });
}

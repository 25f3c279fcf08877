import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject, ResourceSpec } from "@quorate/kube-storage";
import {
  DELETE_COLLECTION_PAGE_OBJECTS,
  MAX_CONCURRENT_DELETIONS,
  parseLabelSelector,
  plainStrategy,
  withMetadata,
} from "@quorate/kube-storage";
import { configMaps } from "../../src/builtin/configmaps.ts";
import {
  DELETE,
  failure,
  listOptions,
  RegistryWorld,
  sourceOf,
} from "../support/registry-world.ts";

const KIND = { group: "", version: "v1", kind: "ConfigMap" };

function world(changes: Partial<ResourceSpec> = {}): RegistryWorld {
  return new RegistryWorld({ ...configMaps(sourceOf(KIND)), ...changes });
}

/** Objects of this kind are deleted after 30 seconds, or what the request says. */
function graceful(): RegistryWorld {
  const strategy = plainStrategy(
    { kind: KIND, namespaced: true, countsGenerations: true },
    { gracePeriodSeconds: (_object, requested = 30) => requested },
  );
  return world({ strategy, returnsDeletedObject: true });
}

async function gone(w: RegistryWorld, name: string): Promise<boolean> {
  const key = `/configmaps/default/${name}`;
  return (await w.storage.get(key, { ignoreNotFound: true })) === undefined;
}

test("A deletion responds with a Status, or with the object", async () => {
  const w = world();
  const { metadata } = await w.create(w.object({ name: "a" }));
  const { result, deletedNow } = await w.delete("a");
  assert.deepEqual(result, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: { name: "a", group: undefined, kind: "configmaps", uid: metadata.uid },
  });
  assert.equal(deletedNow, true);
  const missing = await failure(w.delete("a"));
  assert.equal(missing.message, 'configmaps "a" not found');
  const returning = world({ returnsDeletedObject: true });
  await returning.create(returning.object({ name: "a" }));
  const object = (await returning.delete("a")).result as KubeObject;
  assert.deepEqual([object.kind, object.metadata.resourceVersion], ["ConfigMap", "3"]);
});

test("Preconditions and options are checked, with Kubernetes' texts", async () => {
  const w = world();
  const { metadata } = await w.create(w.object({ name: "a" }));
  const uid = await failure(w.delete("a", { ...DELETE, preconditions: { uid: "nope" } }));
  assert.equal(
    uid.message,
    'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (nope) does ' +
      `not match the UID in record (${metadata.uid}). The object might have been deleted and ` +
      "then recreated",
  );
  assert.deepEqual(uid.details, { name: "a", group: undefined, kind: "ConfigMap" });
  const revision = await failure(
    w.delete("a", { ...DELETE, preconditions: { resourceVersion: "1" } }),
  );
  assert.equal(
    revision.message,
    'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition ' +
      "(1) does not match the ResourceVersion in record (2). The object might have been modified",
  );
  const policy = await failure(w.delete("a", { ...DELETE, propagationPolicy: "Foo" as "Orphan" }));
  assert.equal(
    policy.message,
    'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Foo": ' +
      'supported values: "Foreground", "Background", "Orphan", "nil"',
  );
  const both = { ...DELETE, propagationPolicy: "Orphan", orphanDependents: true } as const;
  assert.match((await failure(w.delete("a", both))).message, /cannot be both set$/);
  assert.equal(await gone(w, "a"), false);
});

test("Finalizers keep an object until the last one is removed", async () => {
  const w = world();
  await w.create(w.object({ name: "a", finalizers: ["example.org/f"], generation: 1 }));
  const first = (await w.delete("a")).result as KubeObject;
  assert.equal(first.metadata.deletionTimestamp, "2026-01-02T03:04:05Z");
  assert.equal(first.metadata.deletionGracePeriodSeconds, 0);
  w.advance(60_000);
  const again = (await w.delete("a")).result as KubeObject;
  assert.equal(again.metadata.deletionTimestamp, "2026-01-02T03:04:05Z", "it stays");
  assert.equal(again.metadata.resourceVersion, first.metadata.resourceVersion);
  const added = withMetadata(again, { finalizers: ["example.org/f", "example.org/g"] });
  const refused = await failure(w.put(added));
  assert.equal(
    refused.message,
    'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added ' +
      'if the object is being deleted, found new finalizers []string{"example.org/g"}',
  );
  let deleted = 0;
  const hooked = world({ hooks: { afterDelete: () => void deleted++ } });
  await hooked.create(hooked.object({ name: "a", finalizers: ["example.org/f"] }));
  const marked = (await hooked.delete("a")).result as KubeObject;
  assert.equal(deleted, 0);
  const last = await hooked.put(withMetadata(marked, { finalizers: [] }));
  assert.equal(last.metadata.name, "a");
  assert.equal(deleted, 1);
  assert.equal(await gone(hooked, "a"), true);
});

test("propagationPolicy sets and replaces the garbage collector's finalizers", async () => {
  const w = world();
  await w.create(w.object({ name: "a" }));
  const foreground = await w.delete("a", { ...DELETE, propagationPolicy: "Foreground" });
  const marked = foreground.result as KubeObject;
  assert.deepEqual(marked.metadata.finalizers, ["foregroundDeletion"]);
  assert.equal(foreground.deletedNow, false);
  const orphan = await w.delete("a", { ...DELETE, propagationPolicy: "Orphan" });
  assert.deepEqual((orphan.result as KubeObject).metadata.finalizers, ["orphan"]);
  const background = await w.delete("a", { ...DELETE, propagationPolicy: "Background" });
  assert.equal(background.deletedNow, true);
  assert.equal(await gone(w, "a"), true);

  await w.create(w.object({ name: "b", finalizers: ["orphan"] }));
  const kept = (await w.delete("b")).result as KubeObject;
  assert.deepEqual(kept.metadata.finalizers, ["orphan"], "the object's own wish");
  await w.create(w.object({ name: "c" }));
  const deprecated = (await w.delete("c", { ...DELETE, orphanDependents: true })).result;
  assert.deepEqual((deprecated as KubeObject).metadata.finalizers, ["orphan"]);

  const unsupported = world({ garbageCollection: "unsupported" });
  await unsupported.create(unsupported.object({ name: "a" }));
  const now = await unsupported.delete("a", { ...DELETE, propagationPolicy: "Foreground" });
  assert.equal(now.deletedNow, true);
});

test("A graceful deletion has a time, which later requests only shorten", async () => {
  const w = graceful();
  await w.create(w.object({ name: "a" }));
  const first = (await w.delete("a")).result as KubeObject;
  assert.equal(first.metadata.deletionTimestamp, "2026-01-02T03:04:35Z");
  assert.equal(first.metadata.deletionGracePeriodSeconds, 30);
  assert.equal(first.metadata.generation, 2);
  const longer = await w.delete("a", { ...DELETE, gracePeriodSeconds: 40 });
  assert.deepEqual(longer.result, first);
  const pending = await w.delete("a");
  assert.deepEqual(pending.result, first);
  const shorter = await w.delete("a", { ...DELETE, gracePeriodSeconds: 10 });
  const object = shorter.result as KubeObject;
  assert.equal(object.metadata.deletionTimestamp, "2026-01-02T03:04:15Z");
  assert.equal(object.metadata.deletionGracePeriodSeconds, 10);
  assert.equal(object.metadata.generation, 2);
  w.advance(20_000);
  const late = (await w.delete("a", { ...DELETE, gracePeriodSeconds: 5 })).result as KubeObject;
  assert.equal(late.metadata.deletionTimestamp, "2026-01-02T03:04:25Z", "not in the past");
  assert.equal(late.metadata.deletionGracePeriodSeconds, 1);
  const now = await w.delete("a", { ...DELETE, gracePeriodSeconds: 0 });
  assert.equal(now.deletedNow, true);
  assert.equal(await gone(w, "a"), true);
  await w.create(w.object({ name: "b" }));
  const negative = await w.delete("b", { ...DELETE, gracePeriodSeconds: -7 });
  assert.equal((negative.result as KubeObject).metadata.deletionGracePeriodSeconds, 1);
});

test("Dry runs of deletions check and write nothing", async () => {
  let after = 0;
  const w = world({ hooks: { afterDelete: () => void after++ } });
  await w.create(w.object({ name: "a" }));
  const dry = { dryRun: true };
  assert.equal((await w.delete("a", dry)).deletedNow, true);
  const marked = await w.delete("a", { ...dry, propagationPolicy: "Foreground" });
  const object = marked.result as KubeObject;
  assert.deepEqual(object.metadata.finalizers, ["foregroundDeletion"]);
  assert.equal((await w.get("a")).metadata.deletionTimestamp, undefined);
  const refused = { ...dry, preconditions: { uid: "x" } };
  assert.equal((await failure(w.delete("a", refused))).httpStatus, 409);
  await w.list();
  const listed = await w.main.deleteCollection(w.ctx(), w.admit, dry, listOptions());
  assert.equal(listed.items.length, 1);
  assert.equal(await w.count(), 1);
  assert.equal(after, 0);
});

test("Admission can refuse a deletion", async () => {
  const w = world();
  await w.create(w.object({ name: "a" }));
  await w.create(w.object({ name: "b", finalizers: ["example.org/f"] }));
  const refuse = async () => {
    throw new RangeError("refused");
  };
  for (const name of ["a", "b"]) {
    await assert.rejects(w.main.delete(w.ctx(), name, refuse, DELETE), /refused/);
  }
  assert.equal(await w.count(), 2);
});

test("deletecollection goes through all pages, some at a time, past missing ones", async () => {
  const w = world();
  for (let index = 0; index < 40; index++) {
    const labels = { even: String(index % 2 === 0) };
    await w.create(w.object({ name: `cm-${index}`, labels }));
  }
  let running = 0;
  let most = 0;
  let calls = 0;
  const admit = async (object: KubeObject): Promise<void> => {
    running++;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    // Another client deletes the next object first.
    if (calls++ === 3) await w.storage.delete(`/configmaps/default/${object.metadata.name}`);
  };
  const label = parseLabelSelector("even=true");
  const listed = await w.main.deleteCollection(w.ctx(""), admit, DELETE, listOptions({ label }));
  assert.equal(listed.items.length, 20);
  assert.equal(await w.count(), 20);
  assert.equal(most, MAX_CONCURRENT_DELETIONS);
  const limited = await w.main.deleteCollection(
    w.ctx(),
    w.admit,
    DELETE,
    listOptions({ limit: 7 }),
  );
  assert.equal(limited.items.length, 7);
  assert.equal(await w.count(), 13);
});

test("deletecollection stops at the first error, and when its client is gone", async () => {
  const w = world();
  for (let index = 0; index < 30; index++) await w.create(w.object({ name: `cm-${index}` }));
  let calls = 0;
  const refuse = async () => {
    if (calls++ === 4) throw new RangeError("refused");
  };
  const call = w.main.deleteCollection(w.ctx(), refuse, DELETE, listOptions());
  await assert.rejects(call, /refused/);
  const rest = await w.count();
  assert.ok(rest >= 30 - 4 - MAX_CONCURRENT_DELETIONS && rest < 30, String(rest));
  const controller = new AbortController();
  controller.abort(new Error("client gone"));
  const ctx = { ...w.ctx(), signal: controller.signal };
  await assert.rejects(w.main.deleteCollection(ctx, w.admit, DELETE, listOptions()), /client gone/);
  assert.equal(await w.count(), rest);
});

test("deletecollection reads pages of 500", async () => {
  const w = world();
  const count = DELETE_COLLECTION_PAGE_OBJECTS + 1;
  for (let index = 0; index < count; index++) {
    const object = w.object({ name: `cm-${index}`, namespace: "default" });
    await w.storage.create(`/configmaps/default/cm-${index}`, object, 0);
  }
  w.cluster.requests.length = 0;
  const listed = await w.main.deleteCollection(w.ctx(), w.admit, DELETE, listOptions());
  assert.equal(listed.items.length, count);
  assert.equal(listed.continueToken, "");
  assert.equal(await w.count(), 0);
  const limits = w.cluster.requests.filter(({ kind, limit }) => kind === "range" && limit > 1);
  assert.deepEqual(
    limits.map(({ limit }) => limit),
    [DELETE_COLLECTION_PAGE_OBJECTS, DELETE_COLLECTION_PAGE_OBJECTS],
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@quorate/kube-storage";
import { parseFieldSelector } from "@quorate/kube-storage";
import { namespaces } from "../../src/builtin/namespaces.ts";
import { DELETE, DRY, failure, RegistryWorld, sourceOf } from "../support/registry-world.ts";

const world = (): RegistryWorld =>
  new RegistryWorld(namespaces(sourceOf({ group: "", version: "v1", kind: "Namespace" })));

test("A new namespace is active, labelled with its name, and kept by a finalizer", async () => {
  const w = world();
  const made = await w.create(
    w.object(
      { name: "n", labels: { "kubernetes.io/metadata.name": "x", a: "b" } },
      { spec: { finalizers: ["example.org/foo"] }, status: { phase: "Terminating" } },
    ),
  );
  assert.deepEqual(made["spec"], { finalizers: ["example.org/foo", "kubernetes"] });
  assert.deepEqual(made["status"], { phase: "Active" });
  assert.deepEqual(made.metadata.labels, { "kubernetes.io/metadata.name": "n", a: "b" });
  const generated = await w.create(w.object({ generateName: "g-" }));
  const { name, labels } = generated.metadata;
  assert.deepEqual(labels, { "kubernetes.io/metadata.name": name });
});

test("Names are DNS labels, finalizers are qualified or standard", async () => {
  const w = world();
  const dots = await failure(w.create(w.object({ name: "n1.x" })));
  assert.equal(
    dots.message,
    'Namespace "n1.x" is invalid: metadata.name: Invalid value: "n1.x": must not contain dots',
  );
  const long = await failure(w.create(w.object({ name: "n".repeat(64) })));
  assert.match(long.message, /: must be no more than 63 characters$/);
  const spec = { finalizers: ["foo"] };
  const finalizer = await failure(w.create(w.object({ name: "n2" }, { spec })));
  assert.equal(
    finalizer.message,
    'Namespace "n2" is invalid: spec.finalizers: Invalid value: "foo": name is neither a ' +
      "standard finalizer name nor is it fully qualified",
  );
});

test("An update changes metadata only, /status the phase, /finalize the finalizers", async () => {
  const w = world();
  await w.create(w.object({ name: "n" }));
  const { status, finalize } = w.subresources;
  const labels = { a: "b" };
  const put = await w.put(
    w.object({ name: "n", labels }, { spec: { finalizers: [] }, status: { phase: "X" } }),
  );
  assert.deepEqual(
    [put["spec"], put["status"]],
    [{ finalizers: ["kubernetes"] }, { phase: "Active" }],
  );
  assert.equal(put.metadata.labels?.["a"], "b");
  const phase = { status: { phase: "Terminating" } };
  assert.equal(
    (await failure(w.put(w.object({ name: "n" }, phase), undefined, status))).message,
    'Namespace "n" is invalid: status.Phase: Invalid value: "Terminating": may only be ' +
      "'Active' if `deletionTimestamp` is empty",
  );
  const spec = { finalizers: ["foo", "kubernetes"] };
  assert.equal(
    (await failure(w.put(w.object({ name: "n" }, { spec }), undefined, finalize))).message,
    'Namespace "n" is invalid: spec.finalizers[0]: Invalid value: "foo": name is neither a ' +
      "standard finalizer name nor is it fully qualified",
  );
  assert.deepEqual(Object.keys(finalize), ["update"], "/finalize has no GET");
});

test("A deletion terminates first; with the last finalizer the namespace goes", async () => {
  const w = world();
  const made = await w.create(w.object({ name: "n", finalizers: ["example.org/m"] }));
  const dry = (await w.delete("n", { dryRun: true })).result as KubeObject;
  assert.deepEqual(dry["status"], { phase: "Terminating" });
  assert.equal((await w.get("n")).metadata.deletionTimestamp, undefined);
  const uid = await failure(w.delete("n", { ...DELETE, preconditions: { uid: "x" } }));
  assert.equal(
    uid.message,
    'Operation cannot be fulfilled on namespaces "n": Precondition failed: UID in ' +
      `precondition: x, UID in object meta: ${made.metadata.uid}`,
  );
  const revision = { ...DELETE, preconditions: { resourceVersion: "1" } };
  assert.equal(
    (await failure(w.delete("n", revision))).message,
    'Operation cannot be fulfilled on namespaces "n": Precondition failed: ResourceVersion in ' +
      "precondition: 1, ResourceVersion in object meta: 2",
  );
  const first = await w.delete("n", { ...DELETE, propagationPolicy: "Foreground" });
  const marked = first.result as KubeObject;
  assert.equal(first.deletedNow, false);
  assert.equal(marked.metadata.deletionTimestamp, "2026-01-02T03:04:05Z");
  assert.deepEqual(marked.metadata.finalizers, ["example.org/m", "foregroundDeletion"]);
  assert.deepEqual(marked["status"], { phase: "Terminating" });
  const again = await w.delete("n");
  assert.deepEqual([again.result, again.deletedNow], [marked, false]);
  const phase = { status: { phase: "Active" } };
  assert.match(
    (await failure(w.put(w.object({ name: "n" }, phase), undefined, w.subresources["status"])))
      .message,
    /may only be 'Terminating' if `deletionTimestamp` is not empty$/,
  );
  const { finalize } = w.subresources;
  const emptied = await w.put({ ...marked, spec: {} }, undefined, finalize);
  assert.deepEqual(emptied["spec"], {});
  assert.equal(await w.count(), 1, "metadata.finalizers keep it");
  await w.put(w.object({ name: "n" }), undefined, finalize);
  assert.equal(await w.count(), 0);
});

test("Without finalizers in metadata, /finalize deletes at once", async () => {
  const w = world();
  await w.create(w.object({ name: "n" }));
  await w.delete("n");
  await w.put(w.object({ name: "n" }), DRY, w.subresources["finalize"]);
  assert.equal(await w.count(), 1, "not in a dry run");
  await w.put(w.object({ name: "n" }), undefined, w.subresources["finalize"]);
  assert.equal(await w.count(), 0);
  assert.equal((await failure(w.delete("n"))).message, 'namespaces "n" not found');
});

test("Namespaces have no deletecollection, and are selected by phase", async () => {
  const w = world();
  assert.equal("deleteCollection" in w.main, false);
  await w.create(w.object({ name: "n" }));
  const active = await w.list({ field: parseFieldSelector("status.phase=Active") });
  assert.equal(active.items.length, 1);
  const none = await w.list({ field: parseFieldSelector("status.phase=Terminating") });
  assert.equal(none.items.length, 0);
});

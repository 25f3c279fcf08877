import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResourceSpec } from "@quorate/kube-storage";
import { MAX_NAME_ATTEMPTS, StorageError } from "@quorate/kube-storage";
import { configMaps } from "../../src/builtin/configmaps.ts";
import { DRY, failure, RegistryWorld, sourceOf } from "../support/registry-world.ts";

const KIND = { group: "", version: "v1", kind: "ConfigMap" };

function world(changes: Partial<ResourceSpec> = {}): RegistryWorld {
  return new RegistryWorld({ ...configMaps(sourceOf(KIND)), ...changes });
}

test("A create sets system fields, and removes those that a client sent", async () => {
  const w = world();
  const sent = w.object({
    name: "a",
    uid: "mine",
    creationTimestamp: "2020-01-01T00:00:00Z",
    deletionTimestamp: "2020-01-01T00:00:00Z",
    deletionGracePeriodSeconds: 5,
  });
  const { metadata } = await w.create(sent);
  assert.match(
    metadata.uid!,
    /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  assert.deepEqual(
    { ...metadata, uid: "" },
    {
      name: "a",
      uid: "",
      namespace: "default",
      creationTimestamp: "2026-01-02T03:04:05Z",
      resourceVersion: "2",
    },
  );
  const stored = await w.storage.get("/configmaps/default/a");
  assert.equal(stored?.object().metadata.uid, metadata.uid);
  assert.equal(w.admitted.length, 1, "admission sees the object");
});

test("Names: given, generated, missing, malformed", async () => {
  const w = world();
  const made = await w.create(w.object({ generateName: "gen-" }));
  assert.match(made.metadata.name!, /^gen-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  const long = await w.create(w.object({ generateName: "x".repeat(70) }));
  assert.equal(long.metadata.name!.length, 63);

  const missing = await failure(w.create(w.object({})));
  assert.equal(
    missing.message,
    'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
  );
  assert.equal(missing.httpStatus, 422);
  assert.deepEqual(missing.details, {
    name: undefined,
    group: undefined,
    kind: "ConfigMap",
    causes: [
      {
        reason: "FieldValueRequired",
        message: "Required value: name or generateName is required",
        field: "metadata.name",
      },
    ],
  });
  const bad = await failure(w.create(w.object({ name: "Bad_Name" })));
  assert.equal(
    bad.message,
    'ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": a lowercase RFC ' +
      "1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must " +
      "start and end with an alphanumeric character (e.g. 'example.com', regex used for " +
      "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
  );
  const long2 = await failure(w.create(w.object({ name: "x".repeat(260) })));
  assert.match(long2.message, /: must be no more than 253 characters$/);
});

test("A name that is taken", async () => {
  const w = world();
  await w.create(w.object({ name: "a", finalizers: ["example.org/f"] }));
  const taken = await failure(w.create(w.object({ name: "a" })));
  assert.equal(taken.message, 'configmaps "a" already exists');
  assert.deepEqual(taken.details, { name: "a", group: undefined, kind: "configmaps" });
  await w.delete("a");
  const deleting = await failure(w.create(w.object({ name: "a" })));
  assert.equal(deleting.message, 'object is being deleted: configmaps "a" already exists');
  const generated = await failure(w.create(w.object({ name: "a", generateName: "a-" })));
  assert.equal(
    generated.message,
    'object is being deleted: configmaps "a" already exists, the server was not able to ' +
      "generate a unique name for the object",
  );
});

test("A generated name is tried up to eight times", async () => {
  const w = world();
  let attempts = 0;
  w.storage.create = async (key) => {
    attempts++;
    throw new StorageError("KeyExists", key, "key exists");
  };
  const taken = await failure(w.create(w.object({ generateName: "a-" })));
  assert.equal(attempts, MAX_NAME_ATTEMPTS);
  assert.match(taken.message, /the server was not able to generate a unique name/);
  assert.equal(taken.details?.retryAfterSeconds, 1);
});

test("The namespace is the request's", async () => {
  const w = world();
  const other = await failure(w.create(w.object({ name: "a", namespace: "other" })));
  assert.equal(other.httpStatus, 400);
  assert.equal(
    other.message,
    "the namespace of the provided object does not match the namespace sent on the request",
  );
  const none = await failure(w.main.create(w.ctx(""), w.object({ name: "a" }), w.admit, DRY));
  assert.equal(none.httpStatus, 422);
  assert.match(none.message, /metadata.namespace: Required value$/);
});

test("A dry run checks and writes nothing", async () => {
  let after = 0;
  const w = world({ hooks: { afterCreate: () => after++ } });
  const dry = await w.create(w.object({ name: "a" }), DRY);
  assert.equal(dry.metadata.resourceVersion, undefined);
  assert.match(dry.metadata.uid!, /^[0-9a-f-]{36}$/);
  assert.equal(await w.count(), 0);
  assert.equal(w.admitted.length, 1);
  await w.create(w.object({ name: "a" }));
  const taken = await failure(w.create(w.object({ name: "a" }), DRY));
  assert.equal(taken.message, 'configmaps "a" already exists');
  assert.equal(after, 1);
});

test("Hooks: a failed create is undone, a good one is finished", async () => {
  const log: string[] = [];
  const w = world({
    hooks: {
      beginCreate: async (_ctx, object) => {
        log.push(`begin ${object.metadata.name}`);
        return { object, finish: async (isWritten) => void log.push(`finish ${isWritten}`) };
      },
      afterCreate: (object) => log.push(`after ${object.metadata.resourceVersion}`),
    },
  });
  await w.create(w.object({ name: "a" }));
  await failure(w.create(w.object({ name: "a" })));
  await failure(w.create(w.object({ name: "B" })));
  const steps = "begin a|finish true|after 2|begin a|finish false|begin B|finish false";
  assert.equal(log.join("|"), steps);
});

test("Admission refuses what the strategy accepted, and nothing is written", async () => {
  const w = world();
  const refuse = async () => {
    throw new RangeError("no");
  };
  const call = w.main.create(w.ctx(), w.object({ name: "a" }), refuse, DRY);
  await assert.rejects(call, /no/);
  assert.equal(await w.count(), 0);
});

test("Objects with a time to live go when it is over, and writes prolong it", async () => {
  const w = world({ ttlSeconds: () => 3600 });
  await w.create(w.object({ name: "a" }));
  w.advance(3_000_000);
  assert.equal(await w.count(), 1);
  await w.put(w.object({ name: "a" }, { data: { x: "y" } }));
  w.advance(3_000_000);
  assert.equal(await w.count(), 1);
  w.advance(7_300_000);
  assert.equal(await w.count(), 0);
});

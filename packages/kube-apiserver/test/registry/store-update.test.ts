import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResourceSpec } from "@quorate/kube-storage";
import { MODIFIED, plainStrategy, statusStrategyOf, withMetadata } from "@quorate/kube-storage";
import { configMaps } from "../../src/builtin/configmaps.ts";
import { DRY, failure, RegistryWorld, sourceOf } from "../support/registry-world.ts";

const KIND = { group: "", version: "v1", kind: "ConfigMap" };
const WIDGET = { group: "example.org", version: "v1", kind: "Widget" };

function world(changes: Partial<ResourceSpec> = {}): RegistryWorld {
  return new RegistryWorld({ ...configMaps(sourceOf(KIND)), ...changes });
}

/** A resource with spec, status, /status and /scale. */
function widgets(): RegistryWorld {
  const strategy = plainStrategy({
    kind: WIDGET,
    namespaced: true,
    hasStatus: true,
    countsGenerations: true,
  });
  return new RegistryWorld({
    ...configMaps(sourceOf(WIDGET)),
    kind: WIDGET,
    resource: "widgets",
    storagePrefix: "example.org/widgets",
    strategy,
    statusStrategy: statusStrategyOf(strategy),
    selectableFieldNames: [],
    scale: {
      specReplicas: ".spec.replicas",
      statusReplicas: ".status.replicas",
      labelSelector: ".status.selector",
    },
  });
}

test("An update with an old revision conflicts, one without a revision overwrites", async () => {
  const w = world();
  const first = await w.create(w.object({ name: "a" }, { data: { k: "1" } }));
  await w.put(w.object({ name: "a" }, { data: { k: "2" } }));
  const stale = await failure(w.put({ ...first, data: { k: "3" } } as typeof first));
  assert.equal(stale.httpStatus, 409);
  assert.equal(stale.code, "Conflict");
  assert.equal(
    stale.message,
    `Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply ` +
      "your changes to the latest version and try again",
  );
  assert.ok(stale.message.endsWith(MODIFIED));
  assert.deepEqual((await w.get("a"))["data"], { k: "2" });
  const bad = await failure(w.put(w.object({ name: "a", resourceVersion: "abc" })));
  assert.match(bad.message, /strconv.ParseUint: parsing "abc": invalid syntax/);
});

test("Kinds that demand a revision say so", async () => {
  const strategy = plainStrategy(
    { kind: KIND, namespaced: true },
    { allowUnconditionalUpdate: false },
  );
  const w = world({ strategy });
  await w.create(w.object({ name: "a" }));
  const refused = await failure(w.put(w.object({ name: "a" })));
  assert.equal(
    refused.message,
    'configmaps "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified ' +
      "for an update",
  );
});

test("An object that is not there: 404, or created where its kind allows that", async () => {
  const w = world();
  const missing = await failure(w.put(w.object({ name: "a" })));
  assert.equal(missing.message, 'configmaps "a" not found');
  const log: string[] = [];
  const strategy = plainStrategy({ kind: KIND, namespaced: true }, { allowCreateOnUpdate: true });
  const creating = world({
    strategy,
    hooks: {
      beginCreate: async (_ctx, object) => ({
        object,
        finish: async (isWritten) => void log.push(`finish ${isWritten}`),
      }),
      afterCreate: () => log.push("created"),
      afterUpdate: () => log.push("updated"),
    },
  });
  const made = await creating.put(creating.object({ name: "a" }));
  assert.equal(made.metadata.creationTimestamp, "2026-01-02T03:04:05Z");
  assert.match(made.metadata.uid!, /^[0-9a-f-]{36}$/);
  await creating.put(creating.object({ name: "a" }, { data: { a: "b" } }));
  assert.deepEqual(log, ["finish true", "created", "updated"]);
  const forced = await w.main.update(
    w.ctx(),
    "b",
    { make: async () => w.object({ name: "b" }) },
    w.admit,
    w.admit,
    true,
    DRY,
  );
  assert.equal(forced.created, true, "server-side apply creates");
  assert.equal(await w.count(), 0);
});

test("Metadata that no update changes", async () => {
  const w = world();
  const made = await w.create(w.object({ name: "a", generateName: "a-" }));
  const changed = await w.put(
    w.object({
      name: "a",
      generation: 9,
      creationTimestamp: "2020-01-01T00:00:00Z",
      labels: { x: "y" },
    }),
  );
  assert.equal(changed.metadata.uid, made.metadata.uid);
  assert.equal(changed.metadata.creationTimestamp, made.metadata.creationTimestamp);
  assert.equal(changed.metadata.generation, undefined);
  const other = await failure(w.put(w.object({ name: "a", uid: "other" })));
  assert.equal(other.httpStatus, 409);
  assert.match(
    other.message,
    /Precondition failed: UID in precondition: other, UID in object meta: [0-9a-f-]{36}$/,
  );
  const times = await failure(
    w.put(
      w.object({
        name: "a",
        deletionTimestamp: "2020-01-01T00:00:00Z",
        deletionGracePeriodSeconds: 3,
      }),
    ),
  );
  assert.equal(
    times.message,
    'ConfigMap "a" is invalid: [metadata.deletionTimestamp: Invalid value: ' +
      '"2020-01-01T00:00:00Z": field is immutable, metadata.deletionGracePeriodSeconds: Invalid ' +
      "value: 3: field is immutable]",
  );
});

test("Errors of metadata and of the kind come together, each once in the message", async () => {
  const w = world();
  await w.create(w.object({ name: "a" }));
  const labels = { "a b": "c" };
  const bad = await failure(w.put(w.object({ name: "a", labels }, { data: { "a/b": "c" } })));
  assert.equal(
    bad.message,
    'ConfigMap "a" is invalid: [metadata.labels: Invalid value: "a b": name part must consist ' +
      "of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric " +
      "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
      "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), data[a/b]: Invalid value: \"a/b\": a valid " +
      "config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or " +
      "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')]",
  );
});

test("A concurrent write in between makes the update start again", async () => {
  const w = world();
  await w.create(w.object({ name: "a" }, { data: { count: "0" } }));
  let calls = 0;
  const count = async (name: string, race: boolean): Promise<void> => {
    await w.main.update(
      w.ctx(),
      name,
      {
        make: async (_ctx, old) => {
          calls++;
          if (race && calls === 1) await count(name, false);
          const { count: value } = old!["data"] as { count: string };
          return { ...old!, data: { count: String(Number(value) + 1) } };
        },
      },
      w.admit,
      w.admit,
      false,
      { dryRun: false, fieldManager: "", fieldValidation: "Warn" },
    );
  };
  await count("a", true);
  assert.equal(calls, 3);
  assert.deepEqual((await w.get("a"))["data"], { count: "2" });
});

test("An update that changes nothing, or only times of managedFields, writes nothing", async () => {
  const w = world();
  const entry = { manager: "m", operation: "Update", apiVersion: "v1", fieldsV1: { "f:data": {} } };
  const timed = (time: string) => ({ name: "a", managedFields: [{ ...entry, time }] });
  const data = { data: { k: "v" } };
  const made = await w.create(w.object(timed("2026-01-01T00:00:00Z"), data));
  const same = await w.put(w.object(timed("2026-01-02T00:00:00Z"), data));
  assert.equal(same.metadata.resourceVersion, made.metadata.resourceVersion);
  const changed = await w.put(w.object(timed("2026-01-02T00:00:00Z"), { data: { k: "w" } }));
  assert.notEqual(changed.metadata.resourceVersion, made.metadata.resourceVersion);
  assert.equal(changed.metadata.managedFields?.[0].time, "2026-01-02T00:00:00Z");
});

test("A dry run of an update writes nothing and calls no after-hook", async () => {
  let after = 0;
  const w = world({ hooks: { afterUpdate: () => after++ } });
  const made = await w.create(w.object({ name: "a" }));
  const dry = await w.put(w.object({ name: "a" }, { data: { k: "v" } }), DRY);
  assert.deepEqual(dry["data"], { k: "v" });
  assert.equal(dry.metadata.resourceVersion, made.metadata.resourceVersion);
  assert.equal((await w.get("a"))["data"], undefined);
  assert.equal(after, 0);
  const missing = await failure(w.put(w.object({ name: "b" }), DRY));
  assert.equal(missing.message, 'configmaps "b" not found');
});

test("Generation counts changes of spec; status goes through /status only", async () => {
  const w = widgets();
  const made = await w.create(w.object({ name: "w" }, { spec: { a: 1 }, status: { b: 2 } }));
  assert.equal(made.metadata.generation, 1);
  assert.equal(made["status"], undefined);
  const labelled = await w.put(w.object({ name: "w", labels: { x: "y" } }, { spec: { a: 1 } }));
  assert.equal(labelled.metadata.generation, 1);
  const next = await w.put(w.object({ name: "w" }, { spec: { a: 2 }, status: { b: 3 } }));
  assert.equal(next.metadata.generation, 2);
  assert.equal(next["status"], undefined);
  const status = w.subresources["status"];
  const sent = w.object({ name: "w", labels: { z: "z" } }, { spec: { a: 9 }, status: { b: 4 } });
  const ready = await w.put(sent, undefined, status);
  assert.deepEqual([ready["spec"], ready["status"]], [{ a: 2 }, { b: 4 }]);
  assert.equal(ready.metadata.generation, 2);
  assert.deepEqual(ready.metadata.labels, { z: "z" }, "/status changes metadata");
  const missing = await failure(w.put(w.object({ name: "none" }), undefined, status));
  assert.equal(missing.message, 'widgets.example.org "none" not found');
});

test("/scale shows and changes replicas", async () => {
  const w = widgets();
  const scale = w.subresources["scale"];
  await w.create(w.object({ name: "w" }, { spec: { a: 1 } }));
  const none = await failure(scale.get!(w.ctx(), "w", { resourceVersion: "" }));
  assert.equal(
    none.message,
    'Internal error occurred: the spec replicas field ".spec.replicas" does not exist',
  );
  const empty = await failure(
    scale.update!(w.ctx(), "w", { make: async (_ctx, old) => old! }, w.admit, w.admit, false, DRY),
  );
  assert.equal(empty.message, 'the spec replicas field ".spec.replicas" cannot be empty');
  const sent = { apiVersion: "autoscaling/v1", kind: "Scale", metadata: { name: "w" } };
  const scaled = await w.put({ ...sent, spec: { replicas: 3 } }, undefined, scale);
  assert.deepEqual([scaled.kind, scaled["spec"]], ["Scale", { replicas: 3 }]);
  const object = await w.get("w");
  assert.deepEqual(object["spec"], { a: 1, replicas: 3 });
  assert.equal(object.metadata.generation, 2);
  const status = { replicas: 2, selector: "app=w" };
  await w.put(withMetadata({ ...object, status }, {}), undefined, w.subresources["status"]);
  const got = await scale.get!(w.ctx(), "w", { resourceVersion: "" });
  assert.deepEqual(got.object()["status"], { replicas: 2, selector: "app=w" });
  assert.equal(JSON.parse(new TextDecoder().decode(got.json())).kind, "Scale");
  const stale = { ...sent, metadata: { name: "w", resourceVersion: "2" }, spec: { replicas: 4 } };
  assert.equal((await failure(w.put(stale, undefined, scale))).httpStatus, 409);
});

test("Hooks of updates and deletions: undone where they fail, finished where they succeed", async () => {
  const log: string[] = [];
  let refuses = false;
  const begin = (what: string) => {
    log.push(what);
    if (refuses) throw new RangeError("refused");
  };
  const w = world({
    hooks: {
      beginUpdate: async (_ctx, object, old) => {
        begin(`update ${old.metadata.resourceVersion} ${object.metadata.resourceVersion}`);
        return { object, finish: async (isWritten) => void log.push(`finish ${isWritten}`) };
      },
      afterUpdate: () => log.push("updated"),
      beginDelete: async () => begin("delete"),
      afterDelete: () => void log.push("deleted"),
    },
  });
  await w.create(w.object({ name: "a" }));
  await w.put(w.object({ name: "a" }, { data: { k: "v" } }));
  await failure(w.put(w.object({ name: "a" }, { data: { "/": "v" } })));
  refuses = true;
  await assert.rejects(w.put(w.object({ name: "a" })), /refused/);
  await assert.rejects(w.delete("a"), /refused/);
  refuses = false;
  await w.delete("a");
  assert.deepEqual(log, [
    "update 2 2",
    "finish true",
    "updated",
    "update 3 3",
    "finish false",
    "update 3 3",
    "delete",
    "delete",
    "deleted",
  ]);
  assert.equal(await w.count(), 0);
});

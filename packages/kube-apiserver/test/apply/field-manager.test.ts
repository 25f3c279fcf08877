/** Who owns which fields: the cases that people meet. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@quorate/host";
import {
  ApiError,
  type KubeObject,
  keepManagedTimes,
  MAX_FIELD_MANAGER_BYTES,
} from "@quorate/kube-storage";
import { FieldManager } from "../../src/apply/field-manager.ts";
import { managerOf } from "../../src/handlers/write-options.ts";
import { THINGS } from "./support/thing.ts";

const THING = THINGS[0].v1;
const manager = new FieldManager({ kind: THING.kind, schema: THING });
const NOW = Date.parse("2026-11-22T10:00:00Z");
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

interface Spec {
  readonly [field: string]: unknown;
}

function thing(spec: Spec, metadata: Readonly<Record<string, unknown>> = {}): KubeObject {
  return {
    apiVersion: "example.org/v1",
    kind: "Thing",
    metadata: { name: "a", namespace: "default", ...metadata },
    spec,
  };
}

/** The object as it is after a create. */
function stored(object: KubeObject): KubeObject {
  return { ...object, metadata: { ...object.metadata, uid: "1" } };
}

function apply(
  live: KubeObject | undefined,
  object: KubeObject,
  name: string,
  force = false,
): Promise<KubeObject> {
  return manager.apply(live, object, name, "", force, NOW);
}

/** What each manager owns, as JSON. */
function ownersOf(object: KubeObject): Readonly<Record<string, string>> {
  const entries = object.metadata.managedFields ?? [];
  return Object.fromEntries(
    entries.map(({ manager: name, fieldsV1 }) => [name, JSON.stringify(fieldsV1)]),
  );
}

async function created(spec: Spec): Promise<KubeObject> {
  return stored(await manager.update(undefined, thing(spec), "kubectl-create", "", NOW));
}

test("a create makes an entry, as Kubernetes writes it", async () => {
  const object = await created({ replicas: 1, containers: [{ name: "web", image: "a" }] });
  assert.equal(
    JSON.stringify(object.metadata.managedFields),
    JSON.stringify([
      {
        manager: "kubectl-create",
        operation: "Update",
        apiVersion: "example.org/v1",
        time: "2026-11-22T10:00:00Z",
        fieldsType: "FieldsV1",
        fieldsV1: {
          "f:spec": {
            ".": {},
            "f:containers": {
              ".": {},
              'k:{"name":"web"}': { ".": {}, "f:image": {}, "f:name": {} },
            },
            "f:replicas": {},
          },
        },
      },
    ]),
  );
});

test("a conflict names the field, its manager and how that wrote it", async () => {
  const live = await created({ replicas: 1, containers: [{ name: "web", image: "a" }] });
  await assert.rejects(apply(live, thing({ replicas: 2 }), "me"), (error: unknown) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.httpStatus, 409);
    assert.equal(error.code, "Conflict");
    assert.equal(
      error.message,
      'Apply failed with 1 conflict: conflict with "kubectl-create" using example.org/v1: .spec.replicas',
    );
    assert.deepEqual(error.details, {
      causes: [
        {
          reason: "FieldManagerConflict",
          message: 'conflict with "kubectl-create" using example.org/v1',
          field: ".spec.replicas",
        },
      ],
    });
    return true;
  });
  const both = thing({ replicas: 2, containers: [{ name: "web", image: "b" }] });
  await assert.rejects(apply(live, both, "me"), {
    message:
      'Apply failed with 2 conflicts: conflicts with "kubectl-create" using example.org/v1:\n' +
      '- .spec.replicas\n- .spec.containers[name="web"].image',
  });
});

test("force takes fields over, and equal values are shared", async () => {
  const live = await created({ replicas: 1, text: "a" });
  const forced = await apply(live, thing({ replicas: 2, text: "a" }), "me", true);
  assert.deepEqual(ownersOf(forced), {
    me: '{"f:spec":{"f:replicas":{},"f:text":{}}}',
    "kubectl-create": '{"f:spec":{".":{},"f:text":{}}}',
  });
  assert.deepEqual(forced["spec"], { replicas: 2, text: "a" });
});

test("what a manager no longer applies goes, unless another owns it", async () => {
  const one = stored(await apply(undefined, thing({ text: "a", tags: ["x", "y"] }), "one"));
  const two = await apply(one, thing({ text: "a" }), "two");
  const less = await apply(two, thing({ tags: ["y"] }), "one");
  assert.deepEqual(less["spec"], { text: "a", tags: ["y"] });
  assert.deepEqual(ownersOf(less), {
    one: '{"f:spec":{"f:tags":{"v:\\"y\\"":{}}}}',
    two: '{"f:spec":{"f:text":{}}}',
  });
});

test("objects from before the first apply get an entry of their own", async () => {
  const live = stored(thing({ replicas: 1 }));
  const untouched = await manager.update(live, live, "someone", "", NOW);
  assert.equal(untouched.metadata.managedFields, undefined);
  await assert.rejects(apply(live, thing({ replicas: 2 }), "me"), {
    message: /conflict with "before-first-apply" using example.org\/v1: .spec.replicas$/,
  });
});

test("kubectl goes over from its client-side apply without conflicts", async () => {
  const applied = thing({ replicas: 1, text: "a" });
  const annotations = { [LAST_APPLIED]: JSON.stringify(applied) };
  const object = thing({ replicas: 1, text: "a" }, { annotations });
  const live = stored(
    await manager.update(undefined, object, "kubectl-client-side-apply", "", NOW),
  );
  const change = thing({ replicas: 2, text: "a" });
  const after = await apply(live, change, "kubectl");
  assert.equal((after["spec"] as Spec)["replicas"], 2);
  const text = after.metadata.annotations?.[LAST_APPLIED] ?? "";
  assert.deepEqual(JSON.parse(text), change);
  await assert.rejects(apply(live, change, "another"), { message: /Apply failed with 1 conflict/ });
  // A field that was changed since is not kubectl's any more.
  const changed = await manager.update(
    live,
    { ...live, spec: { replicas: 5, text: "a" } },
    "scaler",
    "",
    NOW,
  );
  await assert.rejects(apply(changed, change, "kubectl"), { message: /conflict with "scaler"/ });
});

test("an apply that changes nothing keeps the object and its times", async () => {
  const first = stored(await apply(undefined, thing({ text: "a" }), "me"));
  const again = await manager.apply(first, thing({ text: "a" }), "me", "", false, NOW + 60_000);
  assert.deepEqual(again, first);
});

test("only a changed time is no change", async () => {
  const live = await created({ text: "a" });
  const [entry] = live.metadata.managedFields!;
  const later = { ...entry, time: "2026-11-22T11:00:00Z" };
  const object = { ...live, metadata: { ...live.metadata, managedFields: [later] } };
  assert.deepEqual(keepManagedTimes(object, live), live);
  const other = { ...object, spec: { text: "b" } };
  assert.equal(keepManagedTimes(other, live), other);
});

test("a subresource has an entry of its own and resets fields", async () => {
  const status = new FieldManager({
    kind: THING.kind,
    schema: THING,
    resetFields: { "f:spec": {} },
  });
  const live = await created({ text: "a" });
  const object = { ...live, spec: { text: "b" }, status: { phase: "on" } };
  const after = await status.update(live, object, "controller", "status", NOW);
  const entry = after.metadata.managedFields?.find((each) => each.manager === "controller");
  assert.equal(entry?.subresource, "status");
  assert.deepEqual(entry?.fieldsV1, { "f:status": { ".": {}, "f:phase": {} } });
});

test("more than ten updaters share an entry", async () => {
  let live = await created({ replicas: 0 });
  for (let at = 0; at < 15; at++) {
    const object = {
      ...live,
      spec: { ...(live["spec"] as Spec), points: { [`p${at}`]: { name: "x" } } },
    };
    const points = { ...((live["spec"] as Spec)["points"] as object), ...object.spec.points };
    const next = { ...live, spec: { ...object.spec, points } };
    live = await manager.update(live, next, `m${at}`, "", NOW + at * 1000);
  }
  const names = live.metadata.managedFields!.map((entry) => entry.manager);
  assert.equal(names.length, 10);
  assert.equal(names[0], "ancient-changes");
  assert.deepEqual(names.at(-1), "m14");
  const owned = JSON.stringify(live.metadata.managedFields);
  for (let at = 0; at < 15; at++) assert.ok(owned.includes(`"f:p${at}"`), `p${at} has an owner`);
});

test("an empty list resets the managers; malformed entries count as none", async () => {
  const live = await created({ text: "a" });
  for (const managedFields of [[], [{}]]) {
    const object = { ...live, metadata: { ...live.metadata, managedFields } };
    const after = await manager.update(live, object, "me", "", NOW);
    assert.equal(after.metadata.managedFields, undefined);
  }
  const malformed = { ...live, metadata: { ...live.metadata, managedFields: [{ manager: "x" }] } };
  const after = await manager.update(live, malformed, "me", "", NOW);
  assert.deepEqual(after.metadata.managedFields, live.metadata.managedFields);
});

test("an object of another kind, with managedFields or unknown fields is not applied", async () => {
  const wrong = { ...thing({}), kind: "Other" };
  await assert.rejects(apply(undefined, wrong, "me"), {
    httpStatus: 400,
    message: "invalid object type: example.org/v1, Kind=Other",
  });
  await assert.rejects(apply(undefined, thing({}, { managedFields: [] }), "me"), {
    httpStatus: 400,
    message: "metadata.managedFields must be nil",
  });
  await assert.rejects(apply(undefined, thing({ other: 1 }), "me"), {
    httpStatus: 500,
    message:
      "failed to create typed patch object (default/a; example.org/v1, Kind=Thing): " +
      ".spec.other: field not declared in schema",
  });
});

test("deep objects and long lists of errors are bounded", async () => {
  let deep: unknown = 1;
  for (let level = 0; level < 1100; level++) deep = { a: deep };
  await assert.rejects(apply(undefined, thing({ free: deep }), "me"), { httpStatus: 400 });
  const numbers = Array.from({ length: 150 }, (_, at) => [`k${at}`, 1]);
  const containers = [{ name: "a", limits: Object.fromEntries(numbers) }];
  await assert.rejects(apply(undefined, thing({ containers }), "me"), (error: Error) => {
    assert.equal(error.message.split("\n").length, 1 + 100);
    return true;
  });
});

test("entries of versions that are not served any more go", async () => {
  const live = await created({ text: "a" });
  const [entry] = live.metadata.managedFields!;
  const old = { ...entry, manager: "old", apiVersion: "example.org/v0" };
  const object = { ...live, metadata: { ...live.metadata, managedFields: [entry, old] } };
  const after = await manager.update(object, { ...object, spec: { text: "b" } }, "me", "", NOW);
  assert.deepEqual(Object.keys(ownersOf(after)), ["kubectl-create", "me"]);
});

test("hostile names are fields like others", async () => {
  const labels = JSON.parse('{"__proto__": "x", "constructor": "y"}');
  const object = await apply(undefined, thing({}, { labels }), "me");
  assert.ok(Object.hasOwn(object.metadata.labels!, "__proto__"));
  assert.match(ownersOf(object)["me"], /"f:__proto__"/);
  assert.equal(Object.getPrototypeOf(object.metadata.labels), Object.prototype);
});

test("the manager's name comes from the option or the User-Agent", () => {
  assert.equal(managerOf("me", "kubectl/v1"), "me");
  assert.equal(managerOf("", "kubectl/v1.36.3 (linux/amd64)"), "kubectl");
  assert.equal(managerOf("", "a\u0000b\tc/1"), "abc");
  assert.equal(managerOf("", ""), "");
  assert.equal(managerOf("", "é".repeat(100)), "é".repeat(MAX_FIELD_MANAGER_BYTES / 2));
});

test("other work runs between the steps of a long write", async () => {
  let turns = 0;
  let time = 0;
  // Each look at this clock is a slice later.
  const clock = {
    monotonicMs: () => (time += 10),
    endOfTurn: (run: () => void) => {
      turns++;
      queueMicrotask(run);
    },
  };
  const turning = { turns: new Turns(clock) };
  const sliced = new FieldManager({ kind: THING.kind, schema: THING, clock: turning });
  const live = stored(await sliced.apply(undefined, thing({ text: "a" }), "me", "", false, NOW));
  turns = 0;
  const after = await sliced.apply(live, thing({ replicas: 1 }), "me", "", false, NOW);
  assert.ok(turns >= 10, `${turns} turns`);
  assert.deepEqual(after["spec"], { replicas: 1 });
});

test("long lists take linear time", async () => {
  const containers = Array.from({ length: 5000 }, (_, at) => ({ name: `c${at}`, image: "a" }));
  const live = stored(await apply(undefined, thing({ containers }), "me"));
  const reversed = containers.toReversed().map((each) => ({ ...each, image: "b" }));
  const after = await apply(live, thing({ containers: reversed }), "me");
  assert.deepEqual((after["spec"] as Spec)["containers"], reversed);
});

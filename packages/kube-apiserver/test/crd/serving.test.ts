/** Definitions are served, change, and go; their status follows. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { ApiError, KubeObject } from "@quorate/kube-storage";
import { CrdWorld, conditionStatus, until } from "../support/crd-world.ts";
import { definition } from "./cases.ts";

const SPEC = {
  type: "object",
  properties: {
    spec: {
      type: "object",
      properties: {
        color: { type: "string", default: "red" },
        replicas: { type: "integer" },
        "a.b": { type: "string" },
      },
    },
    status: { type: "object", properties: { replicas: { type: "integer" } } },
  },
};

function version(name: string, more: object = {}) {
  return { name, served: true, storage: name === "v1", schema: { openAPIV3Schema: SPEC }, ...more };
}

function object(kind: string, name: string, spec: object, more: object = {}) {
  const apiVersion = "recorded.example/v1";
  return { apiVersion, kind, metadata: { name }, spec, ...more };
}

async function refusal(promise: Promise<unknown>): Promise<ApiError> {
  return await promise.then(
    () => assert.fail("it was accepted"),
    (error: ApiError) => error,
  );
}

describe("custom resources", () => {
  let world: CrdWorld;
  before(async () => {
    world = await CrdWorld.open();
  });
  after(() => world.close());

  test("a definition is served before it is established", async () => {
    const crd = await world.defineSchema("widgets", SPEC);
    assert.equal(conditionStatus(crd, "NamesAccepted"), "True");
    assert.deepEqual((crd["status"] as { storedVersions: unknown }).storedVersions, ["v1"]);
    const made = await world.create("widgets", object("Widgets", "one", { replicas: 2, extra: 1 }));
    assert.deepEqual(made["spec"], { replicas: 2, color: "red" });
    assert.equal(made.metadata.generation, 1);
    assert.equal((await world.list("widgets")).length, 1);
  });

  test("a new definition has the status of Kubernetes' new ones", async () => {
    const crd = definition("news", SPEC as never);
    const made = await world.create("customresourcedefinitions", crd, "v1", "");
    assert.deepEqual(made["status"], {
      conditions: null,
      acceptedNames: { plural: "", kind: "" },
      storedVersions: ["v1"],
    });
    await world.untilEstablished("news.recorded.example");
  });

  test("a definition changes as Kubernetes allows it", async () => {
    const crd = await world.defineSchema("fixed", SPEC, {
      versions: [version("v1"), version("v2")],
    });
    const spec = crd["spec"] as { names: object; versions: { name: string; storage: boolean }[] };
    const put = async (changes: object) => {
      const { resourceVersion } = (await world.crd("fixed.recorded.example")).metadata;
      const metadata = { ...crd.metadata, resourceVersion };
      return world.put("customresourcedefinitions", {
        ...crd,
        metadata,
        spec: { ...spec, ...changes },
      });
    };
    const refused = async (changes: object) => (await refusal(put(changes))).details?.causes?.[0];
    const immutable = (field: string, value: string) => ({
      reason: "FieldValueInvalid",
      message: `Invalid value: "${value}": field is immutable`,
      field,
    });
    assert.deepEqual(await refused({ scope: "Cluster" }), immutable("spec.scope", "Cluster"));
    const names = { ...spec.names, kind: "Other" };
    assert.deepEqual(await refused({ names }), immutable("spec.names.kind", "Other"));
    const versions = spec.versions.map((one) => ({ ...one, storage: one.name === "v2" }));
    const moved = await put({ versions });
    assert.deepEqual((moved["status"] as { storedVersions: unknown }).storedVersions, ["v1", "v2"]);
    assert.equal(moved.metadata.generation, 2);
    const without = await refused({ versions: versions.slice(1) });
    assert.match(
      without?.message ?? "",
      /"v1": missing from spec.versions; v1 was previously a stor/,
    );
  });

  test("unknown fields are reported", () => {
    const served = world.find("widgets")!;
    const { strictErrors } = served.decode(object("Widgets", "x", { b: 1 }, { c: [] }));
    assert.deepEqual(strictErrors, ['unknown field "c"', 'unknown field "spec.b"']);
  });

  test("an invalid object is refused with all errors", async () => {
    const error = await refusal(
      world.create("widgets", object("Widgets", "bad", { replicas: "2" })),
    );
    assert.equal(
      error.message,
      'Widgets.recorded.example "bad" is invalid: spec.replicas: Invalid value: "string": ' +
        'spec.replicas in body must be of type integer: "string"',
    );
    assert.equal(error.httpStatus, 422);
  });

  test("the status is changed by /status alone, and counts no generation", async () => {
    await world.defineSchema("gadgets", SPEC, {
      versions: [version("v1", { subresources: { status: {} } })],
    });
    const status = { replicas: 5 };
    const made = await world.create("gadgets", object("Gadgets", "g", {}, { status }));
    assert.equal(made["status"], undefined);
    const put = await world.put("gadgets", { ...made, spec: { color: "blue" }, status });
    assert.equal(put["status"], undefined);
    assert.equal(put.metadata.generation, 2);
    const changed = await world.put("gadgets", { ...put, spec: {}, status }, "v1", "status");
    assert.deepEqual([changed["spec"], changed["status"]], [{ color: "blue" }, status]);
    assert.equal(changed.metadata.generation, 2);
    const error = await refusal(
      world.put("gadgets", { ...changed, status: { replicas: "x" } }, "v1", "status"),
    );
    assert.match(error.message, /status\.replicas: Invalid value: "string": replicas in body must/);
  });

  test("/scale reads and writes the replicas", async () => {
    const scale = {
      specReplicasPath: ".spec.replicas",
      statusReplicasPath: ".status.replicas",
      labelSelectorPath: ".status.selector",
    };
    await world.defineSchema("scalers", SPEC, {
      versions: [version("v1", { subresources: { scale } })],
    });
    await world.create(
      "scalers",
      object("Scalers", "s", { replicas: 3 }, { status: { replicas: 1 } }),
    );
    const found = await world.get("scalers", "s", "v1", "scale");
    assert.equal(found.kind, "Scale");
    assert.deepEqual([found["spec"], found["status"]], [{ replicas: 3 }, { replicas: 1 }]);
    await world.put("scalers", { ...found, spec: { replicas: 7 } }, "v1", "scale");
    const after = await world.get("scalers", "s");
    assert.deepEqual(after["spec"], { color: "red", replicas: 7 });
    const error = await refusal(world.create("scalers", object("Scalers", "t", { replicas: -1 })));
    assert.match(
      error.message,
      /spec.replicas: Invalid value: -1: should be a non-negative integer/,
    );
  });

  test("several versions are one object", async () => {
    const v2 = version("v2", {
      schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
    });
    await world.defineSchema("things", SPEC, { versions: [version("v1"), v2] });
    await world.create("things", object("Things", "t", { color: "blue" }));
    const seen = await world.watch("things", "v2");
    const other = await world.get("things", "t", "v2");
    assert.equal(other.apiVersion, "recorded.example/v2");
    const put = await world.put("things", { ...other, spec: { color: "green", gone: 1 } }, "v2");
    assert.deepEqual(put["spec"], { color: "green" });
    assert.deepEqual((await world.get("things", "t"))["spec"], { color: "green" });
    await until(() => seen.events.find((event) => event.type === "MODIFIED"));
    const versions = seen.events.map((event) => event.object.object().apiVersion);
    assert.ok(
      versions.every((one) => one === "recorded.example/v2"),
      String(versions),
    );
    seen.stop();
  });

  test("a version that is dropped after its objects moved on", async () => {
    const moved = (name: string, storage: boolean) => version(name, { storage });
    const crd = await world.defineSchema("moves", SPEC, {
      versions: [moved("v1", true), moved("v2", false)],
    });
    const before = await world.create("moves", object("Moves", "m", { replicas: 1 }));
    const change = async (versions: unknown) => {
      const present = await world.crd(crd.metadata.name!);
      const spec = { ...(present["spec"] as object), versions };
      await world.put("customresourcedefinitions", { ...present, spec });
    };
    await change([moved("v1", false), moved("v2", true)]);
    await until(async () => {
      const again = { ...before, apiVersion: "recorded.example/v2", spec: { replicas: 2 } };
      const { resourceVersion } = (await world.get("moves", "m", "v2")).metadata;
      const metadata = { ...again.metadata, resourceVersion };
      const put = await world.put("moves", { ...again, metadata }, "v2");
      return put.apiVersion === "recorded.example/v2" ? put : undefined;
    });
    const present = await world.crd(crd.metadata.name!);
    const status = { ...(present["status"] as object), storedVersions: ["v2"] };
    await world.put("customresourcedefinitions", { ...present, status }, "v1", "status");
    await change([moved("v2", true)]);
    await until(() => (world.find("moves") === undefined ? true : undefined));
    // Its history has objects of the version that is gone.
    const listed = await world.list("moves", "v2");
    assert.deepEqual(
      listed.map(({ apiVersion, spec }) => [apiVersion, spec]),
      [["recorded.example/v2", { color: "red", replicas: 2 }]],
    );
    const served = world.find("moves", "v2")!;
    assert.equal(served.inVersion?.("recorded.example/v2").schema?.kind.version, "v2");
    assert.throws(() => served.inVersion?.("recorded.example/v1"), {
      message: "request to convert CR to an invalid group/version: recorded.example/v1",
    });
  });

  test("a text may be empty where minLength is 0", async () => {
    const schema = (minLength: number) => ({
      type: "object",
      properties: { text: { type: "string", minLength } },
    });
    await world.defineSchema("empties", schema(0));
    await world.create("empties", { ...object("Empties", "e", {}), text: "" });
    await world.defineSchema("filleds", schema(1));
    const error = await refusal(
      world.create("filleds", { ...object("Filleds", "f", {}), text: "" }),
    );
    assert.match(error.message, /text in body should be at least 1 chars long/);
  });

  test("tables have the columns of the version", async () => {
    const columns = [
      { name: "Color", type: "string", jsonPath: ".spec.color" },
      { name: "Replicas", type: "integer", jsonPath: ".spec.replicas", priority: 1 },
      { name: "Ready", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
      { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
    ];
    await world.defineSchema("tables", SPEC, {
      versions: [version("v1", { additionalPrinterColumns: columns })],
    });
    const table = world.find("tables")!.table!;
    assert.deepEqual(
      table.columns.map(({ name, priority }) => [name, priority]),
      [
        ["Name", 0],
        ["Color", 0],
        ["Replicas", 1],
        ["Ready", 0],
        ["Age", 0],
      ],
    );
    const shown = object(
      "Tables",
      "t",
      { color: "x", replicas: 2 },
      {
        status: {
          conditions: [
            { type: "A", status: "1" },
            { type: "Ready", status: "True" },
          ],
        },
      },
    ) as unknown as KubeObject;
    const created = {
      ...shown,
      metadata: { name: "t", creationTimestamp: "2026-01-01T00:00:00Z" },
    };
    const cells = table.cells(created, Date.UTC(2026, 0, 1, 0, 5));
    assert.deepEqual(cells, ["t", "x", 2, "True", "5m"]);
  });

  test("objects are selected by the fields of the definition", async () => {
    await world.defineSchema("fields", SPEC, {
      versions: [version("v1", { selectableFields: [{ jsonPath: ".spec.color" }] })],
    });
    await world.create("fields", object("Fields", "a", { color: "red" }));
    await world.create("fields", object("Fields", "b", { color: "blue" }));
    const { parseFieldSelector } = await import("@quorate/kube-storage");
    const names = async (text: string) => {
      const found = await world.list("fields", "v1", { field: parseFieldSelector(text) });
      return found.map(({ metadata }) => metadata.name);
    };
    assert.deepEqual(await names("spec.color=blue"), ["b"]);
    assert.deepEqual(await names("spec.color!=blue,metadata.name=a"), ["a"]);
    const error = await refusal(names("spec.replicas=1"));
    assert.equal(error.message, "field label not supported: spec.replicas");
  });

  test("a changed definition ends watches and applies at once", async () => {
    const crd = await world.defineSchema("changes", SPEC);
    await world.create("changes", object("Changes", "c", { replicas: 1 }));
    const seen = await world.watch("changes");
    const schema = structuredClone(SPEC) as typeof SPEC;
    Object.assign(schema.properties.spec.properties, { size: { type: "string", default: "L" } });
    const changed = {
      ...crd,
      spec: {
        ...(crd["spec"] as object),
        versions: [version("v1", { schema: { openAPIV3Schema: schema } })],
      },
    };
    await world.put("customresourcedefinitions", changed);
    await until(() => seen.isOver() || undefined);
    const found = await until(async () => {
      const one = await world.get("changes", "c");
      return "size" in (one["spec"] as object) ? one : undefined;
    });
    assert.deepEqual(found["spec"], { color: "red", replicas: 1, size: "L" });
  });

  test("a name that another definition has is refused until it is free", async () => {
    await world.defineSchema("firsts", SPEC, {
      names: { plural: "firsts", kind: "First", shortNames: ["ft"] },
    });
    const second = definition("seconds", SPEC as never, {
      names: { plural: "seconds", kind: "First", shortNames: ["ft"] },
    });
    await world.create("customresourcedefinitions", second, "v1", "");
    const crd = await until(async () => {
      const one = await world.crd("seconds.recorded.example");
      return conditionStatus(one, "NamesAccepted") === "False" ? one : undefined;
    });
    const { conditions } = crd["status"] as {
      conditions: { type: string; reason: string; message: string }[];
    };
    const naming = conditions.find((one) => one.type === "NamesAccepted")!;
    assert.deepEqual(
      [naming.reason, naming.message],
      ["ListKindConflict", '"FirstList" is already in use'],
    );
    assert.equal(world.find("seconds"), undefined);
    await world.delete("customresourcedefinitions", "firsts.recorded.example");
    await world.untilEstablished("seconds.recorded.example");
  });

  test("a deleted definition takes its objects with it", async () => {
    await world.defineSchema("doomed", SPEC);
    for (const name of ["a", "b", "c"]) await world.create("doomed", object("Doomed", name, {}));
    const held = object("Doomed", "held", {}) as { metadata: object };
    Object.assign(held.metadata, { finalizers: ["example.com/hold"] });
    await world.create("doomed", held);
    await world.delete("customresourcedefinitions", "doomed.recorded.example");
    const left = await until(async () => {
      const all = await world.list("doomed");
      return all.length === 1 ? all[0] : undefined;
    });
    assert.equal(left.metadata.name, "held");
    const error = await refusal(world.create("doomed", object("Doomed", "late", {})));
    assert.match(
      error.message,
      /create not allowed while custom resource definition is terminating/,
    );
    const { finalizers: _, ...metadata } = left.metadata;
    await world.put("doomed", { ...left, metadata });
    await until(() => (world.find("doomed") === undefined ? true : undefined));
    const gone = await until(async () => {
      const failed = await world.crd("doomed.recorded.example").catch((one: ApiError) => one);
      return "httpStatus" in failed ? (failed as ApiError) : undefined;
    });
    assert.equal(gone.httpStatus, 404);
  });

  test("a second server on the same cluster serves the same", async () => {
    const other = await CrdWorld.open({ cluster: world.cluster });
    try {
      assert.ok(other.find("widgets"));
      await other.defineSchema("shared", SPEC);
      await until(() => world.find("shared"));
      await until(() => other.find("shared"));
      await world.create("shared", object("Shared", "s", {}));
      assert.equal((await other.get("shared", "s")).metadata.name, "s");
      await world.delete("customresourcedefinitions", "shared.recorded.example");
      await until(() => (other.find("shared") === undefined ? true : undefined));
    } finally {
      await other.close();
    }
  });
});

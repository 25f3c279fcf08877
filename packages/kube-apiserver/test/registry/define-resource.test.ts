/** A resource defined in TypeScript: its types, schema, strategy, hooks, table and subresources. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { invalidValue, parseFieldSelector } from "@quorate/kube-storage";
import { defineResource, type ObjectOf } from "../../src/typed/define-resource.ts";
import {
  boolean,
  integer,
  intOrString,
  list,
  map,
  number,
  oneOf,
  optional,
  record,
  text,
} from "../../src/typed/shapes.ts";
import { failure, RegistryWorld, START_MS } from "../support/registry-world.ts";

const log: string[] = [];

const widgets = defineResource({
  group: "example.org",
  version: "v1",
  kind: "Widget",
  shortNames: ["wd"],
  fields: {
    spec: record({
      size: integer({ minimum: 1, default: 3 }),
      color: oneOf(["red", "blue"]),
      name: optional(text({ pattern: "^[a-z]+$", maxLength: 5 })),
      parts: optional(list(record({ id: text(), weight: optional(number()) }), { maxItems: 2 })),
      extra: optional(map(boolean())),
      port: optional(intOrString()),
    }),
    status: optional(record({ ready: optional(boolean()), replicas: optional(integer()) })),
  },
  scale: { specReplicas: ".spec.size", statusReplicas: ".status.replicas" },
  columns: [
    { name: "Size", cell: ({ spec }) => spec.size },
    { name: "Ready", wide: true, cell: ({ status }) => status?.ready ?? false },
  ],
  selectableFields: { "spec.color": ({ spec }) => spec.color },
  strategy: {
    validate: (_ctx, { spec }) =>
      spec.size > 9 && spec.color === "red"
        ? [invalidValue("spec.size", spec.size, "red widgets are small")]
        : [],
    validateUpdate: (_ctx, { spec }, old) =>
      spec.color === old.spec.color
        ? []
        : [invalidValue("spec.color", spec.color, "field is immutable")],
    warningsOnCreate: (_ctx, { spec }) => (spec.size > 5 ? ["spec.size: this is large"] : []),
  },
  hooks: { afterCreate: (object) => void log.push(`created ${object.metadata.name}`) },
});

type Widget = ObjectOf<typeof widgets>;

const world = (): RegistryWorld => new RegistryWorld(widgets.spec);

function sent(w: RegistryWorld, name: string, spec: object, more: object = {}): Widget {
  const decoded = widgets.source.decode(w.object({ name }, { spec, ...more }));
  return decoded.object as Widget;
}

test("Clients' objects are pruned and defaulted", async () => {
  const w = world();
  const { object, strictErrors } = widgets.source.decode(
    w.object({ name: "a" }, { spec: { color: "red", bogus: 1 }, other: 2 }),
  );
  assert.deepEqual(object["spec"], { color: "red", size: 3 });
  assert.equal(object["other"], undefined);
  assert.deepEqual(strictErrors.toSorted(), [
    'unknown field "other"',
    'unknown field "spec.bogus"',
  ]);
  const made = (await w.create(object)) as Widget;
  const size: number = made.spec.size;
  const color: "red" | "blue" = made.spec.color;
  assert.deepEqual([size, color, made.metadata.generation], [3, "red", 1]);
  assert.deepEqual(log, ["created a"]);
  const key = "/example.org/widgets/default/a";
  assert.equal((await w.storage.get(key))?.object().apiVersion, "example.org/v1");
});

test("The schema is checked first, then the program's own rules", async () => {
  const w = world();
  const refused = async (spec: object): Promise<string> =>
    (await failure(w.create(sent(w, "a", spec)))).message.slice(
      'Widget.example.org "a" is invalid: '.length,
    );
  assert.equal(
    await refused({ color: "green" }),
    'spec.color: Unsupported value: "green": supported values: "red", "blue"',
  );
  assert.equal(await refused({}), "spec.color: Required value");
  assert.match(await refused({ color: "red", size: 0 }), /^spec.size: Invalid value: 0: /);
  assert.match(await refused({ color: "red", name: "A" }), /^spec.name: Invalid value: "A": /);
  const parts = [{ id: "1" }, { id: "2" }, { id: "3" }];
  assert.match(await refused({ color: "red", parts }), /^spec.parts: Too many: 3: /);
  assert.equal(
    await refused({ color: "red", size: 10 }),
    "spec.size: Invalid value: 10: red widgets are small",
  );
  await w.create(sent(w, "a", { color: "blue", size: 10, port: "http", extra: { x: true } }));
  assert.deepEqual(w.warnings, ["spec.size: this is large"]);
  const old = (await w.get("a")) as Widget;
  const changed = await failure(w.put({ ...old, spec: { ...old.spec, color: "red", size: 1 } }));
  assert.match(changed.message, /spec.color: Invalid value: "red": field is immutable$/);
  const unversioned = await failure(w.put(sent(w, "a", { color: "blue" })));
  assert.match(
    unversioned.message,
    /metadata.resourceVersion: Invalid value: 0: must be specified/,
  );
});

test("/status, /scale, selection and the table", async () => {
  const w = world();
  const made = (await w.create(
    sent(w, "a", { color: "blue" }, { status: { ready: true } }),
  )) as Widget;
  assert.equal(made.status, undefined);
  const { status, scale } = w.subresources;
  const ready = (await w.put({ ...made, status: { ready: true } }, undefined, status)) as Widget;
  assert.deepEqual([ready.status?.ready, ready.metadata.generation], [true, 1]);
  const wrong = { ...ready, status: { ready: 1 } };
  assert.match(
    (await failure(w.put(wrong, undefined, status))).message,
    /status.ready: Invalid value: "integer": ready in body must be of type boolean/,
  );
  const sentScale = { apiVersion: "autoscaling/v1", kind: "Scale", metadata: { name: "a" } };
  const scaled = await w.patch("a", (object) => ({ ...object, spec: { replicas: 7 } }), {
    ...scale,
    update: scale.update!.bind(scale),
  } as typeof w.main);
  assert.deepEqual([scaled.kind, scaled.apiVersion], [sentScale.kind, sentScale.apiVersion]);
  assert.equal(((await w.get("a")) as Widget).spec.size, 7);
  const find = (color: string) => w.list({ field: parseFieldSelector(`spec.color=${color}`) });
  assert.equal((await find("blue")).items.length, 1);
  assert.equal((await find("red")).items.length, 0);
  const other = await failure(w.list({ field: parseFieldSelector("spec.size=7") }));
  assert.equal(other.message, "field label not supported: spec.size");
  const { columns, cells } = w.spec.table;
  const row = cells(await w.get("a"), START_MS + 1000);
  assert.deepEqual(
    columns.map(({ name, priority }, index) => `${name}/${priority}=${row[index]}`),
    ["Name/0=a", "Size/0=7", "Ready/1=true", "Age/0=1s"],
  );
});

test("Plurals, scope and time to live", async () => {
  const define = (kind: string) =>
    defineResource({ group: "g.io", version: "v1", kind, fields: {}, scope: "Cluster" }).spec;
  assert.deepEqual(
    ["Policy", "Box", "Key", "Bus"].map((kind) => define(kind).resource),
    ["policies", "boxes", "keys", "buses"],
  );
  assert.equal(define("Policy").namespaced, false);
  const spec = define("Policy");
  assert.equal(spec.statusStrategy, undefined);
  const short = defineResource({
    group: "g.io",
    version: "v1",
    kind: "Token",
    plural: "tokens",
    singular: "token",
    fields: { seconds: integer() },
    ttlSeconds: ({ seconds }) => seconds,
  });
  const w = new RegistryWorld(short.spec);
  await w.create(w.object({ name: "a" }, { seconds: 60 }));
  w.advance(59_000);
  assert.equal(await w.count(), 1);
  w.advance(10_000);
  assert.equal(await w.count(), 0);
});

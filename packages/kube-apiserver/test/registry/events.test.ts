/** Events in both API groups, over one storage. Texts are kube-apiserver's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ConvertedStorage,
  type KubeObject,
  kindSource,
  parseFieldSelector,
  type WatchEvent,
} from "@quorate/kube-storage";
import { toCoreEvent, toEventsEvent } from "../../src/builtin/event-fields.ts";
import { coreEvents, groupEvents } from "../../src/builtin/events.ts";
import { servedResourcesOf, storagesOf } from "../../src/builtin/served-resources.ts";
import {
  DELETE,
  failure,
  listOptions,
  RegistryWorld,
  START_MS,
} from "../support/registry-world.ts";

const CORE = kindSource("", "v1", "Event");
const GROUP = kindSource("events.k8s.io", "v1", "Event");

/** Both endpoints. `group` is the one of events.k8s.io. */
function worlds(): { w: RegistryWorld; group: RegistryWorld } {
  const w = new RegistryWorld(coreEvents(CORE));
  const group = new RegistryWorld(groupEvents(CORE));
  Object.assign(group, { main: storagesOf(groupEvents(CORE), w.parts).main, storage: w.storage });
  return { w, group };
}

const coreEvent = (name: string, fields: object): KubeObject =>
  CORE.decode({ apiVersion: "v1", kind: "Event", metadata: { name }, ...fields }).object;
const groupEvent = (name: string, fields: object): KubeObject =>
  GROUP.decode({ apiVersion: "events.k8s.io/v1", kind: "Event", metadata: { name }, ...fields })
    .object;

const POD = { kind: "Pod", namespace: "default", name: "p" };
const GOOD = {
  eventTime: "2026-01-02T03:04:05.000001Z",
  regarding: POD,
  related: { kind: "X", name: "y" },
  action: "A",
  reason: "R",
  note: "N",
  type: "Normal",
  reportingController: "example.org/c",
  reportingInstance: "i",
  series: { count: 2, lastObservedTime: "2026-01-02T03:04:06.000001Z" },
};

test("An event of one group is the same event in the other", async () => {
  const { w, group } = worlds();
  const made = await group.create(groupEvent("f", GOOD));
  assert.equal(made.apiVersion, "events.k8s.io/v1");
  const core = await w.get("f");
  assert.equal(core.apiVersion, "v1");
  assert.deepEqual(core["involvedObject"], POD);
  assert.deepEqual(
    [core["message"], core["reportingComponent"], core["series"]],
    ["N", "example.org/c", GOOD.series],
  );
  await w.create(coreEvent("e", { involvedObject: POD, source: { component: "c" }, count: 3 }));
  const there = await group.get("e");
  assert.deepEqual(
    [there["regarding"], there["deprecatedSource"], there["deprecatedCount"]],
    [POD, { component: "c" }, 3],
  );
  const listed = await group.list();
  const versions = listed.items.map((item) => item.object().apiVersion);
  assert.deepEqual(versions, ["events.k8s.io/v1", "events.k8s.io/v1"]);
  const stored = (await w.list()).items[0];
  const list = async () => ({ ...listed, items: [stored] });
  const converted = new ConvertedStorage({ list }, toCoreEvent, toEventsEvent).verbs();
  const read = async () => (await converted.list!(w.ctx(), listOptions())).items[0];
  assert.equal(await read(), await read(), "each stored object is converted once");
  const missing = await failure(group.get("none"));
  assert.equal(missing.message, 'events.events.k8s.io "none" not found');
});

test("core/v1 keeps the old rules", async () => {
  const { w } = worlds();
  const refused = async (fields: object): Promise<string> =>
    (await failure(w.create(coreEvent("e", fields)))).message.slice(
      'Event "e" is invalid: '.length,
    );
  assert.equal(
    await refused({ involvedObject: { ...POD, namespace: "other" } }),
    'involvedObject.namespace: Invalid value: "other": does not match event.namespace',
  );
  await w.create(coreEvent("node", { involvedObject: { kind: "Node", name: "n" } }));
  const eventTime = "2026-01-02T03:04:05.000001Z";
  const bare = await refused({ involvedObject: POD, eventTime });
  const reporter = 'reportingComponent: Invalid value: "": name part must be non-empty, ';
  assert.ok(bare.startsWith(`[reportingComponent: Required value, ${reporter}`), bare);
  const rest = "reportingInstance: Required value, action: Required value, reason: Required value]";
  assert.ok(bare.endsWith(rest), bare);
  const long = "x".repeat(129);
  assert.equal(
    await refused({
      involvedObject: POD,
      eventTime,
      reportingComponent: "c",
      reportingInstance: long,
      action: long,
      reason: long,
      message: "x".repeat(1025),
    }),
    '[reportingInstance: Invalid value: "": can have at most 128 characters, action: Invalid ' +
      'value: "": can have at most 128 characters, reason: Invalid value: "": can have at most ' +
      '128 characters, message: Invalid value: "": can have at most 1024 characters]',
  );
});

test("events.k8s.io has stricter rules, and what happened cannot change", async () => {
  const { group } = worlds();
  const text = async (call: Promise<unknown>): Promise<string> => (await failure(call)).message;
  assert.equal(
    await text(group.create(groupEvent("f", { regarding: POD }))),
    'Event "f" is invalid: [eventTime: Required value, type: Invalid value: "": has invalid ' +
      "value: ]",
  );
  const time = "2026-01-02T03:04:06Z";
  assert.equal(
    await text(
      group.create(
        groupEvent("f", {
          ...GOOD,
          type: "Foo",
          series: { count: 1 },
          deprecatedCount: 3,
          deprecatedFirstTimestamp: time,
          deprecatedLastTimestamp: time,
          deprecatedSource: { component: "c" },
        }),
      ),
    ),
    'Event "f" is invalid: [series.count: Invalid value: "": should be at least 2, ' +
      'series.lastObservedTime: Required value, type: Invalid value: "": has invalid value: Foo, ' +
      'firstTimestamp: Invalid value: "": needs to be unset, lastTimestamp: Invalid value: "": ' +
      'needs to be unset, count: Invalid value: "": needs to be unset, source: Invalid value: ' +
      '"": needs to be unset]',
  );
  await group.create(groupEvent("f", GOOD));
  const { related: _, ...unrelated } = GOOD;
  const regarding = { ...POD, name: "q" };
  const changed = groupEvent("f", { ...unrelated, regarding, action: "B", series: { count: 1 } });
  assert.equal(
    await text(group.put(changed)),
    'Event "f" is invalid: [series.count: Invalid value: "": should be at least 2, ' +
      "series.lastObservedTime: Required value, involvedObject: Invalid value: " +
      '{"Kind":"Pod","Namespace":"default","Name":"q","UID":"","APIVersion":"",' +
      '"ResourceVersion":"","FieldPath":""}: field is immutable, action: Invalid value: "B": ' +
      "field is immutable, related: Invalid value: null: field is immutable]",
  );
  const series = { count: 3, lastObservedTime: "2026-01-02T03:05:06.000001Z" };
  const counted = await group.put(groupEvent("f", { ...GOOD, series }));
  assert.deepEqual(counted["series"], series);
});

test("Both groups select by their own field names", async () => {
  const { w, group } = worlds();
  await group.create(groupEvent("f", GOOD));
  const find = (field: string) => ({ field: parseFieldSelector(field) });
  assert.equal(
    (await w.list(find("involvedObject.kind=Pod,source=example.org/c"))).items.length,
    1,
  );
  assert.equal((await group.list(find("regarding.kind=Pod"))).items.length, 1);
  assert.equal((await group.list(find("regarding.kind=Node"))).items.length, 0);
  const refused = async (other: RegistryWorld, field: string): Promise<string> =>
    (await failure(other.list(find(field)))).message;
  assert.equal(await refused(group, "source=c"), "field label not supported: source");
  assert.equal(await refused(w, "regarding.kind=Pod"), "field label not supported: regarding.kind");
});

test("A watch of events.k8s.io converts each event once", async () => {
  const { w, group } = worlds();
  const seen: WatchEvent[] = [];
  const watch = await group.main.watch(w.ctx(), { ...listOptions(), resourceVersion: "1" });
  const arrived = new Promise<void>((resolve) => {
    watch.start({
      event: (event) => {
        seen.push(event);
        if (event.type === "DELETED") resolve();
        return true;
      },
      ended: () => resolve(),
    });
  });
  await w.create(coreEvent("e", { involvedObject: POD, message: "m" }));
  await group.main.deleteCollection(w.ctx(), w.admit, DELETE, listOptions());
  await arrived;
  watch.stop();
  assert.deepEqual(
    seen.map(({ type, object }) => `${type} ${object.object()["note"]}`),
    ["ADDED m", "DELETED m"],
  );
});

test("Events expire an hour after their last write", async () => {
  const { w } = worlds();
  await w.create(coreEvent("e", { involvedObject: POD }));
  w.advance(50 * 60_000);
  await w.put(coreEvent("e", { involvedObject: POD, count: 2 }));
  w.advance(50 * 60_000);
  assert.equal(await w.count(), 1);
  w.advance(75 * 60_000);
  assert.equal(await w.count(), 0);
});

test("The table of events, and the endpoints of events.k8s.io", async () => {
  const { w } = worlds();
  const made = await w.create(
    coreEvent("e1", {
      involvedObject: { ...POD, fieldPath: "spec.x" },
      reason: "R",
      message: " m ",
      type: "Normal",
      count: 3,
      firstTimestamp: "2026-01-02T03:03:05Z",
      lastTimestamp: "2026-01-02T03:03:35Z",
      source: { component: "c", host: "h" },
    }),
  );
  const { columns, cells } = w.spec.table;
  const shown = cells(made, START_MS);
  assert.equal(
    columns.map(({ name, priority }, index) => `${name}/${priority}=${shown[index]}`).join(" "),
    "Last Seen/0=30s Type/0=Normal Reason/0=R Object/0=pod/p Subobject/1=spec.x " +
      "Source/1=c, h Message/0=m First Seen/1=60s Count/1=3 Name/1=e1",
  );
  assert.deepEqual(cells(groupEvent("f", GOOD), START_MS + 5500).slice(0, 4), [
    "4s",
    "Normal",
    "R",
    "pod/p",
  ]);
  const serving = {
    source: GROUP,
    subresourceSource: () => undefined,
    strategicMerge: true,
  };
  const [served] = servedResourcesOf(groupEvents(CORE), serving, w.parts);
  const { group, version, resource, kind } = served;
  assert.deepEqual([group, version, resource], ["events.k8s.io", "v1", "events"]);
  assert.deepEqual(kind, { group: "events.k8s.io", version: "v1", kind: "Event" });
});

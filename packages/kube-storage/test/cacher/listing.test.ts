/** Lists, gets and writes: which of them the cache serves, and which go to the store below. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Pauses, Turns } from "@quorate/host";
import { listView } from "../../src/cacher/list-page.ts";
import { elementOf } from "../../src/cacher/object-set.ts";
import { SortedTree } from "../../src/cacher/sorted-tree.ts";
import { SELECT_ALL } from "../../src/meta/selectors.ts";
import type { ListOptions } from "../../src/storage/interface.ts";
import { attributesOf, stored, widget } from "./support/object.ts";
import { demands, listOptions, predicateOf, World } from "./support/world.ts";

const key = (name: string) => `/widgets/a/${name}`;

/** Objects at revisions 2 to 6, of which the last two came as events. */
async function startedWorld(): Promise<World> {
  const world = new World({}, 1n, ({ history }) => {
    for (const name of ["one", "three", "two"])
      history.write(key(name), widget(key(name), { color: "red" }, { node: "n1" }));
  });
  await world.run(100);
  world.history.write(key("four"), widget(key("four"), { color: "green" }, { node: "n2" }));
  world.history.write(key("one"), undefined);
  await world.run(100);
  return world;
}

/** Names and revision of a list, and the requests to the store below that it took. */
async function listed(world: World, at: string, more: Partial<ListOptions>): Promise<string> {
  const { calls } = world.storage;
  calls.clear();
  const list = await world.finish(world.cacher.getList(at, listOptions(more)));
  calls.delete("progress");
  const names = list.items.map((item) => item.key.split("/").at(-1));
  const more_ = list.continueToken === "" ? "" : ` + ${list.remainingItemCount ?? "more"}`;
  return `${names.join(" ")}${more_} @${list.resourceVersion} ${[...calls.keys()].join()}`.trim();
}

const limited = (limit: number, continueToken = "") => ({ ...SELECT_ALL, limit, continueToken });

test("the cache serves what it is fresh enough for", async () => {
  const world = await startedWorld();
  const cases: readonly (readonly [Partial<ListOptions>, string])[] = [
    [{}, "four three two @6 currentResourceVersion"],
    [{ predicate: limited(2) }, "four three + 1 @6 currentResourceVersion"],
    [{ resourceVersion: "0" }, "four three two @6"],
    [{ resourceVersion: "0", predicate: limited(2) }, "four three two @6"],
    [{ resourceVersion: "5" }, "four three two @6"],
    [{ resourceVersion: "5", resourceVersionMatch: "NotOlderThan" }, "four three two @6"],
    [
      { resourceVersion: "5", resourceVersionMatch: "NotOlderThan", predicate: limited(1) },
      "four + 2 @6",
    ],
    [{ resourceVersion: "5", resourceVersionMatch: "Exact" }, "four one three two @5"],
    [{ resourceVersion: "4", resourceVersionMatch: "Exact" }, "one three two @4"],
    [{ resourceVersion: "5", predicate: limited(2) }, "four one + 2 @5"],
    // From before the cache was filled.
    [{ resourceVersion: "3", resourceVersionMatch: "Exact" }, "one three @3 getList"],
  ];
  for (const [more, expected] of cases)
    assert.equal(await listed(world, "/widgets", more), expected, JSON.stringify(more));
  const one = { recursive: false };
  assert.equal(await listed(world, key("two"), one), "two @6 currentResourceVersion");
  assert.equal(await listed(world, key("one"), one), "@6 currentResourceVersion");
  assert.equal(
    await listed(world, key("one"), {
      ...one,
      resourceVersion: "5",
      resourceVersionMatch: "Exact",
    }),
    "one @5 getList",
  );
  await world.cacher.close();
});

test("pages continue at the revision of the first one, whatever happened since", async () => {
  const world = await startedWorld();
  const first = await world.finish(
    world.cacher.getList("/widgets", listOptions({ predicate: limited(1) })),
  );
  for (const name of ["four", "three", "two"]) world.history.write(key(name), undefined);
  await world.run(100);
  const { continueToken } = first;
  assert.equal(
    await listed(world, "/widgets", { predicate: limited(1, continueToken) }),
    "three + 1 @6",
  );
  // The store has compacted: it decides, and not the snapshot.
  world.history.compactRevision = 7;
  await assert.rejects(
    world.finish(
      world.cacher.getList("/widgets", listOptions({ predicate: limited(1, continueToken) })),
    ),
    /compacted/,
  );
  await world.cacher.close();
});

test("selectors select, and an indexed field is looked up", async () => {
  const world = await startedWorld();
  const latest = { resourceVersion: "0" };
  const red = { ...latest, predicate: predicateOf({ color: "red", node: "" }) };
  assert.equal(await listed(world, "/widgets", red), "three two @6");
  const onNode = { ...latest, predicate: predicateOf({ color: "", node: "n2" }) };
  assert.equal(await listed(world, "/widgets", onNode), "four @6");
  const none = { ...latest, predicate: predicateOf({ color: "red", node: "n2" }) };
  assert.equal(await listed(world, "/widgets", none), "@6");
  const samples = world.cacher.metrics.samples().filter(({ labels }) => "index" in labels);
  const counts = samples.map(({ name, labels, value }) => `${name} ${labels["index"]} ${value}`);
  assert.deepEqual(counts, [
    "apiserver_cache_list_total  1",
    "apiserver_cache_list_fetched_objects_total  3",
    "apiserver_cache_list_total spec.node 2",
    "apiserver_cache_list_fetched_objects_total spec.node 2",
  ]);
  await world.cacher.close();
});

test("a consistent list that the cache does not reach comes from the store", async () => {
  const world = await startedWorld();
  world.storage.isSilent = true;
  world.history.write(key("one"), widget(key("one")));
  assert.equal(
    await listed(world, "/widgets", {}),
    "four one three two @7 currentResourceVersion,getList",
  );
  const { metrics } = world.cacher;
  assert.equal(metrics.consistentReads(true, true), 1);
  await assert.rejects(
    world.finish(world.cacher.getList("/widgets", listOptions({ resourceVersion: "7" }))),
    /Too large resource version: 7, current: 6/,
  );
  world.storage.isDown = true;
  await assert.rejects(world.finish(world.cacher.getList("/widgets", listOptions())));
  assert.equal(metrics.consistentReads(false, false), 1);
  await world.cacher.close();
});

test("while the cache is filled, pages and gets come from the store, the rest is refused", async () => {
  const world = new World({}, 1n, ({ storage, history }) => {
    history.write(key("one"), widget(key("one")));
    storage.isDown = true;
  });
  await world.run(5000);
  world.storage.isDown = false;
  const page = world.cacher.getList("/widgets", listOptions({ predicate: limited(5) }));
  const one = world.cacher.get(key("one"), { resourceVersion: "0" });
  await world.run(10);
  assert.equal((await page).items.length, 1);
  assert.equal((await one)?.key, key("one"));
  world.storage.isDown = true;
  const other = new World({}, 1n, ({ storage }) => {
    storage.isDown = true;
  });
  const options = listOptions({ resourceVersion: "0" });
  await assert.rejects(other.finish(other.cacher.getList("/widgets", options)), {
    code: "TooManyRequests",
  });
  await assert.rejects(other.finish(other.cacher.watch("/widgets", options)), {
    code: "TooManyRequests",
  });
  await world.cacher.close();
  await other.cacher.close();
});

test("updates and deletions begin with the cached object, and survive that it is old", async () => {
  const world = await startedWorld();
  world.storage.calls.clear();
  const rename = (color: string) =>
    world.finish(
      world.cacher.guaranteedUpdate(key("two"), () => ({ object: widget(key("two"), { color }) }), {
        ignoreNotFound: false,
      }),
    );
  await rename("green");
  assert.deepEqual(Object.fromEntries(world.storage.calls), { update: 1 });
  await world.run(100);
  world.storage.calls.clear();
  world.storage.isSilent = true;
  await rename("red");
  await rename("blue");
  assert.deepEqual(Object.fromEntries(world.storage.calls), { update: 3, get: 1 });
  const deleted = await world.finish(world.cacher.delete(key("two")));
  assert.deepEqual(deleted.object().metadata.labels, { color: "blue" });
  assert.equal(deleted.resourceVersion, world.history.revision);
  await world.cacher.close();
});

test("a long list is selected in slices", async () => {
  const tree = new SortedTree<ReturnType<typeof elementOf>>();
  for (let i = 0; i < 10_000; i++) {
    const name = key(String(i).padStart(5, "0"));
    tree.set(
      elementOf(stored(name, 2, widget(name, { color: i % 2 ? "red" : "green" })), attributesOf),
    );
  }
  let looks = 0;
  let turns = 0;
  const slices = new Pauses(
    new Turns({
      monotonicMs: () => looks++,
      endOfTurn: (task) => {
        turns++;
        task();
      },
    }),
  );
  const { result, fetched } = await listView(
    tree.freeze(),
    {
      prefix: "/widgets/",
      startKey: "/widgets/",
      predicate: { ...SELECT_ALL, label: demands("color", "red") },
      limit: 0,
      revision: 2,
    },
    slices,
    undefined,
  );
  assert.equal(result.items.length, 5000);
  assert.equal(fetched, 10_000);
  // A look each 64 objects, and a slice ends after four of these milliseconds; the count of a turn
  // ends with one more task.
  assert.ok(turns > 20 && turns < 100, `${turns} turns`);
});

test("the metrics have kube-apiserver's names", async () => {
  const world = await startedWorld();
  await world.finish(world.cacher.getList("/widgets", listOptions()));
  const samples = world.cacher.metrics.samples();
  assert.deepEqual(samples.map(({ name, type }) => `${type} ${name}`).sort(), [
    "counter apiserver_cache_list_fetched_objects_total",
    "counter apiserver_cache_list_returned_objects_total",
    "counter apiserver_cache_list_total",
    "counter apiserver_init_events_total",
    "counter apiserver_terminated_watchers_total",
    "counter apiserver_watch_cache_consistent_read_total",
    "counter apiserver_watch_cache_events_dispatched_total",
    "counter apiserver_watch_cache_events_received_total",
    "counter apiserver_watch_cache_initializations_total",
    "counter watch_cache_capacity_decrease_total",
    "counter watch_cache_capacity_increase_total",
    "gauge apiserver_watch_cache_resource_version",
    "gauge watch_cache_capacity",
    "histogram apiserver_watch_cache_read_wait_seconds",
  ]);
  const value = (wanted: string) => samples.find(({ name }) => name.endsWith(wanted))?.value;
  assert.equal(value("events_received_total"), 2);
  assert.equal(value("resource_version"), 6);
  assert.equal(value("watch_cache_capacity"), 100);
  const waits = samples.find(({ type }) => type === "histogram");
  assert.equal(waits?.buckets?.at(-1)?.count, waits?.value);
  assert.deepEqual(waits?.labels, { group: "example.org", resource: "widgets" });
  await world.cacher.close();
});

/** Watches of the cache: where they begin, bookmarks, slow listeners, and which events they get. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BOOKMARK_BEFORE_TIMEOUT_MS } from "../../src/cacher/bookmark-schedule.ts";
import { SELECT_ALL } from "../../src/meta/selectors.ts";
import type { ListOptions } from "../../src/storage/interface.ts";
import { widget } from "./support/object.ts";
import { demands, listOptions, predicateOf, Recorder, World } from "./support/world.ts";

const bookmarks = { ...SELECT_ALL, allowWatchBookmarks: true };
const key = (name: string) => `/widgets/a/${name}`;

async function startedWorld(window = {}): Promise<World> {
  const world = new World({ window }, 1n, ({ history }) => {
    for (const name of ["one", "two"]) history.write(key(name), widget(key(name)));
  });
  await world.run(100);
  return world;
}

async function watch(
  world: World,
  at = "/widgets",
  more: Partial<ListOptions> = {},
): Promise<Recorder> {
  const started = await world.finish(world.cacher.watch(at, listOptions(more)));
  return new Recorder(started);
}

test("bookmarks come each minute, and before the time of the watch is over", async () => {
  const world = await startedWorld();
  const endless = await watch(world, "/widgets", { resourceVersion: "3", predicate: bookmarks });
  const timed = await watch(world, "/widgets", {
    resourceVersion: "3",
    predicate: bookmarks,
    timeoutMs: 20_000,
  });
  const without = await watch(world, "/widgets", { resourceVersion: "3" });
  world.history.write(key("two"), widget(key("two")));
  await world.run(20_000 - BOOKMARK_BEFORE_TIMEOUT_MS - 2000);
  assert.deepEqual(timed.lines, ["MODIFIED a/two@4"]);
  await world.run(3000);
  assert.deepEqual(timed.lines, ["MODIFIED a/two@4", "BOOKMARK @4"]);
  world.history.writeElsewhere();
  await world.run(60_000);
  assert.deepEqual(endless.lines, ["MODIFIED a/two@4", "BOOKMARK @5"]);
  await world.run(60_000);
  assert.deepEqual(endless.lines, ["MODIFIED a/two@4", "BOOKMARK @5", "BOOKMARK @5"]);
  assert.deepEqual(timed.lines, ["MODIFIED a/two@4", "BOOKMARK @4"]);
  assert.deepEqual(without.lines, ["MODIFIED a/two@4"]);
  endless.watch.stop();
  timed.watch.stop();
  without.watch.stop();
  assert.equal(world.cacher.watcherCount, 0);
  await world.cacher.close();
});

test("a bookmark waits for the events that a slow listener has not taken", async () => {
  const world = await startedWorld();
  const slow = await watch(world, "/widgets", { resourceVersion: "3", predicate: bookmarks });
  slow.isSlow = true;
  for (let i = 0; i < 3; i++) world.history.write(key("one"), widget(key("one")));
  await world.run(65_000);
  assert.deepEqual(slow.lines, ["MODIFIED a/one@4"]);
  slow.isSlow = false;
  slow.watch.resume();
  await world.run(10);
  assert.deepEqual(slow.lines, [
    "MODIFIED a/one@4",
    "MODIFIED a/one@5",
    "MODIFIED a/one@6",
    "BOOKMARK @6",
  ]);
  await world.cacher.close();
});

test("a slow watcher goes on from the window, and is terminated when that has moved on", async () => {
  const world = await startedWorld({ lowerCapacity: 4, upperCapacity: 4 });
  const slow = await watch(world, "/widgets", { resourceVersion: "3" });
  const fast = await watch(world, "/widgets", { resourceVersion: "3" });
  slow.isSlow = true;
  for (let i = 0; i < 5; i++) world.history.write(key("one"), widget(key("one")));
  await world.run(100);
  slow.isSlow = false;
  slow.watch.resume();
  await world.run(10);
  assert.deepEqual(slow.lines, fast.lines);
  assert.equal(slow.seen.length, 5);
  slow.isSlow = true;
  for (let i = 0; i < 6; i++) world.history.write(key("one"), widget(key("one")));
  await world.run(100);
  assert.deepEqual(slow.ended, { error: undefined });
  assert.equal(world.cacher.metrics.terminatedWatchers, 1);
  assert.equal(fast.ended, undefined);
  assert.equal(fast.seen.length, 11);
  assert.equal(world.cacher.watcherCount, 1);
  await world.cacher.close();
});

test("a quiet watcher is not terminated, however far the window moves", async () => {
  const world = await startedWorld({ lowerCapacity: 4, upperCapacity: 4 });
  const quiet = await watch(world, key("two"), { resourceVersion: "3", recursive: false });
  world.history.write(key("two"), widget(key("two")));
  await world.run(100);
  quiet.isSlow = true;
  world.history.write(key("two"), widget(key("two")));
  await world.run(100);
  for (let i = 0; i < 20; i++) world.history.write(key("one"), widget(key("one")));
  await world.run(100);
  quiet.isSlow = false;
  quiet.watch.resume();
  world.history.write(key("two"), undefined);
  await world.run(100);
  assert.deepEqual(quiet.lines, ["MODIFIED a/two@4", "MODIFIED a/two@5", "DELETED a/two@26"]);
  await world.cacher.close();
});

test("a listener that never starts, or is stuck in the initial events, is terminated too", async () => {
  const world = await startedWorld({ lowerCapacity: 4, upperCapacity: 4 });
  const idle = await world.finish(world.cacher.watch("/widgets", listOptions()));
  const stuck = await world.finish(world.cacher.watch("/widgets", listOptions()));
  const lines: string[] = [];
  stuck.start({
    event: ({ type, object }) => {
      lines.push(`${type} ${object.key}`);
      return false;
    },
    ended: () => lines.push("ended"),
  });
  for (let i = 0; i < 6; i++) world.history.write(key("one"), widget(key("one")));
  await world.run(100);
  assert.deepEqual(lines, ["ADDED /widgets/a/one", "ended"]);
  assert.deepEqual(new Recorder(idle).ended, { error: undefined });
  assert.equal(world.cacher.metrics.terminatedWatchers, 2);
  await world.cacher.close();
});

test("initial events end with an annotated bookmark, at a revision that all writes have", async () => {
  const world = await startedWorld();
  world.storage.delays = { callMs: 1, eventMs: 500 };
  world.history.write(key("three"), widget(key("three")));
  const list = await watch(world, "/widgets", {
    sendInitialEvents: true,
    resourceVersionMatch: "NotOlderThan",
    predicate: bookmarks,
  });
  await world.run(100);
  assert.deepEqual(list.lines, [
    "ADDED a/one@2",
    "ADDED a/three@4",
    "ADDED a/two@3",
    "BOOKMARK @4",
  ]);
  assert.deepEqual(list.initialEnds, [true]);
  await world.cacher.close();
});

test("a revision before the window is an error event, as is one that is not there yet", async () => {
  const world = await startedWorld();
  const old = await watch(world, "/widgets", { resourceVersion: "2" });
  assert.equal(old.ended?.error?.httpStatus, 410);
  assert.equal(old.ended?.error?.message, "too old resource version: 2 (3)");
  const late = await watch(world, "/widgets", {
    resourceVersion: "99",
    sendInitialEvents: true,
    resourceVersionMatch: "NotOlderThan",
  });
  assert.equal(late.ended?.error?.httpStatus, 504);
  await world.cacher.close();
});

test("an event reaches the watchers of its scope, and no others are asked", async () => {
  const world = await startedWorld();
  let asked = 0;
  const counting = {
    ...demands("color", "red"),
    matches: () => {
      asked++;
      return true;
    },
  };
  const predicate = { ...SELECT_ALL, label: counting };
  const from = { resourceVersion: "3", predicate };
  const scopes = await Promise.all([
    watch(world, "/widgets", from),
    watch(world, "/widgets/a", from),
    watch(world, "/widgets/b", from),
    watch(world, key("one"), { ...from, recursive: false }),
    watch(world, key("two"), { ...from, recursive: false }),
    watch(world, "/widgets", {
      ...from,
      predicate: { ...predicate, field: demands("metadata.name", "one") },
    }),
    watch(world, "/widgets", {
      ...from,
      predicate: { ...predicate, field: demands("metadata.namespace", "b") },
    }),
    watch(world, "/widgets", {
      ...from,
      predicate: { ...predicate, field: demands("spec.node", "n1") },
    }),
    watch(world, "/widgets", {
      ...from,
      predicate: { ...predicate, field: demands("spec.node", "n2") },
    }),
  ]);
  world.history.write(key("one"), widget(key("one"), {}, { node: "n1" }));
  await world.run(100);
  const reached = scopes.map(({ lines }) => lines.length);
  assert.deepEqual(reached, [1, 1, 0, 1, 0, 1, 0, 1, 0]);
  // Before and after the change, of five watchers; the field selector of one fails before.
  assert.equal(asked, 2 * 5);
  world.history.write(key("one"), widget(key("one"), {}, { node: "n2" }));
  await world.run(100);
  assert.deepEqual(scopes[7].lines, ["ADDED a/one@4", "DELETED a/one@5"]);
  assert.deepEqual(scopes[8].lines, ["ADDED a/one@5"]);
  await world.cacher.close();
});

test("watchers share an event and its text; one that leaves a selector has its revision", async () => {
  const world = await startedWorld();
  const events: unknown[] = [];
  for (let i = 0; i < 2; i++) {
    const started = await world.finish(
      world.cacher.watch(
        "/widgets",
        listOptions({ resourceVersion: "3", predicate: predicateOf({ color: "red", node: "" }) }),
      ),
    );
    started.start({
      event: (event) => {
        events.push(event, event.object.json());
        return true;
      },
      ended: () => {},
    });
  }
  world.history.write(key("one"), widget(key("one"), { color: "red" }));
  world.history.write(key("one"), widget(key("one"), { color: "green" }));
  await world.run(100);
  const [added, addedText, , , deleted, deletedText] = events;
  assert.equal(events.length, 8);
  assert.equal(events[2], added);
  assert.equal(events[3], addedText);
  assert.equal(events[6], deleted);
  assert.equal(events[7], deletedText);
  const { metadata } = JSON.parse(new TextDecoder().decode(deletedText as Uint8Array));
  assert.deepEqual(metadata.labels, { color: "red" });
  assert.equal(metadata.resourceVersion, "5");
  await world.cacher.close();
});

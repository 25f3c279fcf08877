import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_WATCH_FAILURE_MS, SILENT_WATCH_MS } from "../../src/cacher/reflector.ts";
import { expired, internalError } from "../../src/meta/status.ts";
import { widget } from "./support/object.ts";
import { listOptions, Recorder, World } from "./support/world.ts";

const KEY = "/widgets/a/one";

async function startedWorld(): Promise<World> {
  const world = new World({}, 1n, ({ history }) => {
    history.write(KEY, widget(KEY));
  });
  await world.run(100);
  assert.equal(world.cacher.readiness(), undefined);
  return world;
}

const calls = (world: World, name: string) => world.storage.calls.get(name) ?? 0;

test("a lost connection is resumed without a list, and watchers do not notice", async () => {
  const world = await startedWorld();
  const watch = await world.finish(
    world.cacher.watch("/widgets", listOptions({ resourceVersion: "2" })),
  );
  const recorder = new Recorder(watch);
  world.storage.loseConnections(undefined);
  world.history.write(KEY, undefined);
  await world.run(1000);
  world.storage.loseConnections(internalError("connection reset"));
  world.history.write(KEY, widget(KEY));
  await world.run(1000);
  assert.deepEqual(recorder.lines, ["DELETED a/one@3", "ADDED a/one@4"]);
  assert.equal(calls(world, "getList"), 1);
  assert.equal(recorder.ended, undefined);
  await world.cacher.close();
});

test("a compacted revision is followed by a new list, and watches begin again", async () => {
  const world = await startedWorld();
  const watch = await world.finish(
    world.cacher.watch("/widgets", listOptions({ resourceVersion: "2" })),
  );
  const recorder = new Recorder(watch);
  world.storage.loseConnections(expired("compacted"));
  await world.run(1000);
  assert.deepEqual(recorder.ended, { error: undefined });
  assert.equal(calls(world, "getList"), 2);
  assert.equal(world.cacher.metrics.initializations, 2);
  const again = await world.finish(
    world.cacher.watch("/widgets", listOptions({ resourceVersion: "1" })),
  );
  assert.match(
    new Recorder(again).ended?.error?.message ?? "",
    /^too old resource version: 1 \(2\)$/,
  );
  await world.cacher.close();
});

for (const [meanwhile, isDown] of [
  ["is filled again", false],
  ["is lost", true],
] as const) {
  test(`a watch waits for the store's revision, and the cache ${meanwhile}: it begins again`, async () => {
    const world = await startedWorld();
    const revision = Promise.withResolvers<number>();
    world.storage.currentResourceVersion = () => revision.promise;
    const waiting = world.cacher.watch("/widgets", listOptions({ sendInitialEvents: false }));
    await world.run(10);
    world.storage.isDown = isDown;
    world.storage.loseConnections(expired("compacted"));
    await world.run(1000);
    assert.equal(world.cacher.readiness() === undefined, !isDown);
    revision.resolve(world.history.revision);
    const recorder = new Recorder(await world.finish(waiting));
    assert.deepEqual(recorder.ended, { error: undefined });
    assert.equal(world.cacher.watcherCount, 0);
    await world.cacher.close();
  });
}

test("while the store is down the cache is served; after 30 s it is filled again", async () => {
  const world = await startedWorld();
  world.storage.isDown = true;
  world.storage.loseConnections(internalError("down"));
  await world.run(MAX_WATCH_FAILURE_MS - 5000);
  const list = await world.finish(
    world.cacher.getList("/widgets", listOptions({ resourceVersion: "0" })),
  );
  assert.equal(list.items.length, 1);
  await world.run(12_000);
  assert.match(world.cacher.readiness() ?? "", /^storage is \(re\)initializing: /);
  const attempts = calls(world, "getList") + calls(world, "watch");
  assert.ok(attempts < 40, `${attempts} attempts in 37 s`);
  world.storage.isDown = false;
  await world.run(6000);
  assert.equal(world.cacher.readiness(), undefined);
  assert.equal(world.cacher.metrics.initializations, 2);
  await world.cacher.close();
});

test("a store that does not answer at first is retried, less and less often", async () => {
  const world = new World({}, 1n, ({ storage }) => {
    storage.isDown = true;
  });
  await world.run(60_000);
  const attempts = calls(world, "getList");
  assert.ok(attempts > 10 && attempts < 30, `${attempts} attempts in a minute`);
  world.storage.isDown = false;
  await world.run(6000);
  assert.equal(world.cacher.readiness(), undefined);
  await world.cacher.close();
  await world.run(60_000);
  assert.equal(world.storage.watchCount, 0);
});

test("an idle watch reports progress, and a silent one is replaced", async () => {
  const world = await startedWorld();
  world.history.writeElsewhere();
  await world.run(61_000);
  assert.equal(world.cacher.metrics.resourceVersion, 3);
  const watches = calls(world, "watch");
  // The connection hangs: neither events nor progress arrive.
  world.storage.isSilent = true;
  world.history.write(KEY, undefined);
  await world.run(SILENT_WATCH_MS + 40_000);
  assert.ok(calls(world, "watch") > watches);
  world.storage.isSilent = false;
  await world.run(SILENT_WATCH_MS + 40_000);
  assert.equal(world.cacher.metrics.resourceVersion, 4);
  assert.equal(world.cacher.cachedCount, 0);
  assert.equal(calls(world, "getList"), 1);
  await world.cacher.close();
});

test("a watch-list fills the cache without a list; a store without one is listed", async () => {
  const filled = new World({ fill: "watch-list" }, 1n, ({ history }) => {
    history.write(KEY, widget(KEY));
  });
  await filled.run(100);
  assert.equal(filled.cacher.cachedCount, 1);
  assert.equal(calls(filled, "getList"), 0);
  filled.history.write(KEY, undefined);
  await filled.run(100);
  assert.equal(filled.cacher.cachedCount, 0);
  await filled.cacher.close();

  const without = new World({ fill: "watch-list" }, 1n, ({ history, storage }) => {
    history.write(KEY, widget(KEY));
    storage.hasWatchList = false;
  });
  await without.run(1000);
  assert.equal(without.cacher.cachedCount, 1);
  assert.equal(calls(without, "getList"), 1);
  await without.cacher.close();
});

test("an object that cannot be read does not end the cache's following", async () => {
  const world = await startedWorld();
  const bad = "/widgets/a/bad";
  world.storage.corruptKey = bad;
  world.history.write(bad, widget(bad));
  await world.run(500);
  world.storage.corruptKey = "";
  await world.run(10_000);
  assert.equal(world.cacher.readiness(), undefined);
  assert.equal(world.cacher.cachedCount, 2);
  await world.cacher.close();
});

test("a cache that is filled begins in the past, so that watches go on after a restart", async () => {
  const world = await startedWorld();
  for (let i = 0; i < 20; i++) world.history.write(KEY, widget(KEY));
  const storage = world.connect("restarted");
  const cacher = world.cacherOver(storage, { historyRevisions: 10 });
  storage.delays = { callMs: 2, eventMs: 500 };
  await world.run(20);
  assert.match(cacher.readiness() ?? "", /initializing/, "it has listed, but not caught up");
  assert.equal(cacher.cachedCount, 1);
  storage.delays = { callMs: 2, eventMs: 2 };
  world.history.writeElsewhere();
  await world.run(1000);
  assert.equal(cacher.readiness(), undefined);
  const old = listOptions({ resourceVersion: "15" });
  const recorder = new Recorder(await world.finish(cacher.watch("/widgets", old)));
  await world.run(10);
  assert.deepEqual(
    recorder.seen.map(({ revision }) => revision),
    [16, 17, 18, 19, 20, 21, 22],
  );
  const older = listOptions({ resourceVersion: "11" });
  const refused = new Recorder(await world.finish(cacher.watch("/widgets", older)));
  assert.equal(refused.ended?.error?.message, "too old resource version: 11 (12)");
  await cacher.close();
  await world.cacher.close();
});

test("a past that is compacted is not listed; one that the store refuses is followed by a present list", async () => {
  const world = await startedWorld();
  for (let i = 0; i < 20; i++) world.history.write(KEY, widget(KEY));
  world.history.compactRevision = 18;
  for (const knows of [true, false]) {
    const storage = world.connect("restarted");
    if (!knows) Object.assign(storage, { compactRevision: () => 0 });
    const cacher = world.cacherOver(storage, { historyRevisions: 10 });
    await world.run(1000);
    assert.equal(cacher.readiness(), undefined);
    const from = listOptions({ resourceVersion: "18" });
    const recorder = new Recorder(await world.finish(cacher.watch("/widgets", from)));
    await world.run(10);
    assert.deepEqual(
      [recorder.seen.length, recorder.ended?.error?.code],
      knows ? [4, undefined] : [0, "Expired"],
    );
    assert.equal(storage.calls.get("getList"), knows ? 1 : 2);
    await cacher.close();
  }
  await world.cacher.close();
});

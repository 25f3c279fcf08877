import assert from "node:assert/strict";
import { test } from "node:test";
import { CHECK_PERIOD_MS } from "../../src/cacher/consistency-checker.ts";
import { widget } from "./support/object.ts";
import { listOptions, Recorder, World } from "./support/world.ts";

const LONGEST_MS = CHECK_PERIOD_MS * 1.5 + 1000;

/** More than one page of objects. */
async function startedWorld(): Promise<World> {
  const world = new World({}, 1n, ({ history }) => {
    for (let i = 0; i < 600; i++) {
      const key = `/widgets/a/w${String(i).padStart(3, "0")}`;
      history.write(key, widget(key));
    }
  });
  await world.run(1000);
  return world;
}

test("a cache is compared with its store every five minutes or so", async () => {
  const world = await startedWorld();
  const { consistencyChecks } = world.cacher.metrics;
  await world.run(LONGEST_MS);
  assert.deepEqual(consistencyChecks, { success: 1, failure: 0, error: 0 });
  world.storage.isDown = true;
  await world.run(LONGEST_MS);
  assert.ok(consistencyChecks.error >= 1);
  assert.equal(consistencyChecks.failure, 0);
  await world.cacher.close();
});

const changed = (name: string) => widget(`/widgets/a/${name}`, { changed: "yes" });

for (const [what, name, object] of [
  ["a creation", "x", changed("x")],
  ["a deletion", "w599", undefined],
  ["a change", "w300", changed("w300")],
] as const) {
  test(`a cache that missed ${what} is filled again, and its watches end`, async () => {
    const world = await startedWorld();
    const watch = await world.finish(world.cacher.watch("/widgets", listOptions()));
    const recorder = new Recorder(watch);
    world.storage.omittedKey = `/widgets/a/${name}`;
    world.history.write(world.storage.omittedKey, object);
    await world.run(LONGEST_MS);
    const { metrics } = world.cacher;
    assert.equal(metrics.consistencyChecks.failure, 1);
    assert.equal(metrics.initializations, 2);
    assert.deepEqual(recorder.ended, { error: undefined });
    const options = listOptions({ resourceVersion: "0" });
    const list = await world.finish(world.cacher.getList("/widgets", options));
    assert.equal(list.items.length, world.history.present.size);
    assert.equal(world.cacher.readiness(), undefined);
    await world.cacher.close();
  });
}

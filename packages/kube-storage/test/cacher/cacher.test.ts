import assert from "node:assert/strict";
import { test } from "node:test";
import { widget } from "./support/object.ts";
import { listOptions, Recorder, World } from "./support/world.ts";

test("a cache is filled, follows its store, and serves lists and watches", async () => {
  const world = new World({}, 1n, ({ history }) => {
    history.write("/widgets/a/one", widget("/widgets/a/one"));
    history.write("/widgets/b/two", widget("/widgets/b/two"));
  });
  const list = await world.finish(world.cacher.getList("/widgets", listOptions()));
  assert.deepEqual(
    list.items.map(({ key }) => key),
    ["/widgets/a/one", "/widgets/b/two"],
  );
  assert.equal(list.resourceVersion, 3);
  const all = new Recorder(
    await world.finish(world.cacher.watch("/widgets", listOptions({ resourceVersion: "3" }))),
  );
  const inA = new Recorder(
    await world.finish(world.cacher.watch("/widgets/a", listOptions({ resourceVersion: "0" }))),
  );
  await world.run(10);
  await world.finish(world.cacher.create("/widgets/a/three", widget("/widgets/a/three"), 0));
  await world.finish(world.cacher.delete("/widgets/b/two"));
  await world.run(20);
  assert.deepEqual(all.lines, ["ADDED a/three@4", "DELETED b/two@5"]);
  assert.deepEqual(inA.lines, ["ADDED a/one@2", "ADDED a/three@4"]);
  const after = await world.finish(world.cacher.getList("/widgets", listOptions()));
  assert.equal(after.resourceVersion, 5);
  await world.cacher.close();
});

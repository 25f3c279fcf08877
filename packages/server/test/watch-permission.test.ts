/** Watches whose permission ends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromLatin1 } from "@quorate/proto";
import { textsOf, WatchBench } from "./support/watching.ts";

const key = fromLatin1;

test("a watch gets nothing that was written after its permission ended, in the same turn either", async () => {
  const bench = await new WatchBench().open();
  let isAllowed = true;
  bench.forbids = () => (isAllowed ? undefined : "etcdserver: permission denied");
  const { call } = bench.call();
  call.create({ key: key("a") });
  call.create({ key: key("a"), startRevision: 2 });
  call.read();
  bench.write({ a: "before" });
  isAllowed = false;
  bench.hub.recheck();
  bench.write({ a: "after" });
  // Permitted again before the watches were looked at: what they have missed is gone for them.
  isAllowed = true;
  bench.hub.recheck();
  bench.write({ a: "later" });
  await bench.run();
  const responses = call.read();
  const ends = responses.filter(({ canceled }) => canceled);
  assert.ok(textsOf(responses).every((text) => !/after|later/.test(text)));
  assert.deepEqual(
    ends.map(({ watchId, cancelReason }) => [watchId, cancelReason]),
    [
      [0, "etcdserver: permission denied"],
      [1, "etcdserver: permission denied"],
    ],
  );
});

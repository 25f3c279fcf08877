/** Clients that do not read: they hold no other up, and lose nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8 } from "@quorate/proto";
import { MAX_STREAM_BYTES } from "../src/watch/watch-client.ts";
import { World } from "./support/world.ts";

test("a slow reader leaves the shared watch, and gets what it missed from one of its own", async () => {
  const world = new World();
  const [slow, fast] = [world.watch(), world.watch()];
  slow.create("k");
  fast.create("k");
  await world.settle();
  slow.stream.bufferedBytes = MAX_STREAM_BYTES + 1;
  for (const value of ["1", "2", "3"]) world.cluster.put("k", fromUtf8(value));
  await world.settle();
  assert.deepEqual(fast.events(), ["k=1", "k=2", "k=3"]);
  assert.deepEqual(slow.events(), ["k=1"], "nothing more is queued for it");
  assert.equal(world.metrics.slowWatches.value, 1);
  assert.equal(slow.stream.isPaused, true, "and it may not request more");
  world.cluster.put("k", fromUtf8("4"));
  await world.settle();
  slow.stream.bufferedBytes = 0;
  slow.stream.listener.drained?.();
  await world.settle();
  assert.deepEqual(slow.events(), ["k=1", "k=2", "k=3", "k=4"]);
  world.cluster.put("k", fromUtf8("5"));
  await world.settle();
  assert.deepEqual(slow.events().slice(4), ["k=5"]);
  assert.equal(world.proxy.watches.broadcasts, 1, "they share again");
});

test("history that is gone when a slow reader returns cancels its watch", async () => {
  const world = new World();
  const slow = world.watch();
  slow.create("k");
  await world.settle();
  slow.stream.bufferedBytes = MAX_STREAM_BYTES + 1;
  for (let i = 0; i < 5; i++) world.cluster.put("k", fromUtf8("v"));
  await world.settle();
  world.cluster.compacted = 6;
  slow.stream.bufferedBytes = 0;
  slow.stream.listener.drained?.();
  await world.settle();
  assert.equal(slow.responses.at(-1)?.compactRevision, 6);
});

test("requests of one stream that wait for the cluster are bounded", async () => {
  const world = new World();
  for (const member of world.members) member.isDown = true;
  const stream = world.watch();
  for (let i = 0; i < 1024; i++) stream.create(`k${i % 10}`);
  assert.equal(stream.stream.isPaused, true);
  for (const member of world.members) member.isDown = false;
  await world.settle(5000);
  assert.equal(stream.stream.isPaused, false);
  assert.equal(stream.responses.length, 1024);
  assert.deepEqual(
    stream.responses.map(({ watchId }) => watchId),
    Array.from({ length: 1024 }, (_, i) => i),
    "in the order of their requests",
  );
  assert.equal(world.proxy.watches.broadcasts, 10);
});

test("what watches cost is bounded by client", async () => {
  const world = new World();
  const stream = world.watch();
  const key = "x".repeat(1024 * 1024);
  for (let i = 0; i < 130; i++) stream.create(key, { watchId: i + 1 });
  await world.settle();
  const refused = stream.responses.filter(({ canceled }) => canceled);
  assert.ok(refused.length >= 2, `${refused.length} refused`);
  assert.match(refused[0].cancelReason, /^etcdserver: too many watches/);
  stream.stream.listener.cancelled?.();
  const next = world.watch();
  next.create("k");
  await world.settle();
  assert.equal(next.responses[0].created && !next.responses[0].canceled, true);
});

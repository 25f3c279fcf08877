/** Reading history for a watch returns to the event loop in time, however slow the disk is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { WATCH_LIMITS } from "@quorate/member";
import { fromLatin1 } from "@quorate/proto";
import { textsOf, WatchBench } from "./support/watching.ts";

const EVENTS = 200;

test("with prev_kv from a slow disk, a slice is a few events", async () => {
  const bench = await new WatchBench({ ...WATCH_LIMITS, maxRecentEvents: 1 }).open();
  for (let i = 0; i < EVENTS; i++) bench.write({ k: `${i}` });
  await bench.run();
  const { clock, store } = bench;
  let readingMs = 0;
  const now = clock.monotonicMs.bind(clock);
  clock.monotonicMs = () => now() + readingMs;
  const recordAt = store.mvcc.recordAt.bind(store.mvcc);
  store.mvcc.recordAt = (key, revision) => {
    readingMs += 1;
    return recordAt(key, revision);
  };
  const { call } = bench.call();
  call.create({ key: fromLatin1("k"), startRevision: 3, prevKv: true });
  await bench.run();
  const sizes = call.read().map(({ events }) => events.length);
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    EVENTS - 1,
  );
  // What is sent together was read in one slice: 4 ms, and the events between two looks.
  assert.ok(Math.max(...sizes) <= 12, `${sizes}`);
  bench.write({ k: "last" });
  await bench.run();
  assert.deepEqual(textsOf(call.read()), [`put k=last@${EVENTS + 2}<${EVENTS - 1}`]);
});

test("watches that wait for the rest of a revision hold up no other, however few are sent in a row", async () => {
  const limits = { maxRecentEvents: 1, maxSliceEvents: 4, maxWatchersAtOnce: 1 };
  const bench = await new WatchBench({ ...WATCH_LIMITS, ...limits }).open();
  bench.write(Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`k${i}`, "v"])));
  bench.write({ z: "newest" });
  await bench.run();
  const { call } = bench.call();
  const range = { key: fromLatin1("k"), rangeEnd: fromLatin1("l"), startRevision: 2 };
  for (let i = 0; i < 3; i++) call.create(range);
  await bench.run();
  const sizes = call.read().flatMap(({ created, events }) => (created ? [] : [events.length]));
  assert.deepEqual(sizes, [40, 40, 40]);
  assert.deepEqual(bench.failures, []);
});

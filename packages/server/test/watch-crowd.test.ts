/** Watches of one range, whose events are queued for all of them together. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromLatin1 } from "@quorate/proto";
import { textsOf, WatchBench } from "./support/watching.ts";

const key = fromLatin1;

test("an event has the pair before it, though that is compacted before the turn ends", async () => {
  const bench = await new WatchBench().open();
  bench.write({ a: "first" });
  const calls = [0, 1].map(() => bench.call().call);
  for (const call of calls) call.create({ key: key("a"), prevKv: true });
  await bench.run();
  for (const call of calls) call.read();
  const revision = bench.write({ a: "second" });
  bench.store.mvcc.compact(revision);
  await bench.run();
  for (const call of calls)
    assert.deepEqual(textsOf(call.read()), [`put a=second@${revision}<first`]);
});

test("a progress notification comes behind the events of its turn", async () => {
  const bench = await new WatchBench().open();
  const calls = [0, 1].map(() => bench.call().call);
  for (const call of calls) call.create({ key: key("a") });
  await bench.run();
  for (const call of calls) call.read();
  const revision = bench.write({ a: "one" });
  for (const call of calls) call.progress();
  for (const call of calls) {
    const [event, progress] = call.read();
    assert.deepEqual(textsOf([event]).length, 1);
    assert.deepEqual([progress.events.length, progress.header!.revision], [0, revision]);
  }
});

test("a watch that is full is parked alone, at the first revision that it has not got", async () => {
  const bench = await new WatchBench().open();
  const slow = bench.call({ budgetBytes: 1 }).call;
  const quick = bench.call().call;
  for (const call of [slow, quick]) call.create({ key: key("a"), rangeEnd: key("b") });
  await bench.run();
  quick.read();
  // More than a stream may hold, in one turn and in many.
  const all: string[] = [];
  const value = "v".repeat(500_000);
  for (let i = 0; i < 12; i++) {
    bench.write({ a: `${i}${value}` });
    if (i % 2 === 1) continue;
    await bench.run();
    all.push(...textsOf(quick.read()));
  }
  await bench.run();
  all.push(...textsOf(quick.read()));
  assert.equal(all.length, 12);
  assert.equal(bench.hub.feed.slowWatcherCount, 1);
  const texts: string[] = [];
  for (let i = 0; i < 40; i++) {
    texts.push(...textsOf(slow.read()));
    await bench.run();
  }
  assert.deepEqual(texts, all);
  assert.equal(bench.hub.feed.slowWatcherCount, 0);
});

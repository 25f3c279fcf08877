/** How changes reach watchers: each once and in order, whichever way they catch up. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { WATCH_LIMITS } from "@quorate/member";
import { fromLatin1 } from "@quorate/proto";
import { type MemoryCall, TIGHT, textsOf, WatchBench } from "./support/watching.ts";

const key = fromLatin1;
const all = { key: key("a"), rangeEnd: key("z") };

/** Writes `a` so often; returns the events as text. */
function writeMany(bench: WatchBench, count: number, first = 0): string[] {
  return Array.from({ length: count }, (_, i) => {
    const revision = bench.write({ a: `${first + i}` });
    return `put a=${first + i}@${revision}`;
  });
}

/** All turns are over their time as soon as they begin. */
function haste(bench: WatchBench): void {
  bench.clock.turns.begin = () => ({ isOver: true, end: () => {} }) as never;
}

const texts = (call: MemoryCall): string[] => textsOf(call.read());

test("a store that is let go of reports nothing more, and watches wait for the next", async () => {
  const bench = await new WatchBench().open();
  const calls = [0, 1, 2].map(() => bench.call().call);
  calls[0].create({ key: key("a") });
  for (const call of calls.slice(1)) call.create(all);
  await bench.run();
  const { feed } = bench.hub;
  assert.deepEqual([feed.watcherCount, feed.slowWatcherCount], [3, 0]);
  await bench.exchange(() => {
    assert.equal(bench.store.mvcc.onChange, undefined);
    assert.equal(feed.slowWatcherCount, 3);
    // Before the next store comes.
    calls[2].cancel(0);
    assert.equal(feed.slowWatcherCount, 2);
  });
  await bench.run();
  assert.equal(feed.slowWatcherCount, 0);
  for (const call of calls) call.read();
  const events = writeMany(bench, 2);
  await bench.run();
  assert.deepEqual(calls.map(texts), [events, events, []]);
  for (const call of calls.slice(0, 2)) call.cancel(0);
  assert.equal(bench.store.mvcc.onChange, undefined, "nobody watches");
});

test("the last watch may end while there is no store", async () => {
  const bench = await new WatchBench().open();
  const { call } = bench.call();
  call.create({ key: key("a") });
  await bench.exchange(() => call.cancel(0));
  assert.deepEqual([bench.hub.feed.watcherCount, bench.store.mvcc.onChange], [0, undefined]);
});

test("the pair before an event is there where that revision is the compact one", async () => {
  const bench = await new WatchBench().open();
  const { call } = bench.call();
  call.create({ key: key("a"), prevKv: true });
  const first = bench.write({ a: "1" });
  await bench.run();
  bench.store.mvcc.compact(first);
  bench.write({ a: "2" });
  await bench.run();
  assert.deepEqual(texts(call), ["put a=1@2", "put a=2@3<1"]);
});

test("a revision with many changes is read from the store, by those whom it may concern alone", async () => {
  const bench = new WatchBench();
  bench.stepKeys = 1;
  await bench.open();
  const concerned = ["first", "second"].map(() => bench.call().call);
  const other = bench.call().call;
  const names = Array.from({ length: 9 }, (_, i) => `k${i}`);
  for (const name of names) bench.write({ [name]: "x" });
  for (const call of concerned) call.create({ key: key("k"), rangeEnd: key("l") });
  other.create({ key: key("x") });
  await bench.run();
  const { feed } = bench.hub;
  assert.equal(feed.slowWatcherCount, 0);
  const revision = bench.deleteRange("k", "l");
  assert.equal(feed.slowWatcherCount, 2);
  await bench.run();
  assert.equal(feed.slowWatcherCount, 0);
  const deletions = names.map((name) => `delete ${name}@${revision}`);
  for (const call of concerned) assert.deepEqual(texts(call), deletions);
  const next = bench.write({ k1: "again", x: "1" });
  await bench.run();
  for (const call of concerned) assert.deepEqual(texts(call), [`put k1=again@${next}`]);
  assert.deepEqual(texts(other), [`put x=1@${next}`]);
});

test("a watch of one key that is full misses nothing", async () => {
  const bench = await new WatchBench({ ...TIGHT, maxRecentEvents: 1000 }).open();
  const { call } = bench.call({ budgetBytes: 1 });
  call.create({ key: key("a") });
  const events: string[] = [];
  const got: string[] = [];
  for (let round = 0; round < 20; round++) {
    events.push(...writeMany(bench, 10, 10 * round));
    await bench.run();
    if (round % 3 === 2) got.push(...texts(call));
  }
  for (let i = 0; i < 200; i++) {
    got.push(...texts(call));
    await bench.run();
  }
  assert.deepEqual(got, events);
});

test("who catches up from recent events does so over many turns", async () => {
  const bench = await new WatchBench({ ...WATCH_LIMITS, maxSliceEvents: 2 }).open();
  // Somebody else watches, so that events are kept.
  bench.call().call.create({ key: key("b") });
  const events = writeMany(bench, 9);
  await bench.run();
  const { call } = bench.call();
  call.create({ key: key("a"), startRevision: 2 });
  await bench.run();
  assert.deepEqual(texts(call), events);
  assert.equal(bench.hub.feed.slowWatcherCount, 0);
  // For this one there is nothing.
  bench.call().call.create({ key: key("q"), startRevision: 2 });
  await bench.run();
  assert.equal(bench.hub.feed.slowWatcherCount, 0);
});

test("who has caught up is told how far the store is, with its last events", async () => {
  const bench = await new WatchBench().open();
  bench.call().call.create({ key: key("b") });
  bench.write({ a: "1" });
  const last = bench.write({ c: "x" });
  await bench.run();
  const calls = [key("a"), key("q")].map((one) => {
    const { call } = bench.call();
    call.create({ key: one, startRevision: 2 });
    return call;
  });
  await bench.run();
  const [, response] = calls[0].read();
  assert.equal(response.header!.revision, last);
  calls[1].read();
  const next = bench.write({ q: "1", a: "2" });
  await bench.run();
  for (const call of calls) assert.equal(call.read()[0].header!.revision, next);
});

test("turns whose time is over go on all the same", async () => {
  const bench = await new WatchBench().open();
  bench.call().call.create({ key: key("b") });
  const events = writeMany(bench, 5);
  await bench.run();
  haste(bench);
  const late = bench.call().call;
  late.create({ key: key("a"), startRevision: 2 });
  await bench.run();
  assert.deepEqual(texts(late), events);
  const calls = Array.from({ length: 200 }, () => bench.call().call);
  for (const call of calls) call.create({ key: key("a") });
  await bench.run();
  const [next] = writeMany(bench, 1, 9);
  await bench.run();
  for (const call of calls) assert.deepEqual(texts(call), [next]);
});

test("who joins a pass over the store does not have it begin again", async () => {
  const bench = await new WatchBench({ ...WATCH_LIMITS, maxSliceEvents: 3 }).open();
  const events = writeMany(bench, 60);
  await bench.settled(bench.store.flush());
  const first = bench.call().call;
  first.create({ key: key("a"), startRevision: 2 });
  const joining = bench.call().call;
  const got: string[] = [];
  for (let i = 0; i < 1000 && got.length < 12; i++) {
    bench.clock.endOneTurn();
    await Promise.resolve();
    got.push(...texts(first));
  }
  assert.ok(got.length < events.length, `${got.length} were read at once`);
  joining.create({ key: key("a"), startRevision: 52 });
  await bench.run(200);
  got.push(...texts(first));
  assert.deepEqual(got, events);
  assert.deepEqual(texts(joining), events.slice(50));
});

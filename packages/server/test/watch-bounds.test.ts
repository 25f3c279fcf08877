/** What a stream of watches may hold, what it gives back, and that a revision is never cut. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { WATCH_LIMITS } from "@quorate/member";
import { fromLatin1 } from "@quorate/proto";
import { TIGHT, textsOf, WatchBench } from "./support/watching.ts";

const key = fromLatin1;
const all = { key: key("a"), rangeEnd: key("z") };

test("a stream that is closed gives back all that it held", async () => {
  const bench = await new WatchBench().open();
  const { call } = bench.call();
  call.create({ key: key("a") });
  call.create(all);
  await bench.run();
  const { hub } = bench;
  assert.ok(hub.watchBudget.usedBytes > 0);
  bench.write({ a: "1" });
  hub.feed.settle();
  assert.equal(hub.pendingEvents, 2);
  assert.ok(hub.backlogBytes > 0);
  call.listener.cancelled!();
  assert.deepEqual([hub.pendingEvents, hub.backlogBytes, hub.watchBudget.usedBytes], [0, 0, 0]);
  assert.deepEqual([hub.feed.watcherCount, hub.streamCount], [0, 0]);
  call.listener.cancelled!();
  assert.equal(hub.watchBudget.usedBytes, 0);
});

test("a stream that the member ends has had all that was queued, and its status", async () => {
  const bench = await new WatchBench().open();
  const { call } = bench.call();
  const gone = bench.call().call;
  for (const one of [call, gone]) one.create({ key: key("a") });
  await bench.run();
  for (const one of [call, gone]) one.read();
  gone.listener.cancelled!();
  bench.write({ a: "1" });
  const status = { code: 14, message: "the member ends" };
  bench.hub.end(status);
  assert.deepEqual([textsOf(call.read()), call.status], [["put a=1@2"], status]);
  assert.deepEqual([gone.status, bench.hub.streamCount], [undefined, 0]);
});

test("what a client has read is not counted any more", async () => {
  const bench = await new WatchBench().open();
  const { call } = bench.call({ budgetBytes: 1000 });
  call.create({ key: key("a") });
  bench.write({ a: "v".repeat(5000) });
  await bench.run();
  assert.ok(bench.hub.backlogBytes > 5000);
  call.read();
  assert.equal(bench.hub.backlogBytes, 0);
});

test("an id is free again when its watch was cancelled, which is answered once", async () => {
  const bench = await new WatchBench().open();
  const { call } = bench.call();
  for (let i = 0; i < 2; i++) {
    call.create({ key: key("a"), watchId: 7 });
    call.cancel(7);
    call.cancel(7);
  }
  await bench.run();
  assert.deepEqual(
    call.read().map(({ created, canceled, cancelReason }) => [created, canceled, cancelReason]),
    [
      [true, false, ""],
      [false, true, ""],
      [true, false, ""],
      [false, true, ""],
    ],
  );
  assert.equal(bench.hub.watchBudget.usedBytes, 0);
});

test("no progress is told to a client whose watch has just become full", async () => {
  const bench = await new WatchBench({ ...TIGHT, maxResponseBytes: 10_000 }).open();
  const { call } = bench.call();
  call.create(all);
  await bench.run();
  call.read();
  for (let i = 0; i < 4; i++) bench.write({ a: "v".repeat(300) });
  call.progress();
  assert.ok(call.read().every(({ events }) => events.length > 0));
});

test("a revision is sent whole, however large it is and however slowly its client reads", async () => {
  const bench = await new WatchBench(TIGHT).open();
  const { call } = bench.call({ budgetBytes: 1 });
  call.create(all);
  const expected: string[] = [];
  for (let i = 0; i < 30; i++) {
    const changes = Object.fromEntries(
      ["a", "b", "c"].map((name) => [name, `${i}`.padEnd(i % 3 === 0 ? 400 : 90, "v")]),
    );
    const revision = bench.write(changes);
    for (const [name, value] of Object.entries(changes))
      expected.push(`put ${name}=${value}@${revision}`);
    if (i % 4 === 0) await bench.run();
  }
  const got: string[] = [];
  for (let i = 0; i < 300 && got.length < expected.length; i++) {
    const responses = call.read();
    for (const response of responses) {
      const texts = textsOf([response]);
      assert.equal(texts.length % 3, 0, "whole revisions");
      got.push(...texts);
    }
    await bench.run();
  }
  assert.deepEqual(got, expected);
  assert.deepEqual([bench.hub.pendingEvents, bench.hub.backlogBytes], [0, 0]);
});

test("a stream may hold as many bytes as its bound", async () => {
  const heldBy = async (maxStreamBacklogBytes: number) => {
    const bench = await new WatchBench({ ...WATCH_LIMITS, maxStreamBacklogBytes }).open();
    const { call, stream } = bench.call();
    for (let i = 0; i < 2; i++) call.create({ key: key("a") });
    await bench.run();
    call.read();
    bench.write({ a: "1" });
    bench.hub.feed.settle();
    return { bytes: stream.backlogBytes, parked: bench.hub.feed.slowWatcherCount };
  };
  const { bytes } = await heldBy(WATCH_LIMITS.maxStreamBacklogBytes);
  assert.deepEqual(await heldBy(bytes), { bytes, parked: 0 });
  assert.equal((await heldBy(bytes - 1)).parked, 1);
});

test("who is full goes on as soon as the client has read, though its connection never was", async () => {
  const bench = await new WatchBench({ ...TIGHT, maxRecentEvents: 1000 }).open();
  const { call } = bench.call();
  call.create(all);
  await bench.run();
  call.read();
  const expected = Array.from({ length: 20 }, (_, i) => {
    const value = `${i}`.padEnd(150, "v");
    return `put a=${value}@${bench.write({ a: value })}`;
  });
  const got: string[] = [];
  for (let i = 0; i < 50 && got.length < expected.length; i++) {
    await bench.run();
    got.push(...textsOf(call.read()));
  }
  assert.deepEqual(got, expected);
  assert.deepEqual([bench.hub.pendingEvents, bench.hub.backlogBytes, bench.events], [0, 0, 20]);
});

test("a revision that is read from the store in parts is sent when it is complete", async () => {
  const bench = await new WatchBench({ ...WATCH_LIMITS, maxSliceEvents: 3 }).open();
  const names = Array.from({ length: 12 }, (_, i) => `k${String(i).padStart(2, "0")}`);
  const revision = bench.write(Object.fromEntries(names.map((name) => [name, "x"])));
  await bench.settled(bench.store.flush());
  const { call } = bench.call();
  call.create({ ...all, startRevision: revision });
  await bench.run(50);
  const [, ...responses] = call.read();
  assert.deepEqual(
    responses.map((response) => textsOf([response])),
    [names.map((name) => `put ${name}=x@${revision}`)],
  );
});

test("a revision of which a part was read is read again where the store is exchanged meanwhile", async () => {
  const bench = await new WatchBench({ ...WATCH_LIMITS, maxSliceEvents: 3 }).open();
  const names = Array.from({ length: 12 }, (_, i) => `k${String(i).padStart(2, "0")}`);
  const revision = bench.write(Object.fromEntries(names.map((name) => [name, "x"])));
  await bench.settled(bench.store.flush());
  const { call, stream } = bench.call();
  call.create({ ...all, startRevision: revision });
  call.read();
  for (let i = 0; i < 1000 && stream.backlogBytes === 0; i++) {
    bench.clock.endOneTurn();
    await Promise.resolve();
  }
  assert.ok(stream.backlogBytes > 0);
  await bench.exchange();
  await bench.run(50);
  assert.deepEqual(
    textsOf(call.read()),
    names.map((name) => `put ${name}=x@${revision}`),
  );
  assert.equal(bench.hub.pendingEvents, 0);
});

test("calls that share what they are sent have it all the same", async () => {
  const bench = await new WatchBench().open();
  const calls = [1, 2].map(() => bench.call({ isSharing: true }).call);
  for (const call of calls) call.create(all);
  await bench.run();
  for (const call of calls) call.read();
  bench.write({ a: "1" });
  await bench.run();
  for (const call of calls) assert.deepEqual(textsOf(call.read()), ["put a=1@2"]);
});

test("a response has as many bytes of events as its bound, and no more", async () => {
  const responsesOf = async (maxResponseBytes: number) => {
    const bench = await new WatchBench({ ...WATCH_LIMITS, maxResponseBytes }).open();
    const { call } = bench.call();
    call.create({ ...all, prevKv: true });
    await bench.run();
    call.read();
    for (const name of ["a", "b", "c", "d"]) bench.write({ [name]: "x" });
    await bench.run();
    return call.read().map(({ events }) => events);
  };
  const [[event]] = await responsesOf(WATCH_LIMITS.maxResponseBytes);
  // With its tag and its length.
  const eventBytes = event.length + 2;
  for (const [bytes, sizes] of [
    [2 * eventBytes, [2, 2]],
    [2 * eventBytes - 1, [1, 1, 1, 1]],
  ] as const)
    assert.deepEqual(
      (await responsesOf(bytes)).map(({ length }) => length),
      sizes,
    );
});

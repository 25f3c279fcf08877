/**
 * Watch, case by case: bounds, progress, permissions, and members that lose their leader or get
 * another store.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Member, WATCH_LIMITS } from "@quorate/member";
import { RecentEvents, WatchEvent } from "@quorate/member/testing";
import { fromLatin1, WatchService } from "@quorate/proto";
import { serviceTable } from "@quorate/services";
import { MemoryCall, revisionOf, textsOf, WatchBench } from "./support/watching.ts";
import { put, World } from "./support/world.ts";

const key = fromLatin1;

test("an event is encoded once: streams get the very same bytes", async () => {
  const bench = await new WatchBench().open();
  const calls = [bench.call().call, bench.call().call, bench.call().call];
  calls[0].create({ key: key("k") });
  calls[1].create({ key: key("a"), rangeEnd: key("z") });
  calls[2].create({ key: key("k"), prevKv: true });
  bench.write({ k: "1" });
  await bench.run();
  const sent = calls.map((call) => call.lastPieces.at(-1));
  assert.equal(sent[0], sent[1]);
  assert.equal(sent[0], sent[2], "there was nothing before");
  bench.write({ k: "2" });
  await bench.run();
  assert.deepEqual(textsOf(calls[2].read()), ["put k=1@2", "put k=2@3<1"]);
});

test("what many watches get alike in a turn is joined once; others, and what takes several responses, are not", async () => {
  const bench = await new WatchBench().open();
  const calls = Array.from({ length: 6 }, () => bench.call().call);
  for (const call of calls.slice(0, 3)) call.create({ key: key("k") });
  calls[3].create({ key: key("k"), prevKv: true });
  calls[4].create({ key: key("a"), rangeEnd: key("z") });
  calls[5].create({ key: key("k") });
  for (let i = 0; i < 4; i++) bench.write({ k: `${i}`, ...(i === 2 && { b: "x" }) });
  await bench.run();
  assert.deepEqual(
    calls.map((call) => call.lastPieces.length),
    // The first is not known to have company yet.
    [6, 3, 3, 6, 7, 3],
  );
  assert.equal(calls[1].lastPieces.at(-1), calls[2].lastPieces.at(-1), "the very same bytes");
  const plain = ["put k=0@2", "put k=1@3", "put k=2@4", "put k=3@5"];
  const before = ["put k=0@2", "put k=1@3<0", "put k=2@4<1", "put k=3@5<2"];
  const all = [...plain.slice(0, 3), "put b=x@4", plain[3]];
  assert.deepEqual(
    calls.map((call) => textsOf(call.read())),
    [plain, plain, plain, before, all, plain],
  );
  for (let i = 0; i < 1500; i++) bench.write({ k: "x" });
  await bench.run();
  for (const call of calls.slice(0, 3)) {
    assert.deepEqual(
      call.read().map(({ events }) => events.length),
      [1000, 500],
    );
  }
});

test("one event for 10,000 watches of a stream is sent in parts, in order, and other streams come between them", async () => {
  const bench = await new WatchBench().open();
  const many = bench.call().call;
  const other = bench.call().call;
  const WATCHES = 10_000;
  for (let i = 0; i < WATCHES; i++) many.create({ key: key("k") });
  other.create({ key: key("k") });
  await bench.run();
  many.read();
  other.read();
  let sent = 0;
  const { send } = many;
  many.send = (message) => {
    sent++;
    return send.call(many, message);
  };
  const sendOther = other.send;
  let sentBefore = -1;
  other.send = (message) => {
    sentBefore = sent;
    return sendOther.call(other, message);
  };
  bench.write({ k: "1" });
  bench.write({ k: "2" });
  await bench.run();
  const responses = many.read();
  assert.equal(responses.length, WATCHES);
  assert.equal(new Set(responses.map(({ watchId }) => watchId)).size, WATCHES);
  for (const response of responses)
    assert.deepEqual(textsOf([response]), ["put k=1@2", "put k=2@3"]);
  assert.deepEqual(textsOf(other.read()), ["put k=1@2", "put k=2@3"]);
  assert.equal(
    sentBefore,
    WATCH_LIMITS.maxWatchersAtOnce,
    "the other stream's turn comes before all of the first is sent",
  );
});

test("the changes of a turn leave as one response for each watch", async () => {
  const bench = await new WatchBench().open();
  const { call } = bench.call();
  call.create({ key: key("a") });
  call.create({ key: key("a"), rangeEnd: key("c") });
  for (let i = 0; i < 5; i++) bench.write({ a: `${i}`, b: "x" });
  await bench.run();
  const responses = call.read().slice(2);
  assert.deepEqual(
    responses.map(({ watchId, events, header }) => [watchId, events.length, header!.revision]),
    [
      [0, 5, 6],
      [1, 10, 6],
    ],
  );
});

test("responses are cut between revisions: by their number, and by bytes", async () => {
  const bench = await new WatchBench().open();
  const { call } = bench.call();
  call.create({ key: key("a") });
  for (let i = 0; i < 2500; i++) bench.write({ a: "x" });
  await bench.run();
  assert.deepEqual(
    call.read().map(({ events }) => events.length),
    [0, 1000, 1000, 500],
  );
  const third = "v".repeat(WATCH_LIMITS.maxResponseBytes / 3);
  for (let i = 0; i < 3; i++) bench.write({ a: third });
  await bench.run();
  assert.deepEqual(
    call.read().map(({ events }) => events.length),
    [2, 1],
  );
});

test("a revision beyond the limit of a message: whole, or in fragments where the client can join them", async () => {
  const bench = await new WatchBench(WATCH_LIMITS, { maxRequestBytes: 512 * 1024 }).open();
  const { call } = bench.call();
  call.create({ key: key("a"), rangeEnd: key("b") });
  call.create({ key: key("a"), rangeEnd: key("b"), fragment: true });
  const changes = Object.fromEntries(
    Array.from({ length: 5 }, (_, i) => [`a${i}`, "v".repeat(400 * 1024)]),
  );
  bench.write(changes);
  await bench.run();
  const responses = call.read().slice(2);
  assert.deepEqual(
    responses.map(({ watchId, events, fragment }) => [watchId, events.length, fragment]),
    [
      [0, 5, false],
      [1, 2, true],
      [1, 2, true],
      [1, 1, false],
    ],
  );
});

test("a client that does not read is parked at the budget of its stream and catches up later; its neighbours go on", async () => {
  const bench = await new WatchBench().open();
  const slow = bench.call({ budgetBytes: 100_000 });
  const quick = bench.call({ budgetBytes: 100_000 });
  for (const { call } of [slow, quick]) call.create({ key: key("k"), prevKv: true });
  const value = "v".repeat(100_000);
  const expected: number[] = [];
  const got: number[] = [];
  let most = 0;
  for (let i = 0; i < 200; i++) {
    expected.push(bench.write({ k: value + i }));
    await bench.run(1);
    got.push(...quick.call.read().flatMap(({ events }) => events.map(revisionOf)));
    most = Math.max(most, slow.stream.backlogBytes);
  }
  assert.deepEqual(got, expected);
  assert.ok(
    most <= WATCH_LIMITS.maxStreamBacklogBytes &&
      most > WATCH_LIMITS.maxStreamBacklogBytes - 300_000,
    `${most}`,
  );
  assert.equal(bench.hub.feed.slowWatcherCount, 1);
  const late: number[] = [];
  while (late.length < expected.length) {
    const responses = slow.call.read();
    assert.ok(responses.length > 0);
    late.push(...responses.flatMap(({ events }) => events.map(revisionOf)));
    await bench.run();
  }
  assert.deepEqual(late, expected);
  assert.equal(bench.hub.feed.slowWatcherCount, 0);
});

test("all streams together are bounded too", async () => {
  const bench = await new WatchBench({ ...WATCH_LIMITS, maxTotalBacklogBytes: 1_000_000 }).open();
  const calls = Array.from({ length: 10 }, () => bench.call({ budgetBytes: 1000 }).call);
  for (const call of calls) call.create({ key: key("k") });
  for (let i = 0; i < 20; i++) {
    bench.write({ k: "v".repeat(50_000) });
    await bench.run(1);
    assert.ok(bench.hub.backlogBytes <= 1_000_000 + 10 * 51_000, `${bench.hub.backlogBytes}`);
  }
  assert.equal(bench.hub.feed.slowWatcherCount, 10);
  for (let round = 0; round < 30; round++) {
    for (const call of calls) call.read();
    await bench.run();
  }
  assert.equal(bench.hub.feed.slowWatcherCount, 0);
});

test("recent events are bounded by number and by bytes, and go by whole revisions", () => {
  const recent = new RecentEvents(2, { maxRecentEvents: 100, maxRecentBytes: 50_000 });
  const push = (main: number, sizeBytes: number) =>
    recent.push(
      new WatchEvent({ main, sub: 0, key: "k", record: new Uint8Array(sizeBytes), deleted: false }),
    );
  for (let main = 2; main < 500; main++) for (let i = 0; i < 3; i++) push(main, 10);
  assert.ok(recent.size <= 100 && recent.size > 96);
  assert.equal(recent.firstRevision, 467);
  const mains: number[] = [];
  recent.scan(498, ({ main }) => mains.push(main) < 5);
  assert.deepEqual(mains, [498, 498, 498, 499, 499]);
  for (let main = 500; main < 600; main++) push(main, 5000);
  assert.ok(recent.heldBytes <= 50_000 && recent.size === 4, `${recent.heldBytes}`);
  push(600, 1_000_000);
  assert.deepEqual([recent.size, recent.firstRevision], [1, 600], "one revision may be larger");
});

test("a client that asks and does not read the answers is not listened to", async () => {
  const bench = await new WatchBench().open();
  const { call } = bench.call({ budgetBytes: 1000 });
  for (let i = 0; i < 1000; i++) call.create({ key: key("k") });
  assert.ok(call.isPaused && bench.hub.feed.watcherCount < 200, `${bench.hub.feed.watcherCount}`);
  let created = 0;
  while (created < 1000) created += call.read().length;
  assert.equal(bench.hub.feed.watcherCount, 1000);
});

test("progress: at its interval where nothing happened, for all watches on request, for none while one is behind", async () => {
  const bench = await new WatchBench(WATCH_LIMITS, { progressNotifyIntervalMs: 1000 }).open();
  const { call } = bench.call();
  call.create({ key: key("a"), progressNotify: true });
  call.create({ key: key("b") });
  bench.write({ x: "1" });
  await bench.run(1100);
  const seen = () =>
    call.read().map(({ watchId, header, events }) => [watchId, header!.revision, events.length]);
  assert.deepEqual(seen().slice(2), [[0, 2, 0]]);
  bench.write({ a: "1" });
  await bench.run(1100);
  assert.deepEqual(seen(), [[0, 3, 1]], "an event is as good as a notification");
  await bench.run(1100);
  assert.deepEqual(seen(), [[0, 3, 0]]);
  call.progress();
  assert.deepEqual(seen(), [[-1, 3, 0]]);
  call.create({ key: key("a"), startRevision: 2 });
  call.progress();
  assert.equal(seen().length, 1, "created, and no progress");
  call.create({ key: key("a"), startRevision: 1000 });
  await bench.run();
  seen();
  call.progress();
  assert.deepEqual(seen(), [], "a watch from the future has no progress yet");
});

test("permission is asked for each watch, and for all again when it has changed", async () => {
  const bench = await new WatchBench().open();
  const allowed = new Set(["a", "b"]);
  bench.forbids = (range) => (allowed.has(range.key) ? undefined : "etcdserver: permission denied");
  const { call } = bench.call();
  for (const name of ["a", "c", "b"]) call.create({ key: key(name) });
  const seen = () =>
    call
      .read()
      .map(({ watchId, created, canceled, cancelReason }) => [
        watchId,
        created,
        canceled,
        cancelReason,
      ]);
  assert.deepEqual(seen(), [
    [0, true, false, ""],
    [-1, true, true, "etcdserver: permission denied"],
    [1, true, false, ""],
  ]);
  allowed.delete("a");
  bench.hub.recheck();
  await bench.run();
  assert.deepEqual(seen(), [[0, false, true, "etcdserver: permission denied"]]);
  assert.equal(bench.hub.feed.watcherCount, 1);
});

test("a negative start revision is refused as compacted", async () => {
  const bench = await new WatchBench().open();
  const { call } = bench.call();
  call.create({ key: key("a"), startRevision: -1 });
  const [response] = call.read();
  assert.deepEqual(
    [
      response.watchId,
      response.created,
      response.canceled,
      response.compactRevision,
      response.cancelReason,
    ],
    [-1, true, true, 0, "etcdserver: mvcc: required revision has been compacted"],
  );
});

test("a compaction overtakes a watch that catches up: it is cancelled with the compact revision", async () => {
  const bench = await new WatchBench({ ...WATCH_LIMITS, maxSliceEvents: 10 }).open();
  for (let i = 0; i < 100; i++) bench.write({ k: `${i}` });
  const { call } = bench.call();
  const send = call.send.bind(call);
  let sends = 0;
  call.send = (message) => {
    // Created, then slices of five: what is read and what is delivered both count.
    if (++sends === 4) bench.store.mvcc.compact(101);
    return send(message);
  };
  call.create({ key: key("k"), startRevision: 2 });
  await bench.run();
  const responses = call.read();
  assert.equal(textsOf(responses).length, 15);
  const last = responses.at(-1)!;
  assert.deepEqual(
    [last.canceled, last.compactRevision, last.header!.revision, last.watchId],
    [true, 101, 0, 0],
  );
  call.create({ key: key("k"), startRevision: 50 });
  await bench.run();
  const cancelled = call.read().at(-1)!;
  assert.deepEqual(
    [
      cancelled.canceled,
      cancelled.compactRevision,
      cancelled.header!.revision,
      cancelled.cancelReason,
    ],
    [true, 101, 0, ""],
  );
});

test("a compaction drops all that a watch was about to read, up to the next revision: it is cancelled and skips nothing", async () => {
  const bench = await new WatchBench().open();
  for (let i = 0; i < 5; i++) bench.write({ k: `${i}` });
  // While this batch is written, the pass over 2 to 6 waits for its own, and what is dropped
  // meanwhile goes down with that.
  void bench.store.flush();
  const { call } = bench.call();
  call.create({ key: key("k"), startRevision: 1 });
  await bench.run(0);
  bench.write({ k: "next" });
  bench.store.mvcc.compact(7);
  while (!bench.store.mvcc.compactStep(100));
  await bench.run();
  const responses = call.read();
  assert.deepEqual(textsOf(responses), []);
  assert.deepEqual([responses.at(-1)!.canceled, responses.at(-1)!.compactRevision], [true, 7]);
});

test("who catches up from recent events and is overtaken by their end goes on from the backend", async () => {
  const bench = await new WatchBench({
    ...WATCH_LIMITS,
    maxRecentEvents: 20,
    maxSliceEvents: 4,
  }).open();
  const { call } = bench.call();
  call.create({ key: key("other") });
  const expected = Array.from({ length: 20 }, (_, i) => `put k=${i}@${i + 2}`);
  for (let i = 0; i < 20; i++) bench.write({ k: `${i}` });
  const send = call.send.bind(call);
  let sends = 0;
  call.send = (message) => {
    // Created, and one slice.
    if (++sends === 2) for (let i = 0; i < 30; i++) bench.write({ x: "" });
    return send(message);
  };
  call.create({ key: key("k"), startRevision: 2 });
  await bench.run();
  assert.deepEqual(textsOf(call.read()), expected);
  assert.equal(bench.hub.feed.slowWatcherCount, 0);
});

test("the store is exchanged: watches go on, those behind its compaction are cancelled", async () => {
  const bench = await new WatchBench().open();
  const { call } = bench.call();
  call.create({ key: key("a"), rangeEnd: key("z") });
  bench.write({ b: "1" });
  await bench.exchange(() => {
    // What the members did while this one was away.
    bench.write({ b: "2" });
    bench.write({ c: "1" });
  });
  call.create({ key: key("c"), startRevision: 2 });
  await bench.run();
  bench.write({ b: "3" });
  await bench.run();
  assert.deepEqual(textsOf(call.read()), [
    "put b=1@2",
    "put b=2@3",
    "put c=1@4",
    "put c=1@4",
    "put b=3@5",
  ]);
  await bench.exchange(() => {
    bench.write({ b: "4" });
    bench.write({ b: "5" });
    bench.store.mvcc.compact(7);
  });
  await bench.run();
  assert.deepEqual(
    call.read().map(({ canceled, compactRevision }) => [canceled, compactRevision]),
    [
      [true, 7],
      [true, 7],
    ],
  );
});

// --- On members ---

function watch(member: Member, metadata: Record<string, string> = {}): MemoryCall {
  const call = new MemoryCall({ metadata });
  call.listener = serviceTable(member).stream.get(WatchService.methods.Watch.path)!(call);
  return call;
}

test("a client that wants a leader is cut off when there has been none for three election timeouts; another stays", async () => {
  const world = new World(3);
  await world.startAll();
  const follower = world.nodes.find((node) => node !== world.leader())!;
  const picky = watch(follower.member!, { hasleader: "true" });
  const patient = watch(follower.member!);
  for (const call of [picky, patient]) call.create({ key: key("k") });
  world.cutOff.add(follower.member!.id);
  await world.until(() => picky.status !== undefined);
  assert.deepEqual([picky.status!.code, picky.status!.message], [14, "etcdserver: no leader"]);
  assert.throws(() => watch(follower.member!, { hasleader: "true" }), /no leader/);
  assert.equal(follower.member!.watches.streamCount, 1);
  world.cutOff.clear();
  await world.until(() => follower.member!.leader !== 0n);
  await world.settled(put(world.leader()!.member!, "k", "v"));
  await world.until(() => follower.member!.watches.feed.revision === 2);
  await world.run(5);
  assert.deepEqual(textsOf(patient.read()), ["put k=v@2"]);
  await world.stopAll();
});

test("leader changes, restarts and a snapshot: a client that goes on where it was sees every change once", async () => {
  const world = new World(3, ["--snapshot-count", "20", "--snapshot-catchup-entries", "5"]);
  await world.startAll();
  const written: string[] = [];
  const write = async (): Promise<void> => {
    await world.until(() => world.leader() !== undefined);
    const value = `${written.length}`;
    written.push(`put k${value}=${value}@${written.length + 2}`);
    await world.settled(put(world.leader()!.member!, `k${value}`, value));
  };
  // One watch on each member; that of a member that ends goes on at the member when it is back.
  const seen: string[][] = [[], [], []];
  const resume = (index: number): MemoryCall => {
    const call = watch(world.nodes[index].member!);
    call.create({ key: key("k"), rangeEnd: key("l"), startRevision: seen[index].length + 2 });
    return call;
  };
  const calls = [0, 1, 2].map(resume);
  const look = () => {
    for (const [index, call] of calls.entries()) seen[index].push(...textsOf(call.read()));
  };
  for (let round = 0; round < 6; round++) {
    for (let i = 0; i < 8; i++) await write();
    const index = round % 3;
    const node = world.nodes[index];
    if (round < 3) {
      // Cut off long enough that the others' logs have moved on: it comes back by a snapshot, under
      // its watch.
      const { store } = node.member!;
      world.cutOff.add(node.member!.id);
      await world.until(() => world.leader() !== undefined && world.leader() !== node);
      for (let i = 0; i < 60; i++) await write();
      world.cutOff.clear();
      await world.until(() => node.member!.store !== store);
    } else {
      look();
      await world.settled(node.member!.stop());
      node.member = undefined;
      for (let i = 0; i < 10; i++) await write();
      await world.start(node);
      calls[index] = resume(index);
    }
    await world.until(() =>
      world.nodes.every((one) => one.member!.watches.feed.revision === written.length + 1),
    );
    await world.run(50);
    look();
    for (const one of seen) assert.deepEqual(one, written);
  }
  await world.stopAll();
});

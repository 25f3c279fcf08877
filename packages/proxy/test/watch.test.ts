/** Watches through the proxy: which of them share, what they receive, and who may not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, WatchCreateRequest_FilterType } from "@quorate/proto";
import { World } from "./support/world.ts";

const bytes = fromUtf8;
const creations = (world: World): number =>
  world.cluster.calls.filter((one) => one === "CreateWatch").length;

test("watches of one key on many streams share one watch of the cluster", async () => {
  const world = new World();
  const streams = Array.from({ length: 50 }, () => world.watch());
  for (const stream of streams) stream.create("k");
  await world.settle();
  world.cluster.put("k", bytes("1"));
  world.cluster.put("other", bytes("x"));
  world.cluster.put("k", bytes("2"));
  await world.settle();
  for (const stream of streams) assert.deepEqual(stream.events(), ["k=1", "k=2"]);
  assert.equal(creations(world), 1);
  assert.equal(world.proxy.watches.watches, 50);
  assert.equal(world.proxy.watches.broadcasts, 1);
  assert.equal(world.metrics.eventsCoalescing.value, 98);
  for (const stream of streams) stream.stream.listener.cancelled?.();
  await world.settle();
  assert.equal(world.cluster.watches.size, 0, "the last one takes the shared watch with it");
});

test("a watch from now on sees nothing that was written before it", async () => {
  const world = new World();
  const first = world.watch();
  first.create("k");
  await world.settle();
  world.cluster.put("k", bytes("1"));
  const late = world.watch();
  late.create("k");
  await world.settle();
  world.cluster.put("k", bytes("2"));
  await world.settle();
  assert.deepEqual(first.events(), ["k=1", "k=2"]);
  assert.deepEqual(late.events(), ["k=2"]);
  assert.equal(late.responses[0].header?.revision, 2);
  assert.equal(creations(world), 1);
});

test("a watch of the past has its own until both stand at the same revision", async () => {
  const world = new World();
  world.cluster.put("k", bytes("1"));
  world.cluster.put("k", bytes("2"));
  const now = world.watch();
  now.create("k");
  await world.settle();
  const past = world.watch();
  past.create("k", { startRevision: 2 });
  await world.settle();
  assert.deepEqual(past.events(), ["k=1", "k=2"]);
  world.cluster.put("k", bytes("3"));
  await world.settle();
  assert.deepEqual(past.events(), ["k=1", "k=2", "k=3"]);
  assert.deepEqual(now.events(), ["k=3"]);
  assert.equal(world.proxy.watches.broadcasts, 1, "they share one now");
  world.cluster.put("k", bytes("4"));
  await world.settle();
  assert.deepEqual(past.events().slice(3), ["k=4"]);
  assert.deepEqual(now.events(), ["k=3", "k=4"]);
});

test("a start revision in the future is waited for", async () => {
  const world = new World();
  const stream = world.watch();
  stream.create("k", { startRevision: 3 });
  stream.create("k");
  await world.settle();
  for (const value of ["1", "2", "3"]) world.cluster.put("k", bytes(value));
  await world.settle();
  assert.deepEqual(stream.events(0), ["k=2", "k=3"]);
  assert.deepEqual(stream.events(1), ["k=1", "k=2", "k=3"]);
});

test("other options, other ranges and other identities share nothing", async () => {
  const world = new World();
  const stream = world.watch();
  stream.create("k");
  stream.create("k", { prevKv: true });
  stream.create("k", { filters: [WatchCreateRequest_FilterType.NODELETE] });
  stream.create("k", { rangeEnd: bytes("l") });
  stream.create("k", { progressNotify: true });
  const alice = world.watch({ token: "alice" });
  alice.create("k");
  const bob = world.watch({ authorization: "alice" });
  bob.create("k");
  await world.settle();
  assert.equal(creations(world), 6, "progress is the proxy's own affair");
});

test("a user who may not read a key gets nothing of a watch that others have", async () => {
  const world = new World();
  world.cluster.forbidden.set("mallory", "k");
  const alice = world.watch({ token: "alice" });
  alice.create("k");
  const mallory = world.watch({ token: "mallory" });
  const anonymous = world.watch();
  world.cluster.forbidden.set("", "k");
  mallory.create("k");
  anonymous.create("k");
  await world.settle();
  world.cluster.put("k", bytes("secret"));
  await world.settle();
  assert.deepEqual(alice.events(), ["k=secret"]);
  for (const stream of [mallory, anonymous]) {
    assert.deepEqual(stream.events(), []);
    const [refused] = stream.responses;
    assert.deepEqual(
      [refused.created, refused.canceled, refused.watchId, refused.cancelReason],
      [true, true, -1, "etcdserver: permission denied"],
    );
  }
});

test("a member that is killed: every event once, from the next member", async () => {
  const world = new World();
  const streams = [world.watch(), world.watch()];
  for (const stream of streams) stream.create("k");
  await world.settle();
  world.cluster.put("k", bytes("1"));
  await world.settle();
  world.members[0].kill();
  world.members[0].isDown = true;
  world.cluster.watches.clear();
  world.cluster.put("k", bytes("2"));
  await world.settle(500);
  world.cluster.put("k", bytes("3"));
  await world.settle();
  for (const stream of streams) {
    assert.deepEqual(stream.events(), ["k=1", "k=2", "k=3"]);
    assert.equal(stream.stream.status, undefined);
  }
});

test("no member at all: watches wait, and are created when one is back", async () => {
  const world = new World();
  for (const member of world.members) member.isDown = true;
  const stream = world.watch();
  stream.create("k");
  await world.settle(20_000);
  assert.deepEqual(stream.stream.received, []);
  for (const member of world.members) member.isDown = false;
  await world.settle(2000);
  world.cluster.put("k", bytes("1"));
  await world.settle();
  assert.deepEqual(stream.events(), ["k=1"]);
});

test("without a leader the streams of those that require one end", async () => {
  const world = new World();
  const strict = world.watch({ hasleader: "true" });
  const patient = world.watch();
  strict.create("k");
  patient.create("k");
  await world.settle();
  world.cluster.hasLeader = false;
  world.cluster.endStreams(14, "etcdserver: no leader");
  await world.settle();
  assert.deepEqual(strict.stream.status, { code: 14, message: "etcdserver: no leader" });
  const next = world.watch({ hasleader: "true" });
  next.create("k");
  await world.settle();
  assert.equal(next.stream.status?.message, "etcdserver: no leader");
  world.cluster.hasLeader = true;
  await world.settle(2000);
  world.cluster.put("k", bytes("1"));
  await world.settle();
  assert.deepEqual(patient.events(), ["k=1"]);
});

test("a revision that was compacted cancels the watch with the one that is left", async () => {
  const world = new World();
  world.cluster.put("k", bytes("1"));
  world.cluster.revision = 20;
  world.cluster.compacted = 10;
  const stream = world.watch();
  stream.create("k", { startRevision: 5 });
  await world.settle();
  const last = stream.responses.at(-1)!;
  assert.deepEqual([last.canceled, last.compactRevision], [true, 10]);
  assert.equal(world.proxy.watches.watches, 0);
});

test("ids, ranges and start revisions are checked in etcd's order", async () => {
  const world = new World();
  const stream = world.watch();
  stream.create("k", { watchId: 7 });
  stream.create("k", { watchId: 7 });
  stream.create("k", { startRevision: -1 });
  stream.create("k", { rangeEnd: bytes("a") });
  stream.create("k");
  stream.send({ requestUnion: { case: "cancelRequest", value: { watchId: 7 } } });
  stream.send({ requestUnion: { case: "cancelRequest", value: { watchId: 99 } } });
  await world.settle();
  assert.deepEqual(
    stream.responses.map((one) => [one.watchId, one.created, one.canceled, one.cancelReason]),
    [
      [7, true, false, ""],
      [-1, true, true, "mvcc: duplicate watch ID provided on the WatchStream"],
      [-1, true, true, "etcdserver: mvcc: required revision has been compacted"],
      [-1, true, true, "mvcc: watcher range is empty"],
      [2, true, false, ""],
      [7, false, true, ""],
    ],
  );
  stream.stream.listener.message?.(Uint8Array.of(0xff, 0xff));
  assert.equal(stream.stream.status?.code, 13, "malformed");
  assert.equal(world.proxy.watches.watches, 0);
});

test("a request for progress is answered when all watches have received everything", async () => {
  const world = new World();
  const stream = world.watch();
  stream.create("k");
  await world.settle();
  world.cluster.put("k", bytes("1"));
  stream.send({ requestUnion: { case: "progressRequest", value: {} } });
  stream.send({ requestUnion: { case: "progressRequest", value: {} } });
  await world.settle();
  const answers = stream.responses.filter(({ watchId }) => watchId === -1);
  assert.ok(answers.length >= 1);
  assert.equal(answers[0].header?.revision, world.cluster.revision);
});

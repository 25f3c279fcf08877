/** Leases through the proxy: shared requests, members that go away, and bounds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_WAITING_RESPONSES } from "../src/lease/lease-service.ts";
import { keepAlive, keptAlive, World } from "./support/world.ts";

const PATH = "/etcdserverpb.Lease/LeaseKeepAlive";
const requests = (world: World): number =>
  world.cluster.calls.filter((one) => one === "KeepAlive").length;

test("requests for one lease that are on their way share one", async () => {
  const world = new World();
  world.cluster.holdsLeases = true;
  const streams = Array.from({ length: 20 }, () => world.stream(PATH));
  for (const stream of streams) keepAlive(stream, 7n);
  keepAlive(streams[0], 7n);
  keepAlive(streams[0], 8n);
  await world.settle();
  assert.equal(requests(world), 2);
  for (const answer of world.cluster.heldLeases.splice(0)) answer();
  await world.settle();
  assert.deepEqual(keptAlive(streams[0]), [7n, 7n, 8n]);
  for (const stream of streams.slice(1)) assert.deepEqual(keptAlive(stream), [7n]);
  assert.equal(world.metrics.keepAlivesCoalesced.value, 19);
  world.cluster.holdsLeases = false;
  keepAlive(streams[1], 7n);
  await world.settle();
  assert.equal(requests(world), 3, "a later request goes upstream: the lease must be renewed");
});

test("other identities do not share; a client that is gone is forgotten", async () => {
  const world = new World();
  world.cluster.holdsLeases = true;
  const [alice, bob] = [
    world.stream(PATH, { token: "alice" }),
    world.stream(PATH, { token: "bob" }),
  ];
  keepAlive(alice, 7n);
  keepAlive(bob, 7n);
  await world.settle();
  assert.equal(requests(world), 2);
  alice.listener.cancelled?.();
  for (const answer of world.cluster.heldLeases.splice(0)) answer();
  await world.settle();
  assert.deepEqual([keptAlive(alice), keptAlive(bob)], [[], [7n]]);
});

test("a member that is killed: the request is made again, and the stream stays", async () => {
  const world = new World();
  world.cluster.holdsLeases = true;
  const stream = world.stream(PATH);
  keepAlive(stream, 7n);
  await world.settle();
  world.members[0].kill();
  world.members[0].isDown = true;
  world.cluster.holdsLeases = false;
  await world.settle(1000);
  assert.deepEqual(keptAlive(stream), [7n]);
  const code = (): number | undefined => stream.status?.code;
  assert.equal(code(), undefined);
  stream.listener.halfClosed?.();
  assert.equal(code(), 0);
});

test("a stream whose requests wait is read no further, and malformed ones end it", async () => {
  const world = new World();
  world.cluster.holdsLeases = true;
  const stream = world.stream(PATH);
  for (let i = 0; i < MAX_WAITING_RESPONSES; i++) keepAlive(stream, 7n);
  assert.equal(stream.isPaused, true);
  await world.settle();
  for (const answer of world.cluster.heldLeases.splice(0)) answer();
  await world.settle();
  assert.equal(stream.isPaused, false);
  assert.equal(stream.received.length, MAX_WAITING_RESPONSES);
  stream.listener.message?.(Uint8Array.of(0xff));
  assert.equal(stream.status?.code, 13);
});

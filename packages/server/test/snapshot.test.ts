/**
 * Maintenance.Snapshot on a member: what is sent, how a slow reader holds it back, and how many
 * there may be.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { Caller } from "@quorate/member";
import { errorOf, MaintenanceService, SnapshotResponse } from "@quorate/proto";
import type { StreamListener } from "@quorate/rpc";
import {
  MAX_CLIENT_SNAPSHOTS,
  MAX_SNAPSHOTS_OF_ONE_CLIENT,
  MAX_WAITING_SNAPSHOTS_OF_ONE_CLIENT,
  MIN_SNAPSHOT_PROGRESS_BYTES,
  SNAPSHOT_STALL_MS,
  snapshotStreams,
} from "@quorate/services/testing";
import { ClientCall } from "./support/client-call.ts";
import { put, World } from "./support/world.ts";

/** A call that takes so many messages before it says that it is full. */
class SnapshotCall extends ClientCall {
  constructor(capacity: number, client = "10.0.0.1") {
    super("", { peerAddress: `${client}:1` });
    this.capacity = capacity;
  }

  get sent(): SnapshotResponse[] {
    return this.messages.map((bytes) => SnapshotResponse.decode(bytes));
  }
}

async function worldWithData(): Promise<{
  world: World;
  open: (call: SnapshotCall) => StreamListener;
}> {
  const world = new World(1);
  await world.startAll();
  const member = world.nodes[0].member!;
  for (let i = 0; i < 30; i++) await world.settled(put(member, `k${i}`, "v".repeat(20_000)));
  const handler = snapshotStreams(member).get(MaintenanceService.methods.Snapshot.path)!;
  return { world, open: handler };
}

/** Lets things happen until `done`, or until nothing more is to be expected. */
async function settle(world: World, done: () => boolean): Promise<void> {
  for (let i = 0; i < 300 && !done(); i++) await world.run(1);
}

test("messages of 32 KiB count down, and the checksum of all comes last", async () => {
  const { world, open } = await worldWithData();
  const call = new SnapshotCall(Number.POSITIVE_INFINITY);
  open(call);
  await settle(world, () => call.ended !== undefined);
  assert.equal(call.ended, "ok");
  const database = Buffer.concat(call.sent.slice(0, -1).map(({ blob }) => blob));
  assert.ok(database.length > 600_000 && database.length % 4096 === 0);
  assert.ok(
    call.sent.every(({ blob, version }) => blob.length <= 32 * 1024 && version === "3.7.0"),
  );
  assert.ok(call.sent.every(({ blob }) => blob.length > 0));
  let left = database.length;
  for (const { blob, remainingBytes } of call.sent.slice(0, -1)) {
    left -= blob.length;
    assert.equal(remainingBytes, left);
  }
  assert.deepEqual(
    Buffer.from(call.sent.at(-1)!.blob),
    createHash("sha256").update(database).digest(),
  );
  await world.stopAll();
});

test("a snapshot is read as its client, and why it cannot be is told", async (t) => {
  const { world, open } = await worldWithData();
  const member = world.nodes[0].member!;
  const clients: string[] = [];
  let isHeld = Promise.resolve();
  t.mock.method(member, "read", async ({ client }: Caller) => {
    clients.push(client);
    await isHeld;
    throw errorOf("PermissionDenied");
  });
  const call = new SnapshotCall(9);
  open(call);
  await settle(world, () => call.ended !== undefined);
  assert.deepEqual([(call.ended as { code: number }).code, clients], [7, ["10.0.0.1"]]);
  const { promise, resolve } = Promise.withResolvers<void>();
  isHeld = promise;
  const gone = new SnapshotCall(9);
  const listener = open(gone);
  await settle(world, () => clients.length === 2);
  listener.cancelled!();
  resolve();
  await settle(world, () => false);
  assert.equal(gone.ended, undefined);
  await world.stopAll();
});

test("a snapshot that is over is let go of, and its client's time is not up later", async (t) => {
  const { world, open } = await worldWithData();
  const { store } = world.nodes[0].member!;
  const make = store.etcdSnapshot.bind(store);
  let closes = 0;
  t.mock.method(store, "etcdSnapshot", async (...args: Parameters<typeof make>) => {
    const snapshot = await make(...args);
    const close = snapshot.close.bind(snapshot);
    snapshot.close = () => {
      closes++;
      return close();
    };
    return snapshot;
  });
  const first = new SnapshotCall(Number.POSITIVE_INFINITY);
  open(first);
  await settle(world, () => closes === 1);
  assert.deepEqual([first.ended, closes], ["ok", 1]);
  // Full with the last message.
  const full = new SnapshotCall(first.sent.length);
  open(full);
  await settle(world, () => full.ended !== undefined);
  await world.run(2 * SNAPSHOT_STALL_MS);
  assert.deepEqual([full.ended, closes], ["ok", 2]);
  await world.stopAll();
});

test("a reader that is full is sent nothing until it is drained, and one that goes away ends it", async () => {
  const { world, open } = await worldWithData();
  const call = new SnapshotCall(3);
  const listener = open(call);
  await settle(world, () => call.sent.length === 3);
  await settle(world, () => call.sent.length > 3);
  assert.equal(call.sent.length, 3);
  call.capacity = 2;
  listener.drained!();
  await settle(world, () => call.sent.length === 5);
  assert.equal(call.sent.length, 5);
  listener.cancelled!();
  await settle(world, () => call.sent.length > 5);
  assert.deepEqual([call.sent.length, call.ended], [5, undefined]);
  await world.stopAll();
});

test("one client has so many at once, more of its own wait, and then it is refused; another one has its turn", async () => {
  const { world, open } = await worldWithData();
  const greedy = Array.from(
    { length: MAX_SNAPSHOTS_OF_ONE_CLIENT + MAX_WAITING_SNAPSHOTS_OF_ONE_CLIENT },
    () => new SnapshotCall(1),
  );
  const listeners = greedy.map(open);
  const { metrics } = world.nodes[0].member!;
  const counts = () => [metrics.snapshotsSending.value, metrics.snapshotsWaiting.value];
  assert.deepEqual(counts(), [MAX_SNAPSHOTS_OF_ONE_CLIENT, MAX_WAITING_SNAPSHOTS_OF_ONE_CLIENT]);
  assert.throws(() => open(new SnapshotCall(1)), /too many requests/);
  await settle(world, () => false);
  assert.equal(greedy.filter(({ sent }) => sent.length > 0).length, MAX_SNAPSHOTS_OF_ONE_CLIENT);
  const other = new SnapshotCall(Number.POSITIVE_INFINITY, "10.0.0.2");
  open(other);
  await settle(world, () => other.ended !== undefined);
  assert.equal(other.ended, "ok");
  // One that goes while it waits leaves its place, one that goes while it is sent frees one.
  for (let i = 0; i < 2; i++) listeners.at(-1)!.cancelled!();
  const waiting = MAX_WAITING_SNAPSHOTS_OF_ONE_CLIENT - 1;
  assert.deepEqual(counts(), [MAX_SNAPSHOTS_OF_ONE_CLIENT, waiting]);
  listeners[0].cancelled!();
  assert.deepEqual(counts(), [MAX_SNAPSHOTS_OF_ONE_CLIENT, waiting], "it is not over yet");
  await settle(world, () => false);
  assert.deepEqual(counts(), [MAX_SNAPSHOTS_OF_ONE_CLIENT, waiting - 1]);
  assert.equal(
    greedy.filter(({ sent }) => sent.length > 0).length,
    MAX_SNAPSHOTS_OF_ONE_CLIENT + 1,
  );
  await world.stopAll();
});

test("a request that does not decode is refused, and holds no place", async () => {
  const { world, open } = await worldWithData();
  const call = new SnapshotCall(1);
  const listener = open(call);
  const { snapshotsSending } = world.nodes[0].member!.metrics;
  await settle(world, () => call.sent.length > 0);
  listener.message!(new Uint8Array(0));
  assert.throws(() => listener.message!(Uint8Array.of(0xff)));
  await settle(world, () => snapshotsSending.value === 0);
  assert.deepEqual([snapshotsSending.value, call.ended], [0, undefined]);
  await world.stopAll();
});

test("all places taken by clients that take nothing: theirs end in time, and those who wait have their turns", async () => {
  const { world, open } = await worldWithData();
  const stuck = Array.from(
    { length: MAX_CLIENT_SNAPSHOTS },
    (_, i) => new SnapshotCall(1, `10.6.6.${i % 2}`),
  );
  for (const one of stuck) open(one);
  const waiting = [1, 2, 3].map((i) => new SnapshotCall(Number.POSITIVE_INFINITY, `10.0.0.${i}`));
  for (const one of waiting) open(one);
  await settle(world, () => waiting.some(({ sent }) => sent.length > 0));
  assert.ok(waiting.every(({ sent }) => sent.length === 0));
  await world.run(2 * SNAPSHOT_STALL_MS);
  await settle(world, () => waiting.every(({ ended }) => ended !== undefined));
  assert.deepEqual(
    waiting.map(({ ended }) => ended),
    ["ok", "ok", "ok"],
  );
  for (const { ended } of stuck)
    assert.match(
      String((ended as { message?: string }).message),
      /^etcdserver: snapshot made no progress for 30 s$/,
    );
  assert.equal(world.nodes[0].member!.metrics.snapshotStalls.value, MAX_CLIENT_SNAPSHOTS);
  await world.stopAll();
});

test("who takes 256 KiB in half a minute goes on, and one byte less ends it", async () => {
  const { world, open } = await worldWithData();
  for (const missing of [0, 1]) {
    const call = new SnapshotCall(20);
    open(call);
    await settle(world, () => call.sent.length === 20);
    const sentBytes = call.sent.reduce((sum, { blob }) => sum + blob.length, 0);
    assert.ok(sentBytes > 1.2 * MIN_SNAPSHOT_PROGRESS_BYTES, `${sentBytes}`);
    call.bufferedBytes = sentBytes - MIN_SNAPSHOT_PROGRESS_BYTES + missing;
    await world.run(SNAPSHOT_STALL_MS);
    if (missing === 0) {
      assert.equal(call.ended, undefined);
      // What was taken before counts no more.
      call.bufferedBytes -= 100;
      await world.run(SNAPSHOT_STALL_MS);
    }
    assert.match(String(call.ended), /snapshot made no progress for 30 s/);
  }
  await world.stopAll();
});

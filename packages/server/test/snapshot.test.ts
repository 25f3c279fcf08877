/** Maintenance.Snapshot on a member: what is sent, how a slow reader holds it back, and how many there may be. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { MaintenanceService, SnapshotResponse } from "@quorate/proto";
import type { StreamCall, StreamListener } from "@quorate/rpc";
import { MAX_CLIENT_SNAPSHOTS, snapshotStreams } from "../src/services/snapshot.ts";
import { put, World } from "./support/world.ts";

/** A call that takes so many messages before it says that it is full. */
class FakeCall {
  readonly sent: SnapshotResponse[] = [];
  ended: { code: number } | "ok" | undefined;
  room: number;

  constructor(room: number) {
    this.room = room;
  }

  get call(): StreamCall {
    return {
      context: {} as StreamCall["context"],
      bufferedBytes: 0,
      send: (message) => {
        this.sent.push(SnapshotResponse.decode(message as Uint8Array));
        return --this.room > 0;
      },
      end: (status) => {
        this.ended = status ?? "ok";
      },
      pause: () => {},
      resume: () => {},
    };
  }
}

async function worldWithData(): Promise<{ world: World; open: (call: FakeCall) => StreamListener }> {
  const world = new World(1);
  await world.startAll();
  const member = world.nodes[0]!.member!;
  for (let i = 0; i < 30; i++) await world.settled(put(member, `k${i}`, "v".repeat(20_000)));
  const handler = snapshotStreams(member).get(MaintenanceService.methods.Snapshot.path)!;
  return { world, open: (call) => handler(call.call) };
}

/** Lets things happen until `done`, or until nothing more is to be expected. */
async function settle(world: World, done: () => boolean): Promise<void> {
  for (let i = 0; i < 300 && !done(); i++) await world.run(1);
}

test("messages of 32 KiB count down, and the checksum of all comes last", async () => {
  const { world, open } = await worldWithData();
  const call = new FakeCall(Number.POSITIVE_INFINITY);
  open(call);
  await settle(world, () => call.ended !== undefined);
  assert.equal(call.ended, "ok");
  const database = Buffer.concat(call.sent.slice(0, -1).map(({ blob }) => blob));
  assert.ok(database.length > 600_000 && database.length % 4096 === 0);
  assert.ok(call.sent.every(({ blob, version }) => blob.length <= 32 * 1024 && version === "3.7.0"));
  let left = database.length;
  for (const { blob, remainingBytes } of call.sent.slice(0, -1)) {
    left -= blob.length;
    assert.equal(remainingBytes, left);
  }
  assert.deepEqual(Buffer.from(call.sent.at(-1)!.blob), createHash("sha256").update(database).digest());
  await world.stopAll();
});

test("a reader that is full is sent nothing until it has room, and one that goes away ends it", async () => {
  const { world, open } = await worldWithData();
  const call = new FakeCall(3);
  const listener = open(call);
  await settle(world, () => call.sent.length === 3);
  await settle(world, () => call.sent.length > 3);
  assert.equal(call.sent.length, 3);
  call.room = 2;
  listener.drained!();
  await settle(world, () => call.sent.length === 5);
  assert.equal(call.sent.length, 5);
  listener.cancelled!();
  await settle(world, () => call.sent.length > 5);
  assert.deepEqual([call.sent.length, call.ended], [5, undefined]);
  await world.stopAll();
});

test("no more than so many are sent at once", async () => {
  const { world, open } = await worldWithData();
  const calls = Array.from({ length: MAX_CLIENT_SNAPSHOTS }, () => new FakeCall(1));
  const listeners = calls.map(open);
  assert.throws(() => open(new FakeCall(1)), /too many requests/);
  for (const listener of listeners) listener.cancelled!();
  await settle(world, () => false);
  const next = new FakeCall(Number.POSITIVE_INFINITY);
  open(next);
  await settle(world, () => next.ended !== undefined);
  assert.equal(next.ended, "ok");
  await world.stopAll();
});
